// Weights in the order the matrix tiles read them (amx_tiles.h): a tile row of 64 bytes holds 16 columns, and of each
// column the 2 bf16 numbers or 4 bytes that follow one another in k. The multiplication adds them within a word.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/amx_pack_cpu.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/ops/cpu/amx_tiles.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kRows neighbouring rows of 32 numbers, to be read as words of 4 bytes: word c has the rows' numbers of column c. The
// first 16 words are a row of one tile, the others of the next.
template <typename T, int kRows>
void weave(const T* const (&rows)[kRows], T* to) {
  const hn::CappedTag<std::uint32_t, kAmxRows> words;
  const hn::Rebind<T, decltype(words)> numbers;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(words));
  for (std::int64_t c = 0; c < kAmxCols; c += lanes) {
    // Little-endian words: row r of the group goes r numbers above the lowest bits.
    auto word = hn::PromoteTo(words, hn::LoadU(numbers, rows[0] + c));
    for (int r = 1; r < kRows; ++r) {
      const auto next = hn::PromoteTo(words, hn::LoadU(numbers, rows[r] + c));
      word = hn::Or(word, hn::ShiftLeftSame(next, r * 8 * static_cast<int>(sizeof(T))));
    }
    const std::int64_t tile = c / kAmxRows, column = c % kAmxRows;
    hn::StoreU(word, words, reinterpret_cast<std::uint32_t*>(to + tile * kAmxTileBytes / sizeof(T)) + column);
  }
}

// w [k, n] -> weights [n/32 rounded up][k/kTileDepth rounded up][2][16 words][16 columns], word = kPerWord numbers of
// k. Beyond k and beyond n stand zeros, which add nothing to a sum: the product needs no masks.
template <typename T>
void pack_weights(const T* w, std::int64_t k, std::int64_t n, T* weights) {
  constexpr int kPerWord = 4 / sizeof(T);                   // 2 of bf16, 4 of int8
  constexpr std::int64_t kTileDepth = kAmxRows * kPerWord;  // numbers of k in a tile
  static constexpr T zeros[kAmxCols] = {};                  // [32] stands for a row beyond k
  T some[kPerWord][kAmxCols] = {};  // the rows of a last group of fewer than 32 columns, zeros behind them
  for (std::int64_t col = 0; col < n; col += kAmxCols) {
    const std::int64_t width = std::min(kAmxCols, n - col);
    for (std::int64_t first = 0; first < k; first += kTileDepth, weights += 2 * kAmxTileBytes / sizeof(T)) {
      for (std::int64_t word = 0; word < kAmxRows; ++word) {
        const T* rows[kPerWord];  // [kPerWord] pointers to 32 numbers each: rows that share a word
        for (int r = 0; r < kPerWord; ++r) {
          const std::int64_t row = first + word * kPerWord + r;
          rows[r] = row < k ? w + row * n + col : zeros;
          if (row >= k || width == kAmxCols) continue;
          std::copy_n(rows[r], width, some[r]);
          rows[r] = some[r];
        }
        weave(rows, weights + word * kAmxRowBytes / sizeof(T));
      }
    }
  }
}

void pack_bf16(const std::uint16_t* w, std::int64_t k, std::int64_t n, std::uint16_t* weights) {
  pack_weights(w, k, n, weights);
}

void pack_int8(const std::uint8_t* w, std::int64_t k, std::int64_t n, std::uint8_t* weights) {
  pack_weights(w, k, n, weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

HWY_EXPORT(pack_bf16);
HWY_EXPORT(pack_int8);

void pack_amx_bf16(const std::uint16_t* w, std::int64_t k, std::int64_t n, std::uint16_t* weights) {
  HWY_DYNAMIC_DISPATCH(pack_bf16)(w, k, n, weights);
}

void pack_amx_int8(const std::uint8_t* w, std::int64_t k, std::int64_t n, std::uint8_t* weights) {
  HWY_DYNAMIC_DISPATCH(pack_int8)(w, k, n, weights);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
