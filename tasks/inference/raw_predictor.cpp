#include "tasks/inference/raw_predictor.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/inputs.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/stop_signal.h"

namespace etc {

namespace fs = std::filesystem;

void RawPredictor::predict(const fs::path& input, const std::string& stopped,
                           const std::function<void(std::int64_t)>& progress) {
  where_ = data::raw_file_text(input);
  prepare::PassCallbacks callbacks;
  callbacks.record = [&](prepare::PassRecord&& record) { take(std::move(record)); };
  callbacks.progress = [&](std::int64_t) {
    flush(stopped);
    progress(done_);
  };
  const prepare::PassEnd end = prepare::is_stream(input) ? pass_over_stream(preparation_, input, callbacks)
                                                         : pass_over_file(preparation_, input, callbacks);
  if (end.fault) fail(where_, "{}: {}", end.fault->code(), end.fault->what());
}

void RawPredictor::take(prepare::PassRecord&& record) {
  const prepare::FaultList& faults = record.converted.faults;
  std::string error;
  for (const data::Fault& fault : faults.rows()) {
    if (fault.severity == data::Severity::warn) continue;
    const std::string text = fmt::format("{} {}: {}", fault.field, fault.code, fault.message);
    log::warn("{}: record {} {}: {}", where_, record.index, record.converted.id, text);
    error += (error.empty() ? "" : "; ") + text;
  }
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

void RawPredictor::flush(const std::string& stopped) {
  const Examples examples(waiting_);
  for (std::size_t first = 0; first < examples.size() && sink_.predictions != nullptr;) {
    if (StopSignal::requested()) throw Interrupted(stopped);
    const std::size_t end = end_of_micro_batch(running_, examples, first, where_);
    predict_examples(running_.model, examples.subspan(first, end - first), where_, *sink_.predictions);
    first = end;
  }
  std::size_t first = 0;
  for (const Record& record : records_) {
    if (!sink_.answer) break;
    if (StopSignal::requested()) throw Interrupted(stopped);
    const Examples own = examples.subspan(first, record.examples);
    first += record.examples;
    sink_.answer(own.empty() ? record.error : answer_of(running_, own, where_));
  }
  done_ += std::ssize(waiting_);
  waiting_.clear();
  records_.clear();
  for (const data::Fault& fault : refused_records_) {
    if (sink_.predictions != nullptr) sink_.predictions->add_rejected(fault);
  }
  refused_records_.clear();
}

std::int64_t bytes_of_reading(const std::vector<std::string>& inputs) {
  constexpr std::int64_t kMost = 32'000'000, kLeast = 4'000'000, kTimes = 6;
  std::int64_t most = kLeast;
  for (const std::string& input : inputs) {
    std::error_code unknown;  // of standard input
    const std::uintmax_t size = fs::file_size(input, unknown);
    most = std::max(most, unknown || size > kMost / kTimes ? kMost : kTimes * static_cast<std::int64_t>(size));
  }
  return most;
}

}  // namespace etc
