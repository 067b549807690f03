#include "etc_core/ops/cross_entropy.h"

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(const CrossEntropy&)> cross_entropy_kernel{"softmax_cross_entropy"};

void cross_entropy(Device device, const CrossEntropy& args) {
  constexpr const char* kWhere = "softmax_cross_entropy";
  if (args.groups < 0) fail(kWhere, "groups: expected at least 0, got {}", args.groups);
  if (args.stride < 1) fail(kWhere, "stride: expected at least 1, got {}", args.stride);
  if (!(args.label_smoothing >= 0 && args.label_smoothing < 1)) {
    fail(kWhere, "label_smoothing: expected at least 0 and below 1, got {}", args.label_smoothing);
  }
  if (args.groups == 0) return;
  if ((args.target_index == nullptr) == (args.target == nullptr)) {
    fail(kWhere, "expected either target_index or target, got {}", args.target == nullptr ? "neither" : "both");
  }
  if (args.target != nullptr && args.label_smoothing != 0) {
    fail(kWhere, "label_smoothing belongs to target_index: expected 0 with a given distribution, got {}",
         args.label_smoothing);
  }
  if (args.offsets == nullptr || args.losses == nullptr) {
    fail(kWhere, "{} are missing (null)", args.offsets == nullptr ? "offsets" : "losses");
  }
  check_offsets(kWhere, "offsets", args.offsets, args.groups);
  if (args.logits == nullptr && args.offsets[args.groups] > args.offsets[0]) fail(kWhere, "logits are missing (null)");
  const auto logits = static_cast<double>(args.offsets[args.groups] - args.offsets[0]);
  const profiler::Scope profiled(kWhere, {0, (args.dlogits == nullptr ? 4.0 : 8.0) * logits});
  cross_entropy_kernel(device, args);
}

}  // namespace etc::ops
