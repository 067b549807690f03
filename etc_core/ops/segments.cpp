#include "etc_core/ops/segments.h"

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const Segments&)> sum_segments_kernel{"sum_segments"};
constinit KernelSlot<void(const Segments&)> spread_segments_kernel{"spread_segments"};

namespace {

void check(const char* where, const Segments& args) {
  if (args.segments < 0 || args.cols < 1) {
    fail(where, "sizes: expected S >= 0, H >= 1, got {}", shape_text({{"S", args.segments}, {"H", args.cols}}));
  }
  if (args.segments == 0) return;
  if (args.offsets == nullptr) fail(where, "offsets are missing (null)");
  if (args.offsets[0] != 0) fail(where, "offsets: expected the first to be 0, got {}", args.offsets[0]);
  check_offsets(where, "offsets", args.offsets, args.segments);
  if (args.of_segments == nullptr) fail(where, "of_segments is missing (null)");
  if (args.rows == nullptr && args.offsets[args.segments] > 0) fail(where, "rows are missing (null)");
}

double bytes_moved(const Segments& args) {
  return 4.0 * static_cast<double>((args.segments + args.offsets[args.segments]) * args.cols);
}

}  // namespace

void sum_segments(Device device, const Segments& args) {
  check("sum_segments", args);
  if (args.segments == 0) return;
  const profiler::Scope profiled("sum_segments", {0, bytes_moved(args)});
  sum_segments_kernel(device, args);
}

void spread_segments(Device device, const Segments& args) {
  check("spread_segments", args);
  if (args.segments == 0) return;
  const profiler::Scope profiled("spread_segments", {0, bytes_moved(args)});
  spread_segments_kernel(device, args);
}

}  // namespace etc::ops
