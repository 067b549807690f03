// Cross-entropy group by group, in double: its cost is small compared with the encoder, and the loss should be
// accurate.
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cross_entropy.h"

namespace etc::ops::cpu {

namespace {

// One group: elements [begin, end) of all groups.
struct Group {
  const CrossEntropy& args;
  std::int64_t number, begin, end;

  bool counts(std::int64_t i) const { return args.counted == nullptr || args.counted[i] != 0; }
  double logit(std::int64_t i) const { return args.logits[i * args.stride]; }
  void fill_gradient(double value) const {
    if (args.dlogits == nullptr) return;
    for (std::int64_t i = begin; i < end; ++i) args.dlogits[i * args.stride] = static_cast<float>(value);
  }
};

// The target's position among all elements; throws if it is not a counted element of the group.
std::int64_t target_position(const Group& g) {
  const std::int64_t index = g.args.target_index[g.number];
  if (index < 0 || index >= g.end - g.begin) {
    fail("softmax_cross_entropy", "group {}: target index: expected -1 (none) or 0 to {}, got {}", g.number,
         g.end - g.begin - 1, index);
  }
  if (!g.counts(g.begin + index)) {
    fail("softmax_cross_entropy", "group {}: target index {} is not a counted logit", g.number, index);
  }
  return g.begin + index;
}

// The loss of one group, and its gradient if requested; three passes over the logits, which may lie `stride` apart.
// Subtracting the maximum keeps exp() from overflowing; sums of thousands of terms are in double.
double group_loss(const Group& g) {
  const CrossEntropy& a = g.args;
  if (a.target_index != nullptr && a.target_index[g.number] == -1) {
    g.fill_gradient(0);
    return 0;
  }
  const std::int64_t hit = a.target_index == nullptr ? -1 : target_position(g);

  // Pass 1: the number of counted elements, their maximum (subtracted so that exp does not overflow; nan must
  // propagate) and the sum of the targets.
  std::int64_t counted = 0;
  double largest = -INFINITY, target_sum = a.target_index != nullptr ? 1 : 0;
  for (std::int64_t i = g.begin; i < g.end; ++i) {
    if (!g.counts(i)) continue;
    ++counted;
    if (!(g.logit(i) <= largest)) largest = g.logit(i);
    if (a.target != nullptr) target_sum += a.target[i];
  }
  if (counted == 0) {
    g.fill_gradient(0);
    return 0;
  }
  // Pass 2: log-sum-exp.
  double sum = 0;
  for (std::int64_t i = g.begin; i < g.end; ++i) {
    if (g.counts(i)) sum += std::exp(g.logit(i) - largest);
  }
  const double lse = largest + std::log(sum);
  // Pass 3: loss = sum t·(lse − z), dz = scale·(p·sum t − t). The logit is read before its gradient may replace it.
  const double spread = static_cast<double>(a.label_smoothing) / static_cast<double>(counted);
  double loss = 0;  // sum over i of t_i·(lse − z_i); −log p_i = lse − z_i needs no logarithm of a small p
  for (std::int64_t i = g.begin; i < g.end; ++i) {
    double gradient = 0;
    if (g.counts(i)) {
      const double t =
          a.target != nullptr ? a.target[i] : (i == hit ? 1.0 - static_cast<double>(a.label_smoothing) : 0.0) + spread;
      const double z = g.logit(i);
      if (t != 0) loss += t * (lse - z);
      gradient = a.scale * (std::exp(z - lse) * target_sum - t);
    }
    if (a.dlogits != nullptr) a.dlogits[i * a.stride] = static_cast<float>(gradient);
  }
  return loss;
}

void cross_entropy(const CrossEntropy& args) {
  constexpr std::int64_t kTaskElements = 4096;  // per task, approximately: groups may be three classes or a vocabulary
  const std::int64_t elements = args.offsets[args.groups] - args.offsets[0];
  const std::int64_t average = elements / args.groups + 1;
  const std::int64_t per_task = average >= kTaskElements ? 1 : kTaskElements / average;
  parallel_for(ceil_div(args.groups, per_task), [&](std::int64_t task) {
    for (std::int64_t k = task * per_task; k < std::min(args.groups, (task + 1) * per_task); ++k) {
      args.losses[k] = group_loss({args, k, args.offsets[k], args.offsets[k + 1]});
    }
  });
}

}  // namespace

void register_cross_entropy() {
  fill_slot(cross_entropy_kernel, cross_entropy);
}

}  // namespace etc::ops::cpu
