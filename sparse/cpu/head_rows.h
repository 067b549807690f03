// One head of a call's rows, which are fp32 or bf16: its address, and fp32 copies of it.
#pragma once

#include <cstdint>
#include <cstring>

#include "etc_core/base/bf16.h"
#include "etc_core/base/integers.h"
#include "sparse/attention_types.h"
#include "sparse/tile_run.h"

namespace etc::sparse {

// Row stride of copies: D rounded up to a multiple of kGroup; the padding is zero.
inline std::int64_t row_stride(std::int64_t head_size) {
  return round_up(head_size, kGroup);
}

// The columns of one head.
struct HeadColumns {
  std::int64_t head = 0, size = 0;  // size: D
  std::int64_t first() const { return head * size; }
};

// [D] of one row; at most one of the two pointers is set.
struct HeadRow {
  const float* fp32 = nullptr;
  const Bf16* bf16 = nullptr;
  bool given() const { return fp32 != nullptr || bf16 != nullptr; }
};
struct MutableHeadRow {
  float* fp32 = nullptr;
  Bf16* bf16 = nullptr;
};

inline HeadRow row_in(const Rows& rows, const HeadColumns& columns, std::int64_t row) {
  const std::int64_t at = row * rows.stride + columns.first();
  if (rows.bf16 != nullptr) return {nullptr, rows.bf16 + at};
  return {rows.data + at, nullptr};
}
inline MutableHeadRow row_in(const MutableRows& rows, const HeadColumns& columns, std::int64_t row) {
  const std::int64_t at = row * rows.stride + columns.first();
  if (rows.bf16 != nullptr) return {nullptr, rows.bf16 + at};
  return {rows.data + at, nullptr};
}

// For rows that are always fp32: tables, and rows of operators that take no others.
inline const float* head_row(const Rows& rows, std::int64_t row, std::int64_t head, std::int64_t head_size) {
  return rows.data + row * rows.stride + head * head_size;
}
inline float* head_row(const MutableRows& rows, std::int64_t row, std::int64_t head, std::int64_t head_size) {
  return rows.data + row * rows.stride + head * head_size;
}

// A number of a row as fp32; exact.
inline float as_float(float x) {
  return x;
}
inline float as_float(Bf16 x) {
  return float_from_bf16(x.bits);
}

// Copies of rows are always inline, so that they use the vector instructions of the calling kernel instead of SSE.
#define ETC_COPY __attribute__((always_inline)) inline

// to[d] = from[d], d < size. Copies kGroup numbers at a time with a compile-time size, because a call of memcpy costs
// as much as copying the row.
ETC_COPY void copy_row(const float* from, std::int64_t size, float* to) {
  std::int64_t d = 0;
  for (; d + kGroup <= size; d += kGroup) std::memcpy(to + d, from + d, kGroup * sizeof(float));
  for (; d < size; ++d) to[d] = from[d];
}
ETC_COPY void copy_row(const Bf16* from, std::int64_t size, float* to) {
  for (std::int64_t d = 0; d < size; ++d) to[d] = as_float(from[d]);
}

// to [rows, row_stride(size)] = rows of `size` numbers that lie from_stride apart.
template <typename Number>
ETC_COPY void copy_numbers(const Number* from, std::int64_t from_stride, std::int64_t rows, std::int64_t size,
                           float* to) {
  const std::int64_t stride = row_stride(size);
  for (std::int64_t r = 0; r < rows; ++r, from += from_stride, to += stride) {
    copy_row(from, size, to);
    // Components beyond D are zero, so that products may use whole vectors.
    for (std::int64_t d = size; d < stride; ++d) to[d] = 0.0f;
  }
}

// to[row] = from[first_row + row] of one head, zero beyond D.   to [rows, stride]
ETC_COPY void copy_rows(const Rows& from, const HeadColumns& columns, std::int64_t first_row, std::int64_t rows,
                        float* to) {
  const HeadRow first = row_in(from, columns, first_row);
  first.bf16 == nullptr ? copy_numbers(first.fp32, from.stride, rows, columns.size, to)
                        : copy_numbers(first.bf16, from.stride, rows, columns.size, to);
}

#undef ETC_COPY

}  // namespace etc::sparse
