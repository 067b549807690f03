// Rounds fp32 weights to bf16, or splits them in three bf16 parts, directly in words (word_product.h). Weights of a
// training step are packed in every call, and one pass takes 0.25 to 0.65 of the time of copies, rounding and packing one
// after the other.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/word_round_cpu.cpp"
#include "etc_core/base/integers.h"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/bf16-inl.h"
#include "etc_core/base/bf16.h"
#include "etc_core/base/transpose-inl.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/cpu/word_product.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kWordNumbers = kWordRowBytes / 2;  // of k in a block

// Where the words of a panel go: 16 columns of W from number `columns` on and 32 of its rows from `row` on, a multiple
// of 32, are one block.
struct WordPlace {
  const WordLayout& to;
  std::int64_t k;
  std::uint16_t* weights;

  HWY_INLINE std::uint16_t* block(std::int64_t columns, std::int64_t row) const {
    const std::int64_t steps = ceil_div(k, kWordNumbers), cols = to.cols();
    const std::int64_t group = columns / cols * to.parts * steps + row / kWordNumbers;
    return weights + (group * to.blocks * kWordBlockBytes + columns % cols / kWordCols * to.block_bytes) / 2;
  }
  // Numbers from a block to the same block of the next part.
  HWY_INLINE std::int64_t part_numbers() const { return ceil_div(k, kWordNumbers) * to.blocks * kWordBlockBytes / 2; }
};

// x rounded to bf16, or its three parts, in the high halves of the lanes.
template <int kParts, class D, class V = hn::Vec<D>>
HWY_INLINE void parts_of(D d, V x, hn::Vec<hn::RebindToUnsigned<D>> (&parts)[kParts]) {
  if constexpr (kParts == 1) {
    parts[0] = hn::ShiftLeft<16>(etc::HWY_NAMESPACE::bf16_bits(d, x));
  } else {
    etc::HWY_NAMESPACE::split_in_bf16(d, x, parts);
  }
}

// W in its own order: pairs of rows are interleaved. 32 rows by 16 columns become one block, which is written
// sequentially; the same columns of the next 32 rows are prefetched meanwhile, because no hardware prefetcher follows
// short parts of many rows.
template <int kParts>
void round_rows(const PanelBlock& b, const WordPlace& place, std::int64_t end) {
  const hn::CappedTag<float, kWordCols> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < place.k; row += kWordNumbers) {
    for (std::int64_t col = 0; col < end; col += kWordCols) {
      std::uint16_t* const block = place.block(col, row);
      for (std::int64_t word = 0; word < kWordRows; ++word) {
        const std::int64_t first = row + 2 * word;
        const float* const rows = b.weight + first * b.stride + b.first_col + col;  // [2, kWordCols], rows stride apart
        hwy::Prefetch(rows + kWordNumbers * b.stride);
        hwy::Prefetch(rows + (kWordNumbers + 1) * b.stride);
        for (std::int64_t c = 0; c < kWordCols; c += lanes) {
          const FirstLanes some{static_cast<std::size_t>(std::clamp<std::int64_t>(b.cols - col - c, 0, lanes))};
          const auto numbers = [&](std::int64_t of) HWY_ATTR {
            if (first + of >= b.k || some.count == 0) return hn::Zero(d);
            const float* const from = rows + of * b.stride + c;
            const bool whole = some.count == static_cast<std::size_t>(lanes);
            return whole ? hn::LoadU(d, from) : some.load(d, from);
          };
          hn::Vec<decltype(du)> even[kParts], odd[kParts];
          parts_of(d, numbers(0), even);
          parts_of(d, numbers(1), odd);
          for (int part = 0; part < kParts; ++part) {
            std::uint16_t* const words = block + part * place.part_numbers() + word * place.to.word_bytes / 2;
            hn::StoreU(hn::Or(hn::ShiftRight<16>(even[part]), odd[part]), du,
                       reinterpret_cast<std::uint32_t*>(words) + c);
          }
        }
      }
    }
  }
}

// W stored as [n, k]: the two numbers of a word are adjacent. Sixteen of its rows are read sequentially, 32 numbers of
// each at a time, rounded and transposed.
template <int kParts>
void round_columns(const PanelBlock& b, const WordPlace& place, std::int64_t end) {
  HWY_ALIGN Bf16 rounded[kParts][kWordCols][kWordNumbers];
  for (std::int64_t col = 0; col < end; col += kWordCols) {
    for (std::int64_t row = 0; row < place.k; row += kWordNumbers) {
      const std::int64_t count = std::clamp<std::int64_t>(b.k - row, 0, kWordNumbers);
      for (std::int64_t c = 0; c < kWordCols; ++c) {
        const bool given = col + c < b.cols;
        const float* const from = b.weight + (b.first_col + col + c) * b.stride + row;
        if (given) {
          hwy::Prefetch(from + 4 * kWordNumbers);
          hwy::Prefetch(from + 4 * kWordNumbers + 16);
          if constexpr (kParts == 1) {
            round_row(from, count, rounded[0][c]);
          } else {
            split_row(from, count, kWordCols * kWordNumbers, rounded[0][c]);
          }
        }
        for (auto& part : rounded) std::fill(part[c] + (given ? count : 0), part[c] + kWordNumbers, Bf16{});
      }
      for (int part = 0; part < kParts; ++part) {
        std::uint16_t* const block = place.block(col, row) + part * place.part_numbers();
        etc::HWY_NAMESPACE::transpose_block(reinterpret_cast<const float*>(rounded[part]), kWordCols,
                                            reinterpret_cast<float*>(block), place.to.word_bytes / 4);
      }
    }
  }
}

template <int kParts>
void round_block(const PanelBlock& block, const WordPlace& place, std::int64_t end) {
  if (block.layout == WeightLayout::out_in) {
    round_columns<kParts>(block, place, end);
  } else {
    round_rows<kParts>(block, place, end);
  }
}

void round_words(const PanelBlock& block, std::int64_t k, const WordLayout& to, std::uint16_t* weights) {
  const WordPlace place{to, k, weights};
  const std::int64_t end = (block.cols + to.cols() - 1) / to.cols() * to.cols();  // the last group is padded
  (to.parts == 1 ? round_block<1> : round_block<3>)(block, place, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

void round_to_words(const PanelBlock& block, std::int64_t k, const WordLayout& to, std::uint16_t* weights) {
  ETC_DISPATCH(round_words)(block, k, to, weights);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
