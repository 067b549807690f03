#include "tasks/inference/raw_predictor.h"

#include <algorithm>

#include "data/loader/order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/bytes.h"
#include "tasks/prepare/inputs.h"
#include "tasks/text/json_field.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/stop_signal.h"

namespace etc {

namespace fs = std::filesystem;

void RawPredictor::predict(const fs::path& input,
                           const std::function<void(std::int64_t examples, std::int64_t file_bytes)>& progress) {
  where_ = data::raw_file_text(input);
  prepare::PassCallbacks callbacks;
  callbacks.record = [&](prepare::PassRecord&& record) { take(std::move(record)); };
  callbacks.progress = [&](std::int64_t file_bytes) {
    flush();
    progress(done_, file_bytes);
  };
  // For a prediction file no writer waits for a single record, so records that arrive together are shared by several
  // processes.
  const bool one_at_a_time = prepare::is_stream(input) && (processes_.size() == 1 || sink_.answers);
  const prepare::PassEnd end =
      one_at_a_time ? pass_over_stream(preparation_, input, callbacks) : pass_over_file(preparation_, input, callbacks);
  if (end.fault) fail(where_, "{}: {}", end.fault->code(), end.fault->what());
}

// For a prediction file, which contains every id once: only the first record of an id has an entry, as in prepared
// data. Tasks that choose among the records of an id do so in their own file.
void RawPredictor::refuse_repeated(prepare::PassRecord& record) {
  const std::string& id = record.converted.id;
  if (sink_.predictions == nullptr || id.empty() || preparation_.unique_field() != nullptr) return;
  const auto [first, fresh] = first_of_id_.try_emplace(id, fmt::format("record {} of {}", record.index, where_));
  if (fresh) return;
  record.converted.faults.reject(preparation_.id_field(), "duplicate_id",
                                 fmt::format("the id was first seen at {}", first->second));
}

void RawPredictor::take(prepare::PassRecord&& record) {
  refuse_repeated(record);
  const prepare::FaultList& faults = record.converted.faults;
  const std::string error = log_faults(where_, record.index, record.converted);
  if (faults.rejected() || faults.dropped()) {
    ++refused_;
    data::Fault fault;
    fault.id = record.converted.id;
    refused_records_.push_back(fault);
    records_.push_back({0, {{"id", record.converted.id}, {"record", record.index}, {"error", error}}});
    return;
  }
  if (record.converted.gold && sink_.predictions != nullptr) sink_.predictions->add_gold(*record.converted.gold);
  Json error_if_empty;
  if (record.converted.examples.empty())
    error_if_empty = {
        {"id", record.converted.id}, {"record", record.index}, {"error", "the record has no text to read"}};
  records_.push_back({record.converted.examples.size(), std::move(error_if_empty)});
  for (data::Example& example : record.converted.examples) {
    waiting_.push_back({record.index, done_ + std::ssize(waiting_), std::move(example)});
  }
}

void RawPredictor::flush() {
  const std::vector<ExampleRange> groups = sink_.answers ? records_with_examples() : micro_batches();
  const bool shared = processes_.size() > 1 && groups.size() > 1;
  if (shared) send_waiting(groups);
  sink_.answers ? answer_waiting(groups, shared) : predict_waiting(groups, shared);
  done_ += std::ssize(waiting_);
  waiting_.clear();
  records_.clear();
  for (const data::Fault& fault : refused_records_) {
    if (sink_.predictions != nullptr) sink_.predictions->add_rejected(fault);
  }
  refused_records_.clear();
}

void RawPredictor::finish() {
  from_first(processes_, "");
}

void RawPredictor::help() {
  for (std::string sent = from_first(processes_, ""); !sent.empty(); sent = from_first(processes_, "")) {
    const std::vector<ExampleRange> groups = receive_waiting(sent);
    stop_if_told(processes_, stopped_);
    sink_.answers ? void(shared_lines(groups)) : predict_waiting(groups, true);
  }
}

Examples RawPredictor::examples_of(ExampleRange range) const {
  return Examples(waiting_).subspan(range.first, range.end - range.first);
}

std::vector<ExampleRange> RawPredictor::records_with_examples() const {
  std::vector<ExampleRange> ranges;
  std::size_t first = 0;
  for (const Record& record : records_) {
    if (record.examples > 0) ranges.push_back({first, first + record.examples});
    first += record.examples;
  }
  return ranges;
}

std::vector<ExampleRange> RawPredictor::micro_batches() {
  std::vector<ExampleRange> ranges;
  for (std::size_t first = 0; first < waiting_.size(); first = ranges.back().end) {
    ranges.push_back({first, end_of_micro_batch(running_, waiting_, first, where_)});
  }
  return ranges;
}

void RawPredictor::send_waiting(const std::vector<ExampleRange>& groups) {
  prepare::ByteWriter out;
  out.put(where_);
  out.put(groups.size());
  for (const ExampleRange& range : groups) {
    out.put(range.end - range.first);
    for (const data::LoadedExample& example : examples_of(range)) {
      out.put(example.index);
      out.put(example.sample_ordinal);
      out.put(example.features);
    }
  }
  from_first(processes_, out.text());
}

std::vector<ExampleRange> RawPredictor::receive_waiting(const std::string& sent) {
  prepare::ByteReader in(sent);
  in.get(where_);
  waiting_.clear();
  std::vector<ExampleRange> groups(in.get<std::size_t>());
  for (ExampleRange& range : groups) {
    range = {waiting_.size(), waiting_.size() + in.get<std::size_t>()};
    while (waiting_.size() < range.end) {
      data::LoadedExample& example = waiting_.emplace_back();
      in.get(example.index);
      in.get(example.sample_ordinal);
      in.get(example.features);
    }
  }
  in.require_end();
  return groups;
}

void RawPredictor::predict_waiting(const std::vector<ExampleRange>& groups, bool shared) {
  if (shared) {
    const auto examples = [&](std::int64_t number) {
      stop_if_told(processes_, stopped_);
      return examples_of(groups[static_cast<std::size_t>(number)]);
    };
    return predict_together(running_.model, {processes_, std::ssize(groups), examples, where_}, sink_.predictions);
  }
  for (const ExampleRange& range : groups) {
    stop_if_told(processes_, stopped_);
    predict_examples(running_.model, examples_of(range), where_, *sink_.predictions);
  }
}

std::string RawPredictor::line_of(ExampleRange record) {
  stop_if_told(processes_, stopped_);
  return text::one_line(answer_of(running_, examples_of(record), where_));
}

// Returns all lines in the first process, none in the others.
std::vector<std::string> RawPredictor::shared_lines(const std::vector<ExampleRange>& groups) {
  const data::Share mine = data::share_of(std::ssize(groups), processes_.rank(), processes_.size());
  prepare::ByteWriter own;
  for (std::int64_t i = mine.begin; i < mine.end; ++i) own.put(line_of(groups[static_cast<std::size_t>(i)]));
  std::vector<std::string> lines;
  for (const std::string& some : collect(processes_, own.text())) {
    for (prepare::ByteReader in(some); !in.at_end();) lines.push_back(in.get<std::string>());
  }
  return lines;
}

void RawPredictor::answer_waiting(const std::vector<ExampleRange>& groups, bool shared) {
  const std::vector<std::string> lines = shared ? shared_lines(groups) : std::vector<std::string>{};
  std::size_t next = 0;  // index into groups
  for (const Record& record : records_) {
    if (record.examples == 0) {
      sink_.answers(text::one_line(record.error));
    } else {
      sink_.answers(shared ? lines[next] : line_of(groups[next]));
      ++next;
    }
  }
}

std::string faults_text(const prepare::Converted& converted) {
  std::string text;
  for (const data::Fault& fault : converted.faults.rows()) {
    if (fault.severity == data::Severity::warn) continue;
    const std::string field = fault.field.empty() ? "" : fault.field + " ";  // none: the whole record is at fault
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", field, fault.code, fault.message);
  }
  return text;
}

std::string log_faults(const std::string& where, std::int64_t record, const prepare::Converted& converted) {
  std::string text = faults_text(converted);
  const std::string id = converted.id.empty() ? "" : " " + converted.id;
  if (!text.empty()) log::warn("{}: record {}{}: {}", where, record, id, text);
  return text;
}

std::int64_t bytes_of_reading(const std::vector<std::string>& inputs) {
  constexpr std::int64_t kMost = 32'000'000, kLeast = 4'000'000, kTimes = 6;
  std::int64_t most = kLeast;
  for (const std::string& input : inputs) {
    std::error_code unknown;  // for standard input
    const std::uintmax_t size = fs::file_size(input, unknown);
    most = std::max(most, unknown || size > kMost / kTimes ? kMost : kTimes * static_cast<std::int64_t>(size));
  }
  return most;
}

}  // namespace etc
