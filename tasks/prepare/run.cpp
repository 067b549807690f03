#include "tasks/prepare/run.h"

#include <array>
#include <optional>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/choice.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/first_pass.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/parted_run.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/agreement.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

class Run final : public PartedRun {
 public:
  using PartedRun::PartedRun;

 private:
  void begin() override {
    if (preparation_.unique_field() != nullptr) choose_records();
  }

  // The first pass: which record of each id is kept.
  void choose_records() {
    constexpr std::array kWalks = {"first pass", "repeated ids"};
    std::optional<Progress> progress;
    int shown = -1;
    records_ = prepare::choose_records(preparation_, options_.inputs, [&](int walk, std::int64_t bytes) {
      if (walk != shown)
        progress.emplace(kWalks[static_cast<std::size_t>(walk)], bytes_of_inputs() / unit().bytes, unit().name);
      shown = walk;
      progress->update(bytes / unit().bytes);
      stop_if_asked();
    });
  }

  // The part's ids: one JSON string per line and record, "" for a record without a readable id.
  void found_part(std::size_t i) override {
    const fs::path path = part_files(i).ids;
    std::istringstream lines(read_file(path));
    std::string line;
    for (std::int64_t record = 0; std::getline(lines, line); ++record) {
      const auto id = parse_json(line, path.string()).get<std::string>();
      if (!id.empty() && preparation_.unique_field() == nullptr) records_.add(id, {i, record}, 0);
    }
  }

  Counts prepare_input(std::size_t i, const Sink& sink, data::SourceFile* source) override {
    Counts counts;
    InputFaults faults(sources()[i].name, sink.report, counts);
    faults.keep = [&](const data::Fault& fault) { sink.writer.add_fault(fault); };
    std::optional<AtomicFile> ids;
    if (!is_last(i)) ids.emplace(part_files(i).ids);
    PassCallbacks callbacks;
    callbacks.record = [&](PassRecord&& record) {
      take_record(std::move(record), i, sink.writer, counts, faults);
      if (ids) ids->write(json_line(Json(record.converted.id)) + "\n");
    };
    callbacks.progress = [&](std::int64_t bytes) {
      update_progress(bytes, fmt::format("{} records", counts_before().records + counts.records));
      stop_if_asked();
    };
    callbacks.source = source;
    callbacks.processes = options_.processes;
    take_end(i, pass_over_file(preparation_, options_.inputs[i], callbacks), "records", sink, faults);
    if (ids) ids->commit();
    return counts;
  }

  void help_with(std::size_t i) override { help_over_file(preparation_, options_.inputs[i], *options_.processes); }

  // Keeps one record per id: the chosen one, or the first.
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
      converted.faults.reject(preparation_.id_field(), "duplicate_id",
                              fmt::format("the id was first seen at {}, again at record {}", place, record.index));
    } else if (converted.was_candidate) {
      converted.faults = FaultList();  // other faults of a record that is left out do not matter
      converted.faults.drop(field, std::string("duplicate_") + field,
                            fmt::format("{} is kept for this {}", place, field));
    }
  }

  std::string in_other_file(std::size_t file, std::size_t here) const {
    return file == here ? "" : " of " + sources()[file].name;
  }

  void take_record(PassRecord&& record, std::size_t file, data::DatasetWriter& writer, Counts& counts,
                   InputFaults& rows) {
    Converted& converted = record.converted;
    FaultList& faults = converted.faults;
    ++counts.records;
    reject_repeated(record, file);
    rows.add_record(record, options_.list_truncated);
    if (faults.rejected() || faults.dropped()) {
      ++(faults.rejected() ? counts.rejected : counts.dropped);
      if (options_.strict && faults.rejected()) fail_strictly(sources()[file].name, record.index, faults);
      return;
    }
    if (faults.warned()) ++counts.warned;
    counts.examples += static_cast<std::int64_t>(converted.examples.size());
    for (const data::Example& example : converted.examples) writer.append(example);
    if (converted.gold) writer.append_gold(*converted.gold);
  }

  Choice records_;  // of each id: the chosen record, or the first
};

// Throws Error unless inputs and settings are the same in all processes.
void require_equal_work(const Preparation& preparation, const RunOptions& options) {
  for (const fs::path& input : files_of(options)) {
    if (!is_stream(input)) continue;
    fail_usage("etc prepare", "input {}: expected a file, which each of {} processes can read, got a stream",
               input.string(), options.processes->size());
  }
  Json own = program_identity();
  own["preparation"] = run_configuration(preparation, options);
  for (const data::SourceFile& source : check_inputs(preparation, options)) own["inputs"][source.name] = source.sha256;
  require_agreement(*options.processes, own);
}

Counts run_own_way(const Preparation& preparation, const RunOptions& options) {
  if (const WholeRun* whole = preparation.whole_run()) return whole->run(options);
  return Run(preparation, options).execute();
}

Counts run_shared(const Preparation& preparation, const RunOptions& options) {
  Communicator& processes = *options.processes;
  try {
    require_equal_work(preparation, options);
    const Counts own = run_own_way(preparation, options);
    return counts_of(parse_json(from_first(processes, json_line(json_of(own))), "counts of the first process"));
  } catch (const Interrupted& stopped) {
    fail("etc", "{}", stopped.what());  // only this process was stopped: the others must be told
  }
}

}  // namespace

Counts run(const Preparation& preparation, const RunOptions& options) {
  if (options.inputs.empty()) fail_usage("etc prepare", "expected at least one input file");
  if (options.processes != nullptr && options.processes->size() > 1) return run_shared(preparation, options);
  return run_own_way(preparation, options);
}

}  // namespace etc::prepare
