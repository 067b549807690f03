// Plain loops: they are bound by memory, so the compiler's vectorisation suffices.
#include "etc_core/ops/scaled_sum.h"

#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/scratch.h"

namespace etc::ops::cpu {

namespace {

// Elements per task. Constant, because dalpha adds one number per task.
constexpr std::int64_t kTaskElements = 1 << 14;

// Rows of a matrix per task; independent of the thread count, like kTaskElements.
std::int64_t task_rows(std::int64_t cols) {
  return std::max<std::int64_t>(1, kTaskElements / cols);
}

// forward: y_ij = x_ij + alpha_j·branch_ij
void forward_columns(const ScaledSumForward& args) {
  const std::int64_t cols = args.alphas, rows = args.size / cols, step = task_rows(cols);
  parallel_for(ceil_div(rows, step), [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * step) * cols;
    for (std::int64_t row = task * step * cols; row < end; row += cols) {
      for (std::int64_t j = 0; j < cols; ++j) args.y[row + j] = args.x[row + j] + args.alpha[j] * args.branch[row + j];
    }
  });
}

void forward(const ScaledSumForward& args) {
  if (args.alphas > 1) return forward_columns(args);
  const float alpha = *args.alpha;
  parallel_for(ceil_div(args.size, kTaskElements), [&](std::int64_t task) {
    const std::int64_t end = std::min(args.size, (task + 1) * kTaskElements);
    for (std::int64_t i = task * kTaskElements; i < end; ++i) args.y[i] = args.x[i] + alpha * args.branch[i];
  });
}

// forward: y = x + alpha·branch; so dalpha += Σ dy·branch, here over [first, end).
double alpha_gradient(const ScaledSumBackward& args, std::int64_t first, std::int64_t end) {
  // Eight independent sums, because the additions of a single sum would form one dependency chain.
  constexpr int kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = first;
  for (; i + kSums <= end; i += kSums) {
    for (int s = 0; s < kSums; ++s) sums[s] += static_cast<double>(args.dy[i + s]) * args.branch[i + s];
  }
  for (int s = 0; i < end; ++i, ++s) sums[s] += static_cast<double>(args.dy[i]) * args.branch[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The same for alpha [cols]: a task computes one sum per column; these are added in the order of the tasks.
void backward_columns(const ScaledSumBackward& args) {
  const std::int64_t cols = args.alphas, rows = args.size / cols, step = task_rows(cols), tasks = ceil_div(rows, step);
  Scratch scratch;
  auto* sums = scratch.take<double>(tasks * cols);  // [tasks, cols]
  parallel_for(tasks, [&](std::int64_t task) {
    double* const own = sums + task * cols;
    std::fill_n(own, cols, 0.0);
    const std::int64_t end = std::min(rows, (task + 1) * step) * cols;
    for (std::int64_t row = task * step * cols; row < end; row += cols) {
      for (std::int64_t j = 0; j < cols; ++j) own[j] += static_cast<double>(args.dy[row + j]) * args.branch[row + j];
      // forward: y = x + alpha·branch; so dbranch = alpha·dy. After the sum: dbranch may be dy or branch.
      for (std::int64_t j = 0; j < cols && args.dbranch != nullptr; ++j) {
        args.dbranch[row + j] = args.alpha[j] * args.dy[row + j];
      }
    }
  });
  for (std::int64_t j = 0; j < cols && args.dalpha != nullptr; ++j) {
    double total = args.dalpha[j];
    for (std::int64_t task = 0; task < tasks; ++task) total += sums[task * cols + j];
    args.dalpha[j] = static_cast<float>(total);
  }
}

void backward(const ScaledSumBackward& args) {
  if (args.alphas > 1) return backward_columns(args);
  const std::int64_t tasks = ceil_div(args.size, kTaskElements);
  const float alpha = *args.alpha;
  Scratch scratch;
  auto* sums = scratch.take<double>(tasks);  // [tasks] one per task, independent of the thread that runs it
  parallel_for(tasks, [&](std::int64_t task) {
    const std::int64_t first = task * kTaskElements, end = std::min(args.size, first + kTaskElements);
    if (args.dalpha != nullptr) sums[task] = alpha_gradient(args, first, end);
    // forward: y = x + alpha·branch; so dbranch = alpha·dy. After the sum: dbranch may be dy or branch.
    for (std::int64_t i = first; i < end && args.dbranch != nullptr; ++i) args.dbranch[i] = alpha * args.dy[i];
  });
  if (args.dalpha == nullptr) return;
  double total = *args.dalpha;  // in the order of the tasks, on one thread
  for (std::int64_t task = 0; task < tasks; ++task) total += sums[task];
  *args.dalpha = static_cast<float>(total);
}

}  // namespace

void register_scaled_sum() {
  fill_slot(scaled_sum_kernel, forward);
  fill_slot(scaled_sum_backward_kernel, backward);
}

}  // namespace etc::ops::cpu
