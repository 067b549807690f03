#include "tasks/cli/time_forecast.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace etc::cli {

namespace {

// One layer of each kind: the first writes the running scores, middle ones add to them, the last does not write them.
constexpr std::int64_t kSliceLayers = 3;
constexpr std::int64_t kSliceTokens = 2048;  // long tokens, at most
constexpr std::int64_t kSliceBlock = 4;      // long tokens per global one, at least, if the call has more
// A machine's rates vary from second to second, most of all while other programs run, so the mean over some seconds
// predicts a long call better than a single moment. For a short call, a number of calls of its own length suffices, and
// fewer where they take equally long.
constexpr std::int64_t kFewestTurns = 2;
constexpr double kMeasuredSeconds = 2.0;
constexpr double kMeasuredCalls = 50;
constexpr std::int64_t kSteadyTurns = 12;  // at least, before their times are compared
constexpr double kSteadyError = 0.02;      // of their mean, relative

// The quantity that an operator's time is proportional to.
double units(const profiler::Row& row) {
  if (row.work.operations > 0) return row.work.operations;
  return row.work.bytes > 0 ? row.work.bytes : static_cast<double>(row.calls);
}

template <typename Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Times of equal calls.
class Turns {
 public:
  void add(double seconds) {
    ++count_;
    sum_ += seconds;
    squares_ += seconds * seconds;
  }
  std::int64_t count() const { return count_; }
  double seconds() const { return sum_; }
  // Whether the standard error of their mean is small.
  bool steady() const {
    if (count_ < kSteadyTurns) return false;
    const double n = static_cast<double>(count_), variance = std::max(0.0, squares_ - sum_ * sum_ / n) / (n - 1);
    return std::sqrt(variance / n) <= kSteadyError * sum_ / n;
  }

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

}  // namespace

SliceInput slice_input(std::int64_t length, std::int64_t tokens_per_global) {
  if (length <= kSliceTokens) return {length, tokens_per_global};
  const std::int64_t block = std::max(kSliceBlock, tokens_per_global * kSliceTokens / length);
  return {kSliceTokens, std::min(tokens_per_global, block)};
}

ModelConfig slice_model(const EncoderConfig& model) {
  ModelConfig slice = model;
  slice->keep_layers(kSliceLayers);
  return slice;
}

OperatorRates::OperatorRates(const EncoderConfig& model, CallMode mode, InferenceTypes types, Device device,
                             SliceInput shape) {
  const ModelConfig slice = slice_model(model);
  const EncoderInput input = random_input(*slice, shape.length, shape.tokens_per_global);
  EncoderCall call(*slice, mode, types);
  call.initialize(device);
  call.run(input);  // warms caches and does one-time work
  const auto seconds_of_call = [&] { return seconds_of([&] { call.run(input); }); };
  const double enough = std::min(kMeasuredSeconds, kMeasuredCalls * seconds_of_call());
  const double processor_start = processor_seconds();
  profiler::start();
  Turns turns;
  while (turns.count() < kFewestTurns || (turns.seconds() < enough && !turns.steady())) turns.add(seconds_of_call());
  profiler::stop();
  processor_ = (processor_seconds() - processor_start) / profiler::elapsed();
  double inside = 0;
  for (const profiler::Row& row : profiler::rows()) {
    seconds_per_unit_[row.name] = row.seconds / units(row);  // both summed over all runs
    inside += row.seconds;
  }
  outside_ = (profiler::elapsed() - inside) / inside;
}

Seconds OperatorRates::of(const std::vector<profiler::Row>& work) const {
  double inside = 0;
  for (const profiler::Row& row : work) {
    const auto found = seconds_per_unit_.find(row.name);
    if (found != seconds_per_unit_.end()) inside += units(row) * found->second;
  }
  const double wall = inside * (1 + outside_);
  return {wall, wall * processor_};
}

}  // namespace etc::cli
