#include "tasks/lm/text_run.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/lm/prepare.h"
#include "tasks/lm/segments.h"
#include "tasks/prepare/record_walk.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/stop_signal.h"

namespace etc::lm {

namespace {

class TextRun {
 public:
  TextRun(const LmPreparation& preparation, const prepare::RunOptions& options)
      : preparation_(preparation), options_(options) {}

  prepare::Counts execute() {
    sources_ = prepare::check_inputs(preparation_, options_);
    const std::int64_t bytes = prepare::total_bytes(sources_);
    const prepare::ProgressUnit unit = prepare::progress_unit(bytes);
    Progress progress("prepare", bytes / unit.bytes, unit.name);
    data::DatasetWriter writer(options_.output, preparation_.schema(), prepare::dataset_info(preparation_, options_));
    prepare::Report report(options_.report);
    writer_ = &writer;
    std::int64_t before = 0;  // bytes of the files that are done
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      prepare_file(i, report, [&](std::int64_t read) { progress.update((before + read) / unit.bytes); });
      before += sources_[i].bytes;
    }
    progress.finish();
    counts_.records = segments_.texts();
    if (unknown_ > 0) {
      counts_.codes["ignored unknown_piece"] = unknown_;
      log::info("prepare: {} pieces are unknown to the vocabulary", unknown_);
    }
    if (counts_.examples == 0) {
      fail("etc prepare", "{}: no text with a piece of the vocabulary: expected text", options_.inputs[0].string());
    }
    writer.finish(sources_, counts_.records, counts_.rejected, counts_.dropped);
    report.finish();
    return counts_;
  }

 private:
  void prepare_file(std::size_t i, prepare::Report& report, const std::function<void(std::int64_t)>& progress) {
    prepare::InputFaults faults(sources_[i].name, report, counts_);
    std::int64_t invalid_bytes = 0;
    prepare::RecordWork<CutLines> work;
    work.work = [&](data::RecordSlice& slice) { return preparation_.cut(slice.text); };
    work.deliver = [&](std::int64_t, const data::TextPosition&, CutLines&& cut) {
      take_lines(cut);
      invalid_bytes += cut.invalid_bytes;
    };
    work.progress = [&](std::int64_t read) {
      progress(read);
      stop_if_told();
    };
    if (sources_[i].sha256.empty()) work.source = &sources_[i];
    const prepare::PassEnd end = prepare::walk_records(preparation_, options_.inputs[i], work);
    if (end.fault) {
      stop_if_told();  // Ctrl-C ends the program at the other end of a pipe as well
      writer_->mark_missing({sources_[i].name, end.fault->what()});
    }
    segments_.end_text();
    faults.add_end(end, "blocks of lines");
    if (invalid_bytes == 0) return;
    counts_.codes["ignored invalid_byte"] += invalid_bytes;
    faults.warn("utf8_invalid", fmt::format("{} bytes are not UTF-8 and are left out", invalid_bytes));
  }

  void take_lines(const CutLines& cut) {
    unknown_ += std::count(cut.ids.begin(), cut.ids.end(), preparation_.unknown());
    std::int64_t begin = 0;
    for (const CutLines::Line& line : cut.lines) {
      if (line.end == begin) segments_.add_characters(line.characters);
      for (std::int64_t i = begin; i < line.end; ++i) {
        segments_.add(cut.ids[static_cast<std::size_t>(i)], i + 1 == line.end ? line.characters : 0);
      }
      if (line.ends_text) segments_.end_text();
      begin = line.end;
    }
  }

  static void stop_if_told() {
    if (!StopSignal::requested()) return;
    throw Interrupted(fmt::format("prepare: stopped by {}; nothing was written", StopSignal::name()));
  }

  const LmPreparation& preparation_;
  const prepare::RunOptions& options_;
  StopSignal stop_signal_;
  std::vector<data::SourceFile> sources_;
  data::DatasetWriter* writer_ = nullptr;
  std::int64_t unknown_ = 0;  // pieces
  prepare::Counts counts_;
  SegmentMaker segments_{preparation_.config().segment_length, preparation_.text_end(),
                         [this](data::Example&& segment) {
                           ++counts_.examples;
                           writer_->append(segment);
                         }};
};

}  // namespace

prepare::Counts run_texts(const LmPreparation& preparation, const prepare::RunOptions& options) {
  return TextRun(preparation, options).execute();
}

}  // namespace etc::lm
