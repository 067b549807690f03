// Launches of the kernels around dense products. A grid is {blocks x, blocks y, blocks z, bytes of shared memory}; x
// (up to 2^31) counts rows, y (up to 65,535) panels of kColumnThreads columns.
#include "etc_core/base/integers.h"
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/cuda/linear_kernels.h"

namespace etc::ops::cuda {

void launch(const FinishRowsParams& params, void* stream) {
  simt::launch<FinishRowsKernel>({params.rows, ceil_div(params.cols, kColumnThreads), 1, 0}, params, stream);
}

void launch(const RoundRowsParams& params, void* stream) {
  simt::launch<RoundRowsKernel>({params.rows, ceil_div(params.width / 2, kColumnThreads), 1, 0}, params, stream);
}

void launch(const CopyRowsParams& params, void* stream) {
  simt::launch<CopyRowsKernel>({params.rows, ceil_div(params.cols, kColumnThreads), 1, 0}, params, stream);
}

std::int64_t column_blocks(std::int64_t rows) {
  return ceil_div(rows, kColumnRows);
}

void launch(const ColumnSumParams& params, void* stream) {
  // The second kernel starts after the first has finished, because both are on one stream.
  const std::int64_t panels = ceil_div(params.cols, kColumnThreads);
  simt::launch<ColumnPartialKernel>({column_blocks(params.rows), panels, 1, 0}, params, stream);
  simt::launch<ColumnSumKernel>({panels, 1, 1, 0}, params, stream);
}

}  // namespace etc::ops::cuda
