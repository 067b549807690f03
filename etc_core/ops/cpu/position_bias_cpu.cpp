#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/position_bias.h"

namespace etc::ops::cpu {

namespace {

// (v - u) of component c of all heads.
template <typename Args>
float difference(const Args& args, std::int64_t c) {
  return (args.position == nullptr ? 0 : args.position[c]) - (args.content == nullptr ? 0 : args.content[c]);
}

void forward(const PositionBiasForward& args) {
  const std::int64_t size = args.head_size, width = args.heads * size;
  parallel_for(args.rows, [&](std::int64_t r) {
    for (std::int64_t n = 0; n < args.heads; ++n) {
      float sum = 0;
      for (std::int64_t c = n * size; c < (n + 1) * size; ++c) sum += difference(args, c) * args.rel[r * width + c];
      args.y[r * args.heads + n] = sum;
    }
  });
}

// forward: y = sum_c (v - u) rel; so drel += dy (v - u), dv += sum_r dy rel, du -= the same.
void backward(const PositionBiasBackward& args) {
  const std::int64_t size = args.head_size, width = args.heads * size;
  parallel_for(width, [&](std::int64_t c) {
    // One task adds one component over all rows in order, so the sums are the same for any number of threads.
    const float by = difference(args, c);
    float sum = 0;
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const float own = args.dy[r * args.heads + c / size];
      sum += own * args.rel[r * width + c];
      if (args.drel != nullptr) args.drel[r * width + c] += own * by;
    }
    if (args.dposition != nullptr) args.dposition[c] += sum;
    if (args.dcontent != nullptr) args.dcontent[c] -= sum;
  });
}

}  // namespace

void register_position_bias() {
  fill_slot(position_bias_kernel, forward);
  fill_slot(position_bias_backward_kernel, backward);
}

}  // namespace etc::ops::cpu
