// The data of an update: a block of one parameter with its gradient and moments. Separate from update.h, which declares
// the kernels.
//
// C++17, because device code includes this header.
#pragma once

#include <cstdint>

namespace etc::ops {

// Elements per block: 64 kB of each array; a few blocks fit a processor's second-level cache.
inline constexpr std::int64_t kBlockSize = 16384;

// At most kBlockSize consecutive elements of one parameter; all pointers refer to memory of the device that updates
// them.
struct UpdateBlock {
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  float* w = nullptr;
  std::int64_t count = 0;
  float decay = 0.0f;    // λ, or 0 for parameters without weight decay
  float rate = 0.0f;     // factor of the update: learning rate times LAMB's ratio
  bool adapted = false;  // LAMB: the rate is known only after the norms of the whole parameter
};

// Constants of one step, in the number type of the arrays.
struct UpdateConstants {
  float beta_1 = 0, beta_2 = 0, one_minus_beta_1 = 0, one_minus_beta_2 = 0, epsilon = 0;
  float gradient_scale = 1;
};

// Sums of squares of one block's weights and of its update u = m/(sqrt(v)+ε) + λw.
struct UpdateNorms {
  double weights = 0, update = 0;
};

}  // namespace etc::ops
