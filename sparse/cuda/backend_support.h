// Code shared by forward and backward calls: scratch, operands, what runs before the kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sparse/cuda/attention_backend.h"
#include "sparse/cuda/attention_plan.h"
#include "sparse/cuda/launch.h"

namespace etc::sparse::cuda {

// Whether this call multiplies in bf16. Pairwise terms always use fp32: they cost more than the products do in fp32.
inline bool uses_bf16(const AttentionInputs& in) {
  return in.compute == ComputeType::bf16 && !is_pairwise(in);
}
// Throws Error if these kernels do not support the call.
void check_supported(const AttentionInputs& in);

// Device memory both directions need.
struct CommonScratch {
  Span<std::uint32_t> q, k[2], v[2];  // bf16; empty in fp32
  Span<float> table;                  // [N, groups, R, kGroup]
  Span<std::uint64_t> dropout_keys;   // [B]
  Span<std::int32_t> range;           // [2]

  // Reserves the arrays; with a null carver it only counts bytes.
  CommonScratch(simt::Carver& carver, const AttentionInputs& in, const DevicePlan& plan);
};

// The call's arguments as kernel parameters.
AttentionSizes sizes_of(const AttentionInputs& in);
DropoutView dropout_view(const AttentionInputs& in, const CommonScratch& scratch);
Output output_of(const MutableRows& rows, const AttentionInputs& in);
// The caller's rows, unconverted, for kernels that read single numbers.
NumberRows numbers_of(const Rows& rows, const AttentionInputs& in);
// The caller's rows, unconverted, in fp32 and in bf16.
Operand<float> fp32_operand(const Rows& rows, const AttentionInputs& in);
Operand<std::uint32_t> bf16_operand(const Rows& rows, const AttentionInputs& in);
// The bf16 copy of rows that convert() made.
Operand<std::uint32_t> operand_of(const Span<std::uint32_t>& converted, std::int64_t rows, const AttentionInputs& in);
// Converts fp32 rows to [N, rows, width / 2] words, zeros beyond D; does nothing if they are bf16 already.
void convert(const Rows& from, const AttentionInputs& in, const Span<std::uint32_t>& to);
std::int64_t converted_words(std::int64_t rows, const AttentionInputs& in);

// The plan's lists. Without a table labels only mask, so kernels get no labels.
WorkList work_of(const AttentionInputs& in, const DevicePlan& plan);

// The tables of pairwise terms; empty without such terms.
TableViews table_views(const AttentionInputs& in);

// Converts operands, computes the relative terms, copies dropout's streams to the device.
void prepare(const AttentionInputs& in, const DevicePlan& plan, const CommonScratch& scratch);

// The rows in the form that kernels of this precision read.
template <typename Element>
Operand<Element> operand(const AttentionInputs& in, const Rows& rows, const Span<std::uint32_t>& converted) {
  if constexpr (std::is_same_v<Element, float>) {
    return fp32_operand(rows, in);
  } else {
    return in.type == ElementType::bf16 ? bf16_operand(rows, in) : operand_of(converted, rows.rows, in);
  }
}

}  // namespace etc::sparse::cuda
