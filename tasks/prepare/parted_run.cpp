#include "tasks/prepare/parted_run.h"

#include <memory>

#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc::prepare {

namespace {

// Commands of the first process to the others for each input.
constexpr const char *kWalk = "walk", *kSkip = "skip";

}  // namespace

PartedRun::PartedRun(const Preparation& preparation, const RunOptions& options)
    : preparation_(preparation),
      options_(options),
      parts_(place_of_parts(options_), run_configuration(preparation, options_)) {}

Counts PartedRun::execute() {
  if (options_.processes == nullptr || options_.processes->first()) return lead();
  help();
  return {};
}

Counts PartedRun::lead() {
  sources_ = check_inputs(preparation_, options_);
  if (options_.inputs.size() > 1) parts_.hold();
  input_bytes_ = total_bytes({sources_.begin(), sources_.begin() + std::ssize(options_.inputs)});
  unit_ = progress_unit(input_bytes_);
  begin();
  progress_.emplace("prepare", input_bytes_ / unit_.bytes, unit_.name);
  const std::size_t last = options_.inputs.size() - 1;
  for (std::size_t i = 0; i < last; ++i) finish_part(i);

  // The last input needs no part: it is written directly to the output, after the parts.
  data::DatasetWriter writer(options_.output, preparation_.schema(), dataset_info(preparation_, options_));
  Report report(options_.report);
  const Sink output{writer, report};
  for (std::size_t i = 0; i < last; ++i) take_part(i, output);
  call_helpers(true);
  Counts counts = prepare_input(last, output, stream_source(last));
  progress_->finish();
  Counts all = done_;
  all.add(counts);
  check(all);
  writer.finish(sources_, all.records, all.rejected, all.dropped);
  report.finish();
  if (options_.parts_room != nullptr) *options_.parts_room = {parts_.bytes(), last};
  parts_.remove();
  return all;
}

void PartedRun::help() {
  for (std::size_t i = 0; i < options_.inputs.size(); ++i) {
    if (from_first(*options_.processes, "") == kWalk) help_with(i);
  }
}

// Tells the other processes whether they are needed for an input.
void PartedRun::call_helpers(bool needed) const {
  if (options_.processes != nullptr) from_first(*options_.processes, needed ? kWalk : kSkip);
}

// The part depends on the inputs up to i, or on all if records are chosen among all.
PartFiles PartedRun::part_files(std::size_t i) const {
  const auto inputs = std::ssize(options_.inputs), count = static_cast<std::ptrdiff_t>(i) + 1;
  std::vector<data::SourceFile> files;
  for (auto first = sources_.begin(); first != sources_.end(); first += inputs) {
    files.insert(files.end(), first, first + count);
  }
  if (preparation_.unique_field() != nullptr) files.insert(files.end(), sources_.begin(), sources_.end());
  return parts_.files_of(files);
}

// Ensures that part i exists and that the information about it is known.
void PartedRun::finish_part(std::size_t i) {
  const PartFiles files = part_files(i);
  std::optional<Counts> counts = parts_.finished(files);
  if (counts) {
    check_part_strictly(*counts, options_);
    log::info("prepare: {} is finished from an earlier run", sources_[i].name);
    parts_.reading([&] { found_part(i); });
    call_helpers(false);
  } else {
    data::DatasetWriter writer(files.examples, preparation_.schema(), dataset_info(preparation_, options_));
    Report report(files.report);
    call_helpers(true);
    counts = prepare_input(i, {writer, report}, nullptr);
    writer.finish({sources_[i]}, counts->records, counts->rejected, counts->dropped);
    report.finish();
    parts_.finish(files, *counts);
  }
  ++finished_parts_;
  done_.add(*counts);
  bytes_before_ += sources_[i].bytes;
}

void PartedRun::take_part(std::size_t i, const Sink& output) {
  const PartFiles files = part_files(i);
  const auto open = [&] {
    return std::make_unique<data::DatasetReader>(std::vector{files.examples}, preparation_.schema(),
                                                 data::ReadOrder::once);
  };
  const auto reader = parts_.reading(open);
  for (std::int64_t e = 0; e < reader->size(); ++e) {
    stop_if_asked();
    const data::Example example = parts_.reading([&] { return reader->read(e); });
    copied(example);
    output.writer.append(example);
  }
  for (std::int64_t row = 0; row < reader->gold_size(); ++row) {
    output.writer.append_gold(parts_.reading([&] { return reader->read_gold(row); }));
  }
  for (const data::Fault& fault : parts_.reading([&] { return reader->faults(); })) output.writer.add_fault(fault);
  for (const data::MissingPart& part : reader->info().missing) output.writer.mark_missing(part);
  output.report.append(parts_.reading([&] { return read_file(files.report); }));
}

void PartedRun::update_progress(std::int64_t bytes_of_input, const std::string& note) {
  if (progress_) progress_->update((bytes_before_ + bytes_of_input) / unit_.bytes, note);
}

void PartedRun::take_end(std::size_t i, const PassEnd& end, const char* unit, const Sink& sink,
                         InputFaults& faults) const {
  if (end.fault) {
    stop_if_asked();  // Ctrl-C also ends the program at the other end of a pipe
    sink.writer.mark_missing({sources_[i].name, end.fault->what()});
  }
  faults.add_end(end, unit);
}

void PartedRun::stop_if_asked() const {
  if (!StopSignal::requested()) return;
  throw Interrupted(
      fmt::format("prepare: stopped by {}; {} of {} input files are finished and kept, the same command goes on from "
                  "there",
                  StopSignal::name(), finished_parts_, options_.inputs.size()));
}

}  // namespace etc::prepare
