#include "tasks/translation/pair_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "data/readers/parallel_lines.h"
#include "data/text/sha256.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/not_copied.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/parted_run.h"

namespace etc::translation {

namespace {

using prepare::Counts;

// A target that is read only once and hashed while it is read.
class TargetStream : NotCopied {
 public:
  explicit TargetStream(const std::filesystem::path& path) : stream_(path) { stream_.hash_into(hash_); }

  data::ByteStream& stream() { return stream_; }
  // Reads the rest of it.
  void finish(data::SourceFile& source) {
    stream_.read_rest();
    source.bytes = stream_.position();
    source.sha256 = hash_.hex();
  }

 private:
  data::ByteStream stream_;
  data::Sha256 hash_;
};

// The preparation of one pair of files.
class FilePair final : public prepare::Preparation {
 public:
  // stream: the target's stream; null: the target is a file, which every pass opens.
  FilePair(const prepare::Preparation& all, std::optional<std::filesystem::path> target, data::ByteStream* stream)
      : all_(all), target_(std::move(target)), target_stream_(stream) {}

  const data::Schema& schema() const override { return all_.schema(); }
  const std::string& vocab_sha256() const override { return all_.vocab_sha256(); }
  Json preprocess_config() const override { return all_.preprocess_config(); }
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override {
    if (target_stream_ != nullptr) return std::make_unique<data::ParallelLines>(stream, *target_stream_, *target_);
    return std::make_unique<data::ParallelLines>(stream, target_);
  }
  prepare::Converted convert_record(data::RecordSlice& record) const override { return all_.convert_record(record); }

 private:
  const prepare::Preparation& all_;
  std::optional<std::filesystem::path> target_;
  data::ByteStream* target_stream_;
};

constexpr const char* kUnknown = "ignored unknown_piece";

prepare::RunOptions labelled_by_targets(prepare::RunOptions options) {
  options.labelled = !options.targets.empty();
  return options;
}

class PairRun final : public prepare::PartedRun {
 public:
  PairRun(const prepare::Preparation& preparation, const prepare::RunOptions& options, std::int64_t unknown_id)
      : PartedRun(preparation, labelled_by_targets(options)), unknown_id_(unknown_id) {}

 private:
  FilePair pair(std::size_t i, data::ByteStream* target = nullptr) const {
    if (options_.targets.empty()) return {preparation_, std::nullopt, nullptr};
    return {preparation_, options_.targets[i], target};
  }

  // Null: the target is missing or a file.
  data::SourceFile* target_source(std::size_t i) {
    return options_.targets.empty() ? nullptr : stream_source(options_.inputs.size() + i);
  }

  Counts prepare_input(std::size_t i, const prepare::Sink& sink, data::SourceFile* source) override {
    Counts counts;
    prepare::InputFaults faults(sources()[i].name, sink.report, counts);
    faults.keep = [&](const data::Fault& fault) { sink.writer.add_fault(fault); };
    prepare::PassCallbacks callbacks;
    callbacks.record = [&](prepare::PassRecord&& record) { take_record(record, i, sink.writer, counts, faults); };
    callbacks.progress = [&](std::int64_t bytes) {
      update_progress(bytes);
      stop_if_asked();
    };
    callbacks.source = source;
    callbacks.processes = options_.processes;
    data::SourceFile* const once = target_source(i);
    std::optional<TargetStream> target;
    if (once != nullptr) target.emplace(options_.targets[i]);
    const FilePair both = pair(i, target ? &target->stream() : nullptr);
    take_end(i, prepare::pass_over_file(both, options_.inputs[i], callbacks), "pairs", sink, faults);
    if (target) target->finish(*once);
    return counts;
  }

  void help_with(std::size_t i) override { prepare::help_over_file(pair(i), options_.inputs[i], *options_.processes); }

  // Records are numbered over all files.
  void take_record(prepare::PassRecord& record, std::size_t file, data::DatasetWriter& writer, Counts& counts,
                   prepare::InputFaults& rows) {
    prepare::Converted& converted = record.converted;
    const prepare::FaultList& faults = converted.faults;
    converted.id = std::to_string(counts_before().records + record.index + 1);
    ++counts.records;
    rows.add_record(record, options_.list_truncated);
    if (faults.rejected() || faults.dropped()) {
      ++(faults.rejected() ? counts.rejected : counts.dropped);
      if (options_.strict && faults.rejected()) {
        prepare::fail_strictly(sources()[file].name, record.index, faults);
      }
      return;
    }
    if (faults.warned()) ++counts.warned;
    for (data::Example& example : converted.examples) {
      example["id"] = converted.id;
      if (options_.split == "train") example["reference"] = std::string();
      ++counts.examples;
      if (const std::int64_t unknown = unknown_in(example); unknown > 0) counts.codes[kUnknown] += unknown;
      if (is_last(file)) copied(example);
      writer.append(example);
    }
  }

  static const std::vector<std::int64_t>& ids_of(const data::Example& example, const char* side) {
    return std::get<std::vector<std::int64_t>>(example.at(side));
  }

  std::int64_t unknown_in(const data::Example& example) const {
    const auto &source = ids_of(example, "source_ids"), &target = ids_of(example, "target_ids");
    return std::count(source.begin(), source.end(), unknown_id_) +
           std::count(target.begin(), target.end(), unknown_id_);
  }

  void copied(const data::Example& example) override {
    pieces_ += std::ssize(ids_of(example, "source_ids")) + std::ssize(ids_of(example, "target_ids"));
  }

  void check(const Counts& counts) override {
    const auto unknown = counts.codes.find(kUnknown);
    if (unknown == counts.codes.end()) return;
    log::info("prepare: {} of {} pieces are unknown to the vocabulary ({:.3f} %)", unknown->second, pieces_,
              100 * static_cast<double>(unknown->second) / static_cast<double>(pieces_));
  }

  const std::int64_t unknown_id_;
  std::int64_t pieces_ = 0;  // in the output
};

}  // namespace

Counts run_pairs(const prepare::Preparation& preparation, const prepare::RunOptions& options, std::int64_t unknown_id) {
  return PairRun(preparation, options, unknown_id).execute();
}

}  // namespace etc::translation
