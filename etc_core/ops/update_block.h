// What an update works on, apart from its kernels: a stretch of one parameter with its gradient and moments.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>

namespace etc::ops {

// Numbers of a block: 64 kB of each array; a few of them fit a processor's second-level cache.
inline constexpr std::int64_t kBlockSize = 16384;

// At most kBlockSize neighbouring numbers of one parameter; all pointers on the device that updates them.
struct UpdateBlock {
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  float* w = nullptr;
  std::int64_t count = 0;
  float decay = 0.0f;    // λ, or 0 where the parameter does not decay
  float rate = 0.0f;     // what the update is multiplied with: learning rate times LAMB's ratio
  bool adapted = false;  // LAMB: the rate waits for the norms of the whole parameter
};

// Constants of one step in the type the numbers have.
struct UpdateConstants {
  float beta_1 = 0, beta_2 = 0, one_minus_beta_1 = 0, one_minus_beta_2 = 0, epsilon = 0;
  float gradient_scale = 1;
};

// Sums of squares of one block's weights and of its update u = m/(sqrt(v)+ε) + λw.
struct UpdateNorms {
  double weights = 0, update = 0;
};

}  // namespace etc::ops
