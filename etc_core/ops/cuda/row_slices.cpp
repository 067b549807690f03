#include "etc_core/ops/cuda/row_slices.h"

#include <cstddef>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/determinism.h"

namespace etc::ops::cuda {

namespace {

constexpr std::int64_t kWord = sizeof(std::uint32_t);  // bytes; rows are copied as words, whatever their number type

// Rows of numbers viewed as rows of words; a row of bf16 has an even number of elements, padded with zero.
struct Rows {
  std::byte* data;
  std::int64_t words, stride;  // of one row, between rows

  Rows from(std::int64_t row) const { return {data + row * stride * kWord, words, stride}; }
  simt::Span<std::uint32_t> span(std::int64_t count) const {
    return {reinterpret_cast<std::uint32_t*>(data), (count - 1) * stride + words};
  }
};

// Rows of `cols` numbers, `stride` numbers apart, in words.
Rows rows_of(const void* data, std::int64_t cols, std::int64_t stride, ElementType type) {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(data));
  if (type == ElementType::bf16) return {bytes, ceil_div(cols, 2), stride / 2};
  return {bytes, cols, stride};
}

// to [rows] = from [count], followed by rows of zeros.
void copy(const Rows& from, std::int64_t count, const Rows& to, std::int64_t rows) {
  launch(CopyRowsParams{.rows = rows,
                        .from_rows = count,
                        .cols = from.words,
                        .from_stride = from.stride,
                        .to_stride = to.stride,
                        .from = simt::read_only(from.span(count)),
                        .to = to.span(rows)},
         simt::stream());
}

// Memory for a full slice with the same stride as `rows` and the same alignment within 256 bytes, since the library
// takes both into account when it chooses an algorithm.
class Slice {
 public:
  explicit Slice(const Rows& like)
      : block_(simt::device_bytes(kSliceRows * like.stride * kWord + kAlignment, Purpose::scratch)), rows_(like) {
    const auto place = reinterpret_cast<std::uintptr_t>(like.data) % kAlignment;
    rows_.data = static_cast<std::byte*>(block_.data()) + place;
  }
  const Rows& rows() const { return rows_; }

 private:
  static constexpr std::int64_t kAlignment = 256;
  Bytes block_;
  Rows rows_;
};

// The rows of a.
Rows factor_rows(const Product& p) {
  return rows_of(p.a.data, p.inner, p.a.stride, p.compute == ComputeType::bf16 ? ElementType::bf16 : ElementType::fp32);
}

// The last `count` rows, fewer than a slice, computed as the first rows of a full slice.
void multiply_last(Product p, std::int64_t count) {
  const Rows a = factor_rows(p), c = rows_of(p.c, p.cols, p.c_stride, p.c_type);
  const Slice full_a(a), full_c(c);
  copy(a, count, full_a.rows(), kSliceRows);
  if (p.add) copy(c, count, full_c.rows(), kSliceRows);
  p.a.data = full_a.rows().data;
  p.c = full_c.rows().data;
  if (p.pre_activation == nullptr) {
    multiply(p);
  } else {
    const Rows z = rows_of(p.pre_activation, p.cols, p.cols, p.c_type);
    const Slice full_z(z);
    p.pre_activation = full_z.rows().data;
    multiply(p);
    copy(full_z.rows(), count, z, count);
  }
  copy(full_c.rows(), count, c, count);
}

}  // namespace

void multiply_rows(const Product& p) {
  if (determinism() == Determinism::run) return multiply(p);
  if (p.a.transposed) fail("multiply_rows", "expected rows of a, got columns");
  const Rows a = factor_rows(p);  // [rows, inner]
  const Rows c = rows_of(p.c, p.cols, p.c_stride, p.c_type);
  Product slice = p;
  slice.rows = kSliceRows;  // the same for every call, so that the library chooses the same algorithm
  slice.whole_sums = true;
  for (std::int64_t first = 0; first < p.rows; first += kSliceRows) {
    slice.a.data = a.from(first).data;
    slice.c = c.from(first).data;
    if (p.pre_activation != nullptr) {
      slice.pre_activation = rows_of(p.pre_activation, p.cols, p.cols, p.c_type).from(first).data;
    }
    if (first + kSliceRows <= p.rows) {
      multiply(slice);
    } else {
      multiply_last(slice, p.rows - first);  // through copies of a, c and z padded to a whole slice
    }
  }
}

}  // namespace etc::ops::cuda
