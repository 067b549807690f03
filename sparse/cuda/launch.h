// The kernels' launches, as plain functions: host code (C++20) calls them, device code (C++17) defines them.
#pragma once

#include <cstdint>

#include "sparse/cuda/attention_params.h"

namespace etc::sparse::cuda {

// Head sizes that the kernels support; bf16 operands are padded to the next supported width.
// Larger heads are an error instead of a slow path that would surprise users.
inline constexpr int kMaxBf16Head = 128;
inline constexpr int kMaxFp32Head = 112;      // limited by shared memory
inline constexpr int kMaxPairwiseHead = 104;  // the same, with a tile of labels in addition

// Before the attention kernels.
void launch_convert(const ConvertParams& params, void* stream);
void launch_table(const TableParams& params, void* stream);
// Forward; `combine` only if keys were split.
void launch_forward(const ForwardParams<float>& params, void* stream);
void launch_forward(const ForwardParams<std::uint32_t>& params, void* stream);  // bf16
void launch_combine(const CombineParams& params, void* stream);

// Backward, in the order of the calls.
void launch_delta(const DeltaParams& params, void* stream);
void launch_backward(const BackwardParams<float>& params, void* stream);
void launch_backward(const BackwardParams<std::uint32_t>& params, void* stream);
void launch_sum_queries(const SumQueriesParams& params, void* stream);
void launch_sum_keys(const SumKeysParams& params, void* stream);
std::int64_t relative_parts(std::int64_t queries);  // partial sums of the tables' gradients
void launch_relative(const RelativeParams& params, void* stream);
void launch_table_sum(const TableSumParams& params, void* stream);

}  // namespace etc::sparse::cuda
