#include "tasks/translation/pair_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/readers/parallel_lines.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/stop_signal.h"

namespace etc::translation {

namespace {

using prepare::Counts;

// The preparation of one pair of files.
class FilePair final : public prepare::Preparation {
 public:
  FilePair(const prepare::Preparation& all, std::optional<std::filesystem::path> target)
      : all_(all), target_(std::move(target)) {}

  const data::Schema& schema() const override { return all_.schema(); }
  const std::string& vocab_sha256() const override { return all_.vocab_sha256(); }
  Json preprocess_config() const override { return all_.preprocess_config(); }
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override {
    return std::make_unique<data::ParallelLines>(stream, target_);
  }
  prepare::Converted convert_record(data::RecordSlice& record) const override { return all_.convert_record(record); }

 private:
  const prepare::Preparation& all_;
  std::optional<std::filesystem::path> target_;
};

class PairRun {
 public:
  PairRun(const prepare::Preparation& preparation, const prepare::RunOptions& options, std::int64_t unknown_id)
      : preparation_(preparation), options_(options), unknown_id_(unknown_id) {
    options_.labelled = !options.targets.empty();
  }

  Counts execute() {
    check();
    const prepare::ProgressUnit unit = prepare::progress_unit(source_bytes());
    Progress progress("prepare", source_bytes() / unit.bytes, unit.name);
    data::DatasetWriter writer(options_.output, preparation_.schema(), prepare::dataset_info(preparation_, options_));
    prepare::Report report(options_.report);
    writer_ = &writer;
    std::int64_t before = 0;  // bytes of the files that are done
    for (std::size_t i = 0; i < options_.inputs.size(); ++i) {
      prepare_file(i, report, [&](std::int64_t bytes) { progress.update((before + bytes) / unit.bytes); });
      before += sources_[i].bytes;
    }
    progress.finish();
    if (unknown_ > 0) {
      counts_.codes["ignored unknown_piece"] = unknown_;
      log::info("prepare: {} of {} pieces are unknown to the vocabulary ({:.3f} %)", unknown_, pieces_,
                100 * static_cast<double>(unknown_) / static_cast<double>(pieces_));
    }
    writer.finish(sources_, counts_.records, counts_.rejected, counts_.dropped);
    report.finish();
    return counts_;
  }

 private:
  // Sources, then targets.
  void check() {
    prepare::RunOptions all = options_;
    all.inputs.insert(all.inputs.end(), options_.targets.begin(), options_.targets.end());
    sources_ = prepare::check_inputs(preparation_, all);
  }

  std::int64_t source_bytes() const {
    return prepare::total_bytes({sources_.begin(), sources_.begin() + std::ssize(options_.inputs)});
  }

  void prepare_file(std::size_t i, prepare::Report& report, const std::function<void(std::int64_t)>& progress) {
    std::optional<std::filesystem::path> target;
    if (!options_.targets.empty()) target = options_.targets[i];
    prepare::InputFaults faults(sources_[i].name, report, counts_);
    faults.keep = [&](const data::Fault& fault) { writer_->add_fault(fault); };
    prepare::PassCallbacks callbacks;
    const std::int64_t first = counts_.records;
    callbacks.record = [&](prepare::PassRecord&& record) { take_record(std::move(record), i, first, faults); };
    callbacks.progress = [&](std::int64_t bytes) {
      progress(bytes);
      stop_if_asked();
    };
    if (sources_[i].sha256.empty()) callbacks.source = &sources_[i];
    const FilePair pair(preparation_, std::move(target));
    const prepare::PassEnd end = prepare::pass_over_file(pair, options_.inputs[i], callbacks);
    if (end.fault) {
      stop_if_asked();  // Ctrl-C ends the program at the other end of a pipe as well
      writer_->mark_missing({sources_[i].name, end.fault->what()});
    }
    faults.add_end(end, "pairs");
  }

  // first: records before this file.
  void take_record(prepare::PassRecord&& record, std::size_t file, std::int64_t first, prepare::InputFaults& rows) {
    prepare::Converted& converted = record.converted;
    const prepare::FaultList& faults = converted.faults;
    converted.id = std::to_string(first + record.index + 1);
    ++counts_.records;
    rows.add_record(record, options_.list_truncated);
    if (faults.rejected() || faults.dropped()) {
      ++(faults.rejected() ? counts_.rejected : counts_.dropped);
      if (options_.strict && faults.rejected()) {
        prepare::fail_strictly(sources_[file].name, record.index, faults);
      }
      return;
    }
    if (faults.warned()) ++counts_.warned;
    for (data::Example& example : converted.examples) take_example(example, converted.id);
  }

  void take_example(data::Example& example, const std::string& id) {
    example["id"] = id;
    if (options_.split == "train") example["reference"] = std::string();
    for (const char* side : {"source_ids", "target_ids"}) {
      const auto& ids = std::get<std::vector<std::int64_t>>(example.at(side));
      pieces_ += std::ssize(ids);
      unknown_ += std::count(ids.begin(), ids.end(), unknown_id_);
    }
    ++counts_.examples;
    writer_->append(example);
  }

  static void stop_if_asked() {
    if (!StopSignal::requested()) return;
    throw Interrupted(fmt::format("prepare: stopped by {}; nothing was written", StopSignal::name()));
  }

  const prepare::Preparation& preparation_;
  prepare::RunOptions options_;
  const std::int64_t unknown_id_;
  StopSignal stop_signal_;
  std::vector<data::SourceFile> sources_;
  data::DatasetWriter* writer_ = nullptr;
  std::int64_t pieces_ = 0, unknown_ = 0;
  Counts counts_;
};

}  // namespace

Counts run_pairs(const prepare::Preparation& preparation, const prepare::RunOptions& options, std::int64_t unknown_id) {
  return PairRun(preparation, options, unknown_id).execute();
}

}  // namespace etc::translation
