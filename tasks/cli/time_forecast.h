// How long a call will take, before it runs.
//
// A slice of the model (a few layers of its widths on a short input) is run and profiled: that gives the seconds of
// each operator per useful operation, or byte, on this machine as it is now. The call itself is counted
// (nn/count_memory.h): that gives its work per operator. One times the other is the forecast.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "etc_core/base/profiler.h"
#include "tasks/cli/encoder_call.h"

namespace etc::cli {

struct Seconds {
  double wall = 0;
  double processor = 0;  // of all threads
};

class OperatorRates {
 public:
  // Runs the slice for calls of `length` twice: half the time of such a call, less and less for longer ones. Takes the
  // profiler.
  OperatorRates(const EtcConfig& model, CallMode mode, ComputeType compute, Device device, std::int64_t length,
                std::int64_t tokens_per_global);

  // Long tokens of the slice for calls of `length`: short inputs run at other rates than long ones.
  static std::int64_t slice_length(std::int64_t length);

  // Of a call with this work per operator.
  Seconds of(const std::vector<profiler::Row>& work) const;

 private:
  std::map<std::string, double, std::less<>> seconds_per_unit_;
  double outside_ = 0;    // seconds outside of operators per second inside
  double processor_ = 0;  // processor seconds per second
};

}  // namespace etc::cli
