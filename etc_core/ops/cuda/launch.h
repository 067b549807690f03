// The launches of the kernels: host code (C++20) calls them, device code (C++17) defines them.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/params.h"

namespace etc::ops::cuda {

// One overload per type of parameters. They return when the kernel has been enqueued on the stream; kernel errors are
// reported later.
void launch(const ElementwiseParams& params, void* stream);
void launch(const ActivationParams& params, void* stream);
void launch(const AddBf16Params& params, void* stream);
void launch(const RoundParams& params, void* stream);
void launch(const ActivationBf16Params& params, void* stream);
void launch(const FinishRowsParams& params, void* stream);
void launch(const RoundRowsParams& params, void* stream);
void launch(const CopyRowsParams& params, void* stream);
void launch(const ColumnSumParams& params, void* stream);
void launch(const ScaledSumParams& params, void* stream);
void launch(const ScaledSumBackwardParams& params, void* stream);
void launch(const DropoutAddParams& params, void* stream);
void launch(const LayerNormParams& params, void* stream);
void launch(const LayerNormBackwardParams& params, void* stream);
void launch(const LayerNormTablesParams& params, void* stream);
void launch(const CrossEntropyParams& params, void* stream);
void launch(const VocabularySoftmaxParams& params, void* stream);
void launch(const EmbeddingParams& params, void* stream);
void launch(const EmbeddingBackwardParams& params, void* stream);
void launch(const SegmentParams& params, void* stream);
void launch(const UpdateParams& params, void* stream);
void launch(const PositionBiasParams& params, void* stream);

std::int64_t sum_blocks(std::int64_t size);     // partial sums of launch(ScaledSumBackwardParams)
std::int64_t column_blocks(std::int64_t rows);  // partial sums of launch(ColumnSumParams)
std::int64_t norm_blocks(std::int64_t rows);    // partial sums of launch(LayerNormTablesParams)

}  // namespace etc::ops::cuda
