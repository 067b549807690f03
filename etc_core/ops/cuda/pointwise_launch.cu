// Launches of the point-wise kernels. A grid is {blocks x, blocks y, blocks z, bytes of shared memory}. x (up to 2^31)
// counts what may be numerous (rows, segments, ids, blocks of elements), y counts panels of columns.
#include "etc_core/base/integers.h"
#include "etc_core/ops/cuda/bf16_kernels.h"
#include "etc_core/ops/cuda/cross_entropy_kernels.h"
#include "etc_core/ops/cuda/elementwise_kernels.h"
#include "etc_core/ops/cuda/embedding_kernels.h"
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/cuda/layer_norm_kernels.h"
#include "etc_core/ops/cuda/position_bias_kernels.h"
#include "etc_core/ops/cuda/segment_kernels.h"
#include "etc_core/ops/cuda/vocabulary_kernels.h"

namespace etc::ops::cuda {

void launch(const ElementwiseParams& params, void* stream) {
  simt::launch<ElementwiseKernel>({ceil_div(params.y.size, kElementThreads), 1, 1, 0}, params, stream);
}

void launch(const ActivationParams& params, void* stream) {
  simt::launch<ActivationKernel>({ceil_div(params.out.size, kElementThreads), 1, 1, 0}, params, stream);
}

// A thread takes a word, which holds two numbers.
void launch(const AddBf16Params& params, void* stream) {
  simt::launch<AddBf16Kernel>({ceil_div(params.y.size, kElementThreads), 1, 1, 0}, params, stream);
}

void launch(const RoundParams& params, void* stream) {
  simt::launch<RoundKernel>({ceil_div(params.y.size, kElementThreads), 1, 1, 0}, params, stream);
}

void launch(const ActivationBf16Params& params, void* stream) {
  simt::launch<ActivationBf16Kernel>({ceil_div(params.out.size, kElementThreads), 1, 1, 0}, params, stream);
}

std::int64_t sum_blocks(std::int64_t size) {
  return ceil_div(size, kSumElements);
}

void launch(const ScaledSumParams& params, void* stream) {
  simt::launch<ScaledSumKernel>({ceil_div(params.y.size, kElementThreads), 1, 1, 0}, params, stream);
}

void launch(const ScaledSumBackwardParams& params, void* stream) {
  using Kernel = ScaledSumBackwardKernel;
  if (params.dalpha.size > 1) {  // before dbranch is written, which may be dy
    using Column = ScaledSumColumnKernel;
    simt::launch<Column>({params.dalpha.size, 1, 1, Column::kShared}, params, stream);
  }
  simt::launch<Kernel>({sum_blocks(params.dy.size), 1, 1, Kernel::kShared}, params, stream);
  if (params.dalpha.size == 1) simt::launch<ScaledSumAlphaKernel>({1, 1, 1, 0}, params, stream);
}

// One block per row, as for layer norm, because a row has its own random stream, mean and variance.
void launch(const DropoutAddParams& params, void* stream) {
  simt::launch<DropoutAddKernel>({params.rows, 1, 1, 0}, params, stream);
}

void launch(const LayerNormParams& params, void* stream) {
  simt::launch<LayerNormKernel>({params.rows, 1, 1, kNormShared}, params, stream);
}

void launch(const LayerNormBackwardParams& params, void* stream) {
  simt::launch<LayerNormBackwardKernel>({params.rows, 1, 1, kNormShared}, params, stream);
}

std::int64_t norm_blocks(std::int64_t rows) {
  return ceil_div(rows, kNormRows);
}

void launch(const LayerNormTablesParams& params, void* stream) {
  // partial [blocks, 2, H], then its sum: two kernels in stream order, so all partial sums are complete.
  const std::int64_t panels = ceil_div(params.cols, kNormThreads);
  simt::launch<LayerNormPartialKernel>({norm_blocks(params.rows), panels, 1, 0}, params, stream);
  simt::launch<LayerNormTablesKernel>({panels, 1, 1, 0}, params, stream);
}

void launch(const PositionBiasParams& params, void* stream) {
  if (params.dy.size == 0) {
    const std::int64_t blocks = ceil_div(params.rows * params.heads, kPositionBiasThreads);
    return simt::launch<PositionBiasKernel>({blocks, 1, 1, 0}, params, stream);
  }
  const std::int64_t blocks = ceil_div(params.heads * params.head_size, kPositionBiasThreads);
  simt::launch<PositionBiasBackwardKernel>({blocks, 1, 1, 0}, params, stream);
}

// One block per group; the largest group determines the duration of the launch.
void launch(const CrossEntropyParams& params, void* stream) {
  simt::launch<CrossEntropyKernel>({params.groups, 1, 1, CrossEntropyKernel::kShared}, params, stream);
}

void launch(const VocabularySoftmaxParams& params, void* stream) {
  simt::launch<VocabularySoftmaxKernel>({params.rows, 1, 1, VocabularySoftmaxKernel::kShared}, params, stream);
}

void launch(const SegmentParams& params, void* stream) {
  // Both directions have the same geometry: block x a segment, block y a panel of columns.
  const simt::Grid grid{params.segments, ceil_div(params.cols, kSegmentThreads), 1, 0};
  if (params.spread) return simt::launch<SpreadSegmentsKernel>(grid, params, stream);
  simt::launch<SumSegmentsKernel>(grid, params, stream);
}

void launch(const EmbeddingParams& params, void* stream) {
  simt::launch<EmbeddingKernel>({params.rows, 1, 1, 0}, params, stream);
}

void launch(const EmbeddingBackwardParams& params, void* stream) {
  simt::launch<EmbeddingBackwardKernel>({params.distinct, ceil_div(params.cols, kEmbeddingThreads), 1, 0}, params,
                                        stream);
}

}  // namespace etc::ops::cuda
