// Runs of rows on CUDA. The offsets are part of the batch on the host, where they were checked.
#include "etc_core/ops/segments.h"

#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/launch.h"

namespace etc::ops::cuda {

namespace {

// rows [offsets[S], H] and of_segments [S, H]; `spread` says which of them is read and which is written.
void launch_on_rows(bool spread, const Segments& args) {
  const OnDevice<std::int64_t> offsets(args.offsets, args.segments + 1);  // [S+1]
  const Span<float> rows = span(args.rows, args.offsets[args.segments] * args.cols);
  const Span<float> of_segments = span(args.of_segments, args.segments * args.cols);
  launch(SegmentParams{.spread = spread,
                       .segments = args.segments,
                       .cols = args.cols,
                       .offsets = offsets.span(),
                       .from = simt::read_only(spread ? of_segments : rows),
                       .to = spread ? rows : of_segments,
                       .add = args.add},
         simt::stream());
}

}  // namespace

void register_segments() {
  sum_segments_kernel.fill(Device::cuda, [](const Segments& args) { launch_on_rows(false, args); });
  spread_segments_kernel.fill(Device::cuda, [](const Segments& args) { launch_on_rows(true, args); });
}

}  // namespace etc::ops::cuda
