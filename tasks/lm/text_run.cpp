#include "tasks/lm/text_run.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/lm/prepare.h"
#include "tasks/lm/segments.h"
#include "tasks/prepare/bytes.h"
#include "tasks/prepare/parted_run.h"
#include "tasks/prepare/record_walk.h"

namespace etc::lm {

namespace {

constexpr const char* kUnknown = "ignored unknown_piece";

std::string bytes_of(const CutLines& cut) {
  prepare::ByteWriter out;
  out.put(cut.ids);
  out.put(cut.invalid_bytes);
  out.put(cut.lines.size());
  for (const CutLines::Line& line : cut.lines) {
    out.put(line.end);
    out.put(line.characters);
    out.put(line.ends_text);
  }
  return out.take();
}

CutLines cut_lines_of(std::string_view bytes) {
  prepare::ByteReader in(bytes);
  CutLines cut;
  in.get(cut.ids);
  in.get(cut.invalid_bytes);
  for (auto lines = in.get<std::size_t>(); lines > 0; --lines) {
    CutLines::Line& line = cut.lines.emplace_back();
    in.get(line.end);
    in.get(line.characters);
    in.get(line.ends_text);
  }
  in.require_end();
  return cut;
}

void take_lines(const CutLines& cut, SegmentMaker& segments) {
  std::int64_t begin = 0;
  for (const CutLines::Line& line : cut.lines) {
    if (line.end == begin) segments.add_characters(line.characters);
    for (std::int64_t i = begin; i < line.end; ++i) {
      segments.add(cut.ids[static_cast<std::size_t>(i)], i + 1 == line.end ? line.characters : 0);
    }
    if (line.ends_text) segments.end_text();
    begin = line.end;
  }
}

class TextRun final : public prepare::PartedRun {
 public:
  TextRun(const LmPreparation& preparation, const prepare::RunOptions& options)
      : PartedRun(preparation, options), lm_(preparation) {
    if (options.processes != nullptr) {
      shared_.emplace(prepare::SharedWalk<CutLines>{*options.processes, bytes_of, cut_lines_of});
    }
  }

 private:
  prepare::RecordWork<CutLines> cutting() const {
    prepare::RecordWork<CutLines> work;
    work.work = [this](data::RecordSlice& slice) { return lm_.cut(slice.text); };
    if (shared_) work.shared = &*shared_;
    return work;
  }

  // Every file ends a text, so a file's segments depend on the other files only through the numbering of texts.
  prepare::Counts prepare_input(std::size_t i, const prepare::Sink& sink, data::SourceFile* source) override {
    prepare::Counts counts;
    prepare::InputFaults faults(sources()[i].name, sink.report, counts);
    const std::int64_t texts_before = counts_before().records;
    SegmentMaker segments(lm_.config().segment_length, lm_.text_end(), texts_before, [&](data::Example&& segment) {
      ++counts.examples;
      sink.writer.append(segment);
    });
    std::int64_t invalid_bytes = 0, unknown = 0;
    prepare::RecordWork<CutLines> work = cutting();
    work.deliver = [&](std::int64_t, const data::TextPosition&, CutLines&& cut) {
      unknown += std::count(cut.ids.begin(), cut.ids.end(), lm_.unknown());
      take_lines(cut, segments);
      invalid_bytes += cut.invalid_bytes;
    };
    work.progress = [&](std::int64_t read) {
      update_progress(read);
      stop_if_asked();
    };
    work.source = source;
    const prepare::PassEnd end = prepare::walk_records(lm_, options_.inputs[i], work);
    segments.end_text();
    take_end(i, end, "blocks of lines", sink, faults);
    counts.records = segments.texts() - texts_before;
    if (unknown > 0) counts.codes[kUnknown] = unknown;
    if (invalid_bytes > 0) {
      counts.codes["ignored invalid_byte"] = invalid_bytes;
      ++counts.warned;
      faults.warn("utf8_invalid", fmt::format("{} bytes are not UTF-8 and are left out", invalid_bytes));
    }
    return counts;
  }

  void help_with(std::size_t i) override { prepare::help_to_walk(lm_, options_.inputs[i], cutting()); }

  void check(const prepare::Counts& counts) override {
    if (const auto unknown = counts.codes.find(kUnknown); unknown != counts.codes.end()) {
      log::info("prepare: {} pieces are unknown to the vocabulary", unknown->second);
    }
    if (counts.examples > 0) return;
    fail("etc prepare", "{}: no text with a piece of the vocabulary: expected text", options_.inputs[0].string());
  }

  const LmPreparation& lm_;
  std::optional<prepare::SharedWalk<CutLines>> shared_;
};

}  // namespace

prepare::Counts run_texts(const LmPreparation& preparation, const prepare::RunOptions& options) {
  return TextRun(preparation, options).execute();
}

}  // namespace etc::lm
