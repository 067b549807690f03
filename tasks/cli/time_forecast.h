// Forecast of the time of a call.
//
// A slice of the model (a few layers of its widths on a short input) is run and profiled: that gives the seconds of
// each operator per useful operation, or byte, on this machine as it is now. The call itself is counted
// (nn/count_memory.h): that gives its work per operator. The forecast is the product of both.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "etc_core/base/profiler.h"
#include "tasks/cli/encoder_call.h"

namespace etc::cli {

struct Seconds {
  double wall = 0;
  double processor = 0;  // CPU time of all threads
};

// The input of a slice. It is as short as the call's input if that is short, since short inputs run at other rates, and
// has as many global tokens as the call, since rows with many keys run at other rates than rows with few.
struct SliceInput {
  std::int64_t length = 0;             // L
  std::int64_t tokens_per_global = 0;  // of this length, so at most that of the call

  auto operator<=>(const SliceInput&) const = default;
};
SliceInput slice_input(std::int64_t length, std::int64_t tokens_per_global);

// The model reduced to the few layers of a slice.
ModelConfig slice_model(const EncoderConfig& model);

class OperatorRates {
 public:
  // Runs the slice once to warm up and once to time it, then profiles at least two runs, until two seconds or the time
  // of 50 runs are over, or the mean of at least 12 is known to two percent. Uses the profiler. Memory used by the slice
  // stays with the process until release_unused_memory().
  OperatorRates(const EncoderConfig& model, CallMode mode, InferenceTypes types, Device device, SliceInput shape);

  // The time of a call with this work per operator.
  Seconds of(const std::vector<profiler::Row>& work) const;

 private:
  std::map<std::string, double, std::less<>> seconds_per_unit_;
  double outside_ = 0;    // seconds outside of operators per second inside
  double processor_ = 0;  // CPU seconds per second of wall time
};

}  // namespace etc::cli
