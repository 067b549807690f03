// Layer normalisation, row by row, with the residual sum before it; backward with fixed partial sums for gamma, beta.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/layer_norm_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cmath>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/dropout_rows-inl.h"
#include "etc_core/ops/cpu/either_type.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE float sum_of_lanes(FloatVec v) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), v));
}

HWY_INLINE float mean_of(const LayerNormForward& args, FloatVec total) {
  return args.statistics.centred ? sum_of_lanes(total) / static_cast<float>(args.cols) : 0.0f;
}

// Pass 1 of a row: what is normalised, x or x + dropout(branch), and its mean.   x, y, result [H]
// The residual sum is written to `sum` or, if that is null, to y, which holds it until pass 3 overwrites it.
HWY_INLINE const float* residual_sum(const LayerNormForward& args, std::int64_t row, RowDropout& dropout, float& mean) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  const float* x = args.x + row * cols;
  FloatVec total = hn::Zero(d);
  if (args.branch == nullptr) {
    for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR { total = hn::Add(total, lanes.load(d, x + col)); });
    mean = mean_of(args, total);
    return x;
  }
  dropout.fill();
  const float* branch = args.branch + row * cols;
  float* sum = (args.sum == nullptr ? args.y : args.sum) + row * cols;
  for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
    const FloatVec value = hn::Add(lanes.load(d, x + col), dropout.apply(col, lanes.load(d, branch + col)));
    lanes.store(d, value, sum + col);
    total = hn::Add(total, value);
  });
  mean = mean_of(args, total);
  return sum;
}

// Rows [first, end) of the forward. Three passes over a row, which stays in the first-level cache: residual sum and
// mean, variance of the centred values, result.
void forward_rows(const LayerNormForward& args, std::int64_t first, std::int64_t end) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  RowDropout dropout(args.dropout, first, cols);
  for (std::int64_t row = first; row < end; ++row, dropout.next()) {
    float* y = args.y + row * cols;  // [H]
    float mean;
    const float* s = residual_sum(args, row, dropout, mean);  // [H]
    const FloatVec mean_v = hn::Set(d, mean);

    // Pass 2: the variance. Lanes beyond the last column hold −mean after the subtraction and are set to 0.
    FloatVec squares = hn::Zero(d);
    for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
      const FloatVec centred = lanes.or_zero(d, hn::Sub(lanes.load(d, s + col), mean_v));
      squares = hn::MulAdd(centred, centred, squares);
    });
    const float rstd = 1.0f / std::sqrt(sum_of_lanes(squares) / static_cast<float>(cols) + args.statistics.epsilon);
    const FloatVec rstd_v = hn::Set(d, rstd);

    // Pass 3: y = (s − mean)·rstd·gamma + beta. y may be s: a vector is read before it is written.
    for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
      const FloatVec normal = hn::Mul(hn::Sub(lanes.load(d, s + col), mean_v), rstd_v);
      const FloatVec gamma = lanes.load(d, args.gamma + col), beta = lanes.load(d, args.beta + col);
      lanes.store(d, hn::MulAdd(normal, gamma, beta), y + col);
    });
    if (args.y_bf16 != nullptr) round_row(y, cols, args.y_bf16 + row * cols);
    if (args.mean != nullptr) {
      args.mean[row] = mean;
      args.rstd[row] = rstd;
    }
  }
}

// One row of the backward: its saved values, the destinations of its gradients, and the means over H that pass 1
// computes.
struct BackwardRow {
  const float* dy;         // [H]
  const float* s;          // [H]
  float* dx;               // [H] or null
  MutableNumbers dbranch;  // [H] or absent
  FloatVec mean, rstd;
  FloatVec g_mean, gx_mean;  // of g = dy·gamma and of g·xhat
};

// Pass 1. forward: y = xhat·gamma + beta; so dgamma += dy·xhat, dbeta += dy. Means of g = dy·gamma and of g·xhat.
//   partial  null, or [2, H] of the task: no other thread adds to it
HWY_INLINE void table_gradients(const LayerNormBackward& args, BackwardRow& row, float* partial) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  FloatVec g_total = hn::Zero(d), gx_total = hn::Zero(d);
  for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
    const FloatVec dy = lanes.load(d, row.dy + col);
    const FloatVec xhat = hn::Mul(hn::Sub(lanes.load(d, row.s + col), row.mean), row.rstd);
    const FloatVec g = hn::Mul(dy, lanes.load(d, args.gamma + col));  // 0 beyond the last column
    g_total = hn::Add(g_total, g);
    gx_total = hn::MulAdd(g, xhat, gx_total);
    if (partial != nullptr) {
      float* dgamma = partial + col;
      float* dbeta = partial + cols + col;
      lanes.store(d, hn::MulAdd(dy, xhat, lanes.load(d, dgamma)), dgamma);
      lanes.store(d, hn::Add(dy, lanes.load(d, dbeta)), dbeta);
    }
  });
  row.g_mean = hn::Set(d, args.centred ? sum_of_lanes(g_total) / static_cast<float>(cols) : 0.0f);
  row.gx_mean = hn::Set(d, sum_of_lanes(gx_total) / static_cast<float>(cols));
}

// Pass 2. forward: xhat = (s − mean)·rstd, where mean and rstd depend on s; so
//   ds = rstd·(g − mean(g) − xhat·mean(g·xhat)).
//   dbranch  the row's, or null
template <typename Number>
HWY_INLINE void input_gradients(const LayerNormBackward& args, const BackwardRow& row, Number* dbranch,
                                RowDropout& dropout) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  if (dbranch != nullptr) dropout.fill();
  for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
    const FloatVec xhat = hn::Mul(hn::Sub(lanes.load(d, row.s + col), row.mean), row.rstd);
    const FloatVec g = hn::Mul(lanes.load(d, row.dy + col), lanes.load(d, args.gamma + col));
    const FloatVec ds = hn::Mul(row.rstd, hn::NegMulAdd(xhat, row.gx_mean, hn::Sub(g, row.g_mean)));
    // forward: s = x + dropout(branch); so dx is ds and dbranch is ds under the same mask.
    if (row.dx != nullptr) {
      float* dx = row.dx + col;
      lanes.store(d, args.add_to_dx ? hn::Add(lanes.load(d, dx), ds) : ds, dx);
    }
    if (dbranch != nullptr) lanes.store(d, dropout.apply(col, ds), dbranch + col);
  });
}

// Rows [first, end) of the backward; partial (null, or [2, H]) = their sums of dy·xhat and of dy.
void backward_rows(const LayerNormBackward& args, std::int64_t first, std::int64_t end, float* partial) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  RowDropout dropout(args.dropout, first, cols);
  if (partial != nullptr) std::fill(partial, partial + 2 * cols, 0.0f);
  for (std::int64_t number = first; number < end; ++number, dropout.next()) {
    BackwardRow row;
    row.dy = args.dy + number * cols;
    row.s = args.sum + number * cols;
    row.dx = args.dx == nullptr ? nullptr : args.dx + number * cols;
    row.dbranch = MutableNumbers(args.dbranch, args.dbranch_bf16) + number * cols;
    row.mean = hn::Set(d, args.mean[number]);
    row.rstd = hn::Set(d, args.rstd[number]);
    table_gradients(args, row, partial);
    if (row.dx == nullptr && !row.dbranch.given()) continue;
    row.dbranch.bf16 != nullptr ? input_gradients(args, row, row.dbranch.bf16, dropout)
                                : input_gradients(args, row, row.dbranch.fp32, dropout);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {
constexpr std::int64_t kForwardRows = 32;   // of a task
constexpr std::int64_t kBackwardRows = 64;  // of a task, and of one partial sum of dgamma, dbeta
constexpr std::int64_t kColumns = 256;      // of a task that combines partial sums
void layer_norm(const LayerNormForward& args) {
  parallel_for(ceil_div(args.rows, kForwardRows), [&](std::int64_t task) {
    ETC_DISPATCH(forward_rows)(args, task * kForwardRows, std::min(args.rows, (task + 1) * kForwardRows));
  });
}

void layer_norm_backward(const LayerNormBackward& args) {
  const std::int64_t blocks = ceil_div(args.rows, kBackwardRows);
  const std::int64_t cols = args.cols;
  Scratch scratch;
  float* partials = args.dgamma == nullptr ? nullptr : scratch.take<float>(blocks * 2 * cols);  // [blocks, 2, H]
  parallel_for(blocks, [&](std::int64_t block) {
    ETC_DISPATCH(backward_rows)
    (args, block * kBackwardRows, std::min(args.rows, (block + 1) * kBackwardRows),
     partials == nullptr ? nullptr : partials + block * 2 * cols);
  });
  if (partials == nullptr) return;
  parallel_for(ceil_div(cols, kColumns), [&](std::int64_t task) {
    const std::int64_t first = task * kColumns;
    const std::int64_t end = std::min(cols, first + kColumns);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const float* partial = partials + block * 2 * cols;
      for (std::int64_t col = first; col < end; ++col) args.dgamma[col] += partial[col];
      for (std::int64_t col = first; col < end; ++col) args.dbeta[col] += partial[cols + col];
    }
  });
}

}  // namespace

void register_layer_norm() {
  fill_slot(layer_norm_kernel, layer_norm);
  fill_slot(layer_norm_backward_kernel, layer_norm_backward);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
