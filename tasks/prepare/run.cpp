#include "tasks/prepare/run.h"

#include <array>
#include <functional>
#include <optional>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/choice.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/first_pass.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/parts.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/agreement.h"
#include "tasks/train/stop_signal.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

// What the first process tells the others about each file.
constexpr const char *kWalk = "walk", *kSkip = "skip";

// Where the records of one input file go.
struct Sink {
  data::DatasetWriter& writer;
  Report& report;
  AtomicFile* ids;  // null: not wanted
};

class Run {
 public:
  Run(const Preparation& preparation, const RunOptions& options)
      : preparation_(preparation),
        options_(options),
        parts_(place_of_parts(options), run_configuration(preparation, options)) {}

  Counts execute() {
    sources_ = check_inputs(preparation_, options_);
    const bool stream = is_stream(options_.inputs.back());
    total_bytes_ = total_bytes(sources_);
    unit_ = progress_unit(total_bytes_);
    if (preparation_.unique_field() != nullptr) choose_records();
    Progress progress("prepare", total_bytes_ / unit_.bytes, unit_.name);
    progress_ = &progress;
    const std::size_t last = options_.inputs.size() - 1;
    for (std::size_t i = 0; i < last; ++i) finish_part(i);

    // The last file needs no part: it goes behind the parts into the output.
    data::DatasetWriter writer(options_.output, preparation_.schema(), dataset_info(preparation_, options_));
    Report report(options_.report);
    for (std::size_t i = 0; i < last; ++i) take_part(i, writer, report);
    call_helpers(true);
    counts_.add(prepare_file(last, {writer, report, nullptr}, stream ? &sources_[last] : nullptr));
    progress.finish();
    writer.finish(sources_, counts_.records, counts_.rejected, counts_.dropped);
    report.finish();
    parts_.remove();
    return counts_;
  }

 private:
  PartFiles part_files(std::size_t i) const {
    std::vector<data::SourceFile> inputs(sources_.begin(), sources_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (preparation_.unique_field() != nullptr) inputs.insert(inputs.end(), sources_.begin(), sources_.end());
    return parts_.files_of(inputs);
  }

  // The first pass: which record of each id is kept.
  void choose_records() {
    constexpr std::array kWalks = {"first pass", "repeated ids"};
    std::optional<Progress> progress;
    int shown = -1;
    records_ = prepare::choose_records(preparation_, options_.inputs, [&](int walk, std::int64_t bytes) {
      if (walk != shown)
        progress.emplace(kWalks[static_cast<std::size_t>(walk)], total_bytes_ / unit_.bytes, unit_.name);
      shown = walk;
      progress->update(bytes / unit_.bytes);
      stop_if_asked();
    });
  }

  // Makes sure that part i is there and its ids are known.
  void finish_part(std::size_t i) {
    const PartFiles files = part_files(i);
    std::optional<Counts> counts = parts_.finished(files);
    if (counts) {
      log::info("prepare: {} is finished from an earlier run", sources_[i].name);
      read_ids(files.ids, i);
      call_helpers(false);
    } else {
      data::DatasetWriter writer(files.examples, preparation_.schema(), dataset_info(preparation_, options_));
      Report report(files.report);
      AtomicFile ids(files.ids);
      call_helpers(true);
      counts = prepare_file(i, {writer, report, &ids}, nullptr);
      writer.finish({sources_[i]}, counts->records, counts->rejected, counts->dropped);
      report.finish();
      ids.commit();
      parts_.finish(files, *counts);
    }
    part_counts_.push_back(*counts);
    bytes_before_ += sources_[i].bytes;
  }

  // One JSON string per line and record, "" for a record without a readable id.
  void read_ids(const fs::path& path, std::size_t file) {
    std::istringstream lines(read_file(path));
    std::string line;
    for (std::int64_t record = 0; std::getline(lines, line); ++record) {
      const auto id = parse_json(line, path.string()).get<std::string>();
      if (!id.empty() && preparation_.unique_field() == nullptr) records_.add(id, {file, record}, 0);
    }
  }

  void take_part(std::size_t i, data::DatasetWriter& writer, Report& report) {
    const PartFiles files = part_files(i);
    const data::DatasetReader reader({files.examples}, preparation_.schema());
    for (std::int64_t e = 0; e < reader.size(); ++e) {
      stop_if_asked();
      writer.append(reader.read(e));
    }
    for (std::int64_t row = 0; row < reader.gold_size(); ++row) writer.append_gold(reader.read_gold(row));
    for (const data::Fault& fault : reader.faults()) writer.add_fault(fault);
    for (const data::MissingPart& part : reader.info().missing) writer.mark_missing(part);
    report.append(read_file(files.report));
    counts_.add(part_counts_[i]);
  }

  // Whether the other processes are needed for a file.
  void call_helpers(bool needed) const {
    if (options_.processes != nullptr) from_first(*options_.processes, needed ? kWalk : kSkip);
  }

  // source: gets size and hash of a stream, which are known at its end; null for a file.
  Counts prepare_file(std::size_t i, const Sink& sink, data::SourceFile* source) {
    Counts counts;
    InputFaults faults(sources_[i].name, sink.report, counts);
    faults.keep = [&](const data::Fault& fault) { sink.writer.add_fault(fault); };
    PassCallbacks callbacks;
    callbacks.record = [&](PassRecord&& record) { take_record(std::move(record), i, sink, counts, faults); };
    callbacks.progress = [&](std::int64_t bytes) {
      progress_->update((bytes_before_ + bytes) / unit_.bytes,
                        fmt::format("{} records", counts_.records + counts.records));
      stop_if_asked();
    };
    callbacks.source = source;
    callbacks.processes = options_.processes;
    const PassEnd end = pass_over_file(preparation_, options_.inputs[i], callbacks);
    if (end.fault) {
      stop_if_asked();  // Ctrl-C ends the program at the other end of a pipe as well
      sink.writer.mark_missing({sources_[i].name, end.fault->what()});
    }
    faults.add_end(end, "records");
    return counts;
  }

  // One record per id: the chosen one, or the first.
  void reject_repeated(PassRecord& record, std::size_t file) {
    Converted& converted = record.converted;
    if (converted.id.empty()) return;
    const Choice::Place here{file, record.index};
    const char* field = preparation_.unique_field();
    if (field == nullptr) records_.add(converted.id, here, 0);
    const Choice::Place* kept = records_.kept(converted.id);
    if (kept == nullptr || *kept == here) return;
    const std::string place = fmt::format("record {}{}", kept->record, in_other_file(kept->file, file));
    if (field == nullptr) {
      converted.faults.reject("id", "duplicate_id",
                              fmt::format("the id was first seen at {}, again at record {}", place, record.index));
    } else if (!converted.faults.rejected()) {
      converted.faults = FaultList();  // what else is wrong with a record that is left out does not matter
      converted.faults.drop(field, std::string("duplicate_") + field,
                            fmt::format("{} is kept for this {}", place, field));
    }
  }

  std::string in_other_file(std::size_t file, std::size_t here) const {
    return file == here ? "" : " of " + sources_[file].name;
  }

  void take_record(PassRecord&& record, std::size_t file, const Sink& sink, Counts& counts, InputFaults& rows) {
    Converted& converted = record.converted;
    FaultList& faults = converted.faults;
    ++counts.records;
    reject_repeated(record, file);
    rows.add_record(record, options_.list_truncated);
    if (sink.ids != nullptr) {
      sink.ids->write(json_line(Json(converted.id)) + "\n");
    }
    if (faults.rejected() || faults.dropped()) {
      ++(faults.rejected() ? counts.rejected : counts.dropped);
      if (options_.strict && faults.rejected()) fail_strictly(sources_[file].name, record.index, faults);
      return;
    }
    if (faults.warned()) ++counts.warned;
    counts.examples += static_cast<std::int64_t>(converted.examples.size());
    for (const data::Example& example : converted.examples) sink.writer.append(example);
    if (converted.gold) sink.writer.append_gold(*converted.gold);
  }

  void stop_if_asked() const {
    if (!StopSignal::requested()) return;
    throw Interrupted(
        fmt::format("prepare: stopped by {}; {} of {} input files are finished and kept, the same command "
                    "goes on from there",
                    StopSignal::name(), part_counts_.size(), options_.inputs.size()));
  }

  const Preparation& preparation_;
  const RunOptions& options_;
  Parts parts_;
  StopSignal stop_signal_;
  Choice records_;  // of each id: the chosen record, or the first
  std::vector<data::SourceFile> sources_;
  std::int64_t total_bytes_ = 0, bytes_before_ = 0;
  ProgressUnit unit_ = progress_unit(0);
  std::vector<Counts> part_counts_;
  Counts counts_;
  Progress* progress_ = nullptr;
};

// What the other processes do: the same walks, whose results go to the first one.
void help(const Preparation& preparation, const RunOptions& options) {
  const StopSignal stop_signal;
  for (const fs::path& input : options.inputs) {
    if (from_first(*options.processes, "") == kSkip) continue;
    PassCallbacks callbacks;
    callbacks.record = [](PassRecord&&) {};
    callbacks.progress = [](std::int64_t) {
      if (StopSignal::requested()) throw Interrupted(std::string("prepare: stopped by ") + StopSignal::name());
    };
    callbacks.processes = options.processes;
    pass_over_file(preparation, input, callbacks);
  }
}

// Inputs and settings must be the same in all processes.
void require_equal_work(const Preparation& preparation, const RunOptions& options) {
  if (preparation.whole_run() != nullptr) {
    fail_usage("etc prepare", "expected one process, got {}: task {} makes its examples of all records together",
               options.processes->size(), preparation.schema().task);
  }
  for (const fs::path& input : options.inputs) {
    if (!is_stream(input)) continue;
    fail_usage("etc prepare", "input {}: expected a file, which each of {} processes can read, got a stream",
               input.string(), options.processes->size());
  }
  Json own = program_identity();
  own["preparation"] = run_configuration(preparation, options);
  for (const data::SourceFile& source : check_inputs(preparation, options)) own["inputs"][source.name] = source.sha256;
  require_agreement(*options.processes, own);
}

Counts run_shared(const Preparation& preparation, const RunOptions& options) {
  Communicator& processes = *options.processes;
  try {
    require_equal_work(preparation, options);
    std::string counts;
    if (processes.first()) {
      counts = json_line(json_of(Run(preparation, options).execute()));
    } else {
      help(preparation, options);
    }
    return counts_of(parse_json(from_first(processes, counts), "counts of the first process"));
  } catch (const Interrupted& stopped) {
    fail("etc", "{}", stopped.what());  // of this process alone: the others must hear of it
  }
}

}  // namespace

Counts run(const Preparation& preparation, const RunOptions& options) {
  if (options.inputs.empty()) fail_usage("etc prepare", "expected at least one input file");
  if (options.processes != nullptr && options.processes->size() > 1) return run_shared(preparation, options);
  if (const WholeRun* whole = preparation.whole_run()) return whole->run(options);
  return Run(preparation, options).execute();
}

}  // namespace etc::prepare
