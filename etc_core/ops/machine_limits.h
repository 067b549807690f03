// The peak rates of the machine with its current number of threads, for comparison with the rates in a profile.
#pragma once

#include "etc_core/base/compute_type.h"

namespace etc::ops {

struct MachineLimits {
  double operations_per_second[kComputeTypes] = {};  // of large dense layers, by ComputeType; 0: not offered
  double bytes_per_second = 0;                       // read and written by a large copy
};

// Measures the rates, in about half a second. Needs registered kernels. The figures hold for the time of the
// measurement: on a shared machine they fall when other programs are busy.
MachineLimits measure_machine_limits();

}  // namespace etc::ops
