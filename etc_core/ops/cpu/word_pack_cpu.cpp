// Packs weights in words (word_product.h); the instructions add the products within a word.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/word_pack_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/word_product.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Interleaves kRows adjacent rows of 16 numbers to 16 words: word c holds the rows' numbers of column c.
template <typename T, int kRows>
void interleave(const T* const (&rows)[kRows], T* to) {
  const hn::CappedTag<std::uint32_t, kWordCols> words;
  const hn::Rebind<T, decltype(words)> numbers;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(words));
  for (std::int64_t c = 0; c < kWordCols; c += lanes) {
    // Little-endian words: the number of row r is shifted left by r numbers.
    auto word = hn::PromoteTo(words, hn::LoadU(numbers, rows[0] + c));
    for (int r = 1; r < kRows; ++r) {
      const auto next = hn::PromoteTo(words, hn::LoadU(numbers, rows[r] + c));
      word = hn::Or(word, hn::ShiftLeftSame(next, r * 8 * static_cast<int>(sizeof(T))));
    }
    hn::StoreU(word, words, reinterpret_cast<std::uint32_t*>(to) + c);
  }
}

// 16 words of k from first_row on, by up to 16 of the `width` columns that begin at w; width may be 0.
template <typename T>
struct BlockOf {
  const T* w;  // [k, n] from the block's first column on
  std::int64_t k, n, first_row, width;
};

template <typename T>
void pack_block(const BlockOf<T>& of, std::int64_t word_bytes, T* block) {
  const auto [w, k, n, first, width] = of;
  constexpr int kPerWord = 4 / sizeof(T);    // 2 of bf16, 4 of int8
  static constexpr T zeros[kWordCols] = {};  // used for rows beyond k
  T some[kPerWord][kWordCols] = {};          // rows of fewer than 16 columns, padded with zeros
  for (std::int64_t word = 0; word < kWordRows; ++word, block += word_bytes / static_cast<std::int64_t>(sizeof(T))) {
    const T* rows[kPerWord];  // of 16 numbers each, which share a word
    for (int r = 0; r < kPerWord; ++r) {
      const std::int64_t row = first + word * kPerWord + r;
      rows[r] = row < k && width > 0 ? w + row * n : zeros;
      if (rows[r] == zeros || width >= kWordCols) continue;
      std::copy_n(rows[r], width, some[r]);
      rows[r] = some[r];
    }
    interleave(rows, block);
  }
}

template <typename T>
void pack(const T* w, std::int64_t k, std::int64_t n, const WordLayout& to, T* weights) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kDepth = kWordRowBytes / kSize;  // numbers of k in a block
  for (std::int64_t group = 0; group < n; group += to.cols()) {
    for (std::int64_t first = 0; first < k; first += kDepth, weights += to.blocks * kWordBlockBytes / kSize) {
      for (std::int64_t b = 0; b < to.blocks; ++b) {
        const std::int64_t col = std::min(n, group + b * kWordCols);
        pack_block({w + col, k, n, first, n - col}, to.word_bytes, weights + b * to.block_bytes / kSize);
      }
    }
  }
}

void pack_bf16(const std::uint16_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint16_t* weights) {
  pack(w, k, n, to, weights);
}

void pack_int8(const std::uint8_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint8_t* weights) {
  pack(w, k, n, to, weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

void pack_words(const std::uint16_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint16_t* weights) {
  ETC_DISPATCH(pack_bf16)(w, k, n, to, weights);
}

void pack_words(const std::uint8_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint8_t* weights) {
  ETC_DISPATCH(pack_int8)(w, k, n, to, weights);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
