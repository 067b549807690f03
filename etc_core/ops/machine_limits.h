// What the machine can do at most with its present threads: what a profile's rates are compared with.
#pragma once

#include "etc_core/base/compute_type.h"

namespace etc::ops {

struct MachineLimits {
  double operations_per_second[kComputeTypes] = {};  // of large dense layers, by ComputeType; 0: not offered
  double bytes_per_second = 0;                       // read and written by a large copy
};

// Measures, in about half a second. Needs registered kernels. The figures belong to this moment: on a shared machine
// they fall with what the neighbours do.
MachineLimits measure_machine_limits();

}  // namespace etc::ops
