#include "etc_core/ops/top_k.h"

#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const TopK&)> top_k_kernel{"top_k"};

namespace {

void check(const TopK& args) {
  if (args.segments < 0 || args.cols < 1 || args.k < 1) {
    fail("top_k", "sizes: expected S >= 0, n >= 1, k >= 1, got {}",
         shape_text({{"S", args.segments}, {"n", args.cols}, {"k", args.k}}));
  }
  if (args.segments == 0) return;
  if (args.offsets == nullptr) fail("top_k", "offsets are missing (null)");
  if (args.offsets[0] != 0) fail("top_k", "offsets: expected the first to be 0, got {}", args.offsets[0]);
  check_offsets("top_k", "offsets", args.offsets, args.segments);
  if (args.top == nullptr) fail("top_k", "top is missing (null)");
  if (args.z == nullptr && args.offsets[args.segments] > 0) fail("top_k", "z is missing (null)");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (args.offsets[args.segments] > kMost / args.cols || args.segments > kMost / args.cols) {
    fail("top_k", "expected at most {} numbers and lists, got {}", kMost,
         shape_text({{"T", args.offsets[args.segments]}, {"S", args.segments}, {"n", args.cols}}));
  }
}

}  // namespace

void top_k(Device device, const TopK& args) {
  check(args);
  if (args.segments == 0) return;
  const profiler::Scope profiled("top_k", {0, 4.0 * static_cast<double>(args.offsets[args.segments] * args.cols)});
  top_k_kernel(device, args);
}

}  // namespace etc::ops
