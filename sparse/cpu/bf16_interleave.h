// AMX products of two steps of a forward group, issued a few instructions at a time between the vector instructions of
// a third step.
//
// A core holds about 500 instructions in flight. A step's products in a row are so many instructions, and wait so often
// for their operands, that hardly any vector instruction behind them begins before they end. On an Intel Xeon with AMX,
// a step of 32 keys: products alone 71 ns, vector work alone 93 ns, one after the other 151 ns, interleaved 114 ns.
//
// For heads of 64 components. Tile registers as in bf16_tiles_amx.cpp: 0-3 sums of values, 4 and 5 dot products, 6 the
// left operand, 7 the right one. The compiler does not know what the instructions read and write: the constructor and
// finish() are barriers for its memory accesses.
#pragma once

#include <cstdint>

#include "sparse/tile_run.h"

// GCC's intrinsics are inline assembly, which functions compiled for other processors may contain: they run only where
// Bf16Tiles::interleaves says so. Other compilers call the products one after the other.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define ETC_INTERLEAVES_TILES 1
#endif

namespace etc::sparse {

inline constexpr std::int64_t kInterleavedSize = 64;  // D

// What the products of one step read and write.
struct InterleavedOperands {
  const std::uint16_t* q_pairs;  // [32, kGroup, 2]
  const std::uint16_t* k;        // [32, 64]: keys of the step after
  float* s;                      // [32, kGroup]: their dot products
  const std::uint16_t* w_pairs;  // [16, kGroup, 2]: weights of the step before
  const std::uint16_t* v;        // [64, 32]: its values by components
};

#ifdef ETC_INTERLEAVES_TILES

class InterleavedProducts {
 public:
  // Nothing to issue.
  InterleavedProducts() = default;
  explicit InterleavedProducts(const InterleavedOperands& of) : of_(&of), next_(0) { asm volatile("" ::: "memory"); }

  // Issues the next part, if any is left. Parts are of equal length, and a product follows the load of its operand by
  // one part.
  [[gnu::always_inline]] void issue() {
    // Hidden from the compiler, which would otherwise make a copy of the caller's loop per part.
    asm("" : "+r"(next_));
    switch (next_) {
      case 0:
        _tile_zero(4);
        _tile_zero(5);
        _tile_loadd(7, of_->q_pairs, kLine);
        _tile_loadd(6, of_->k, 2 * kInterleavedSize);
        break;
      case 1:
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(6, of_->k + 16 * kInterleavedSize, 2 * kInterleavedSize);
        break;
      case 2:
        _tile_dpbf16ps(5, 6, 7);
        _tile_loadd(7, of_->q_pairs + 16 * kLine / 2, kLine);
        _tile_loadd(6, of_->k + 32, 2 * kInterleavedSize);
        break;
      case 3:
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(6, of_->k + 16 * kInterleavedSize + 32, 2 * kInterleavedSize);
        break;
      case 4:
        _tile_dpbf16ps(5, 6, 7);
        _tile_loadd(7, of_->w_pairs, kLine);
        _tile_loadd(6, of_->v, kLine);
        break;
      case 5:
        _tile_dpbf16ps(0, 6, 7);
        _tile_loadd(6, of_->v + 16 * kLine / 2, kLine);
        break;
      case 6:
        _tile_dpbf16ps(1, 6, 7);
        _tile_loadd(6, of_->v + 32 * kLine / 2, kLine);
        _tile_stored(4, of_->s, kLine);
        break;
      case 7:
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(6, of_->v + 48 * kLine / 2, kLine);
        _tile_stored(5, of_->s + 16 * kGroup, kLine);
        break;
      case 8:
        _tile_dpbf16ps(3, 6, 7);
        break;
      default:
        return;
    }
    ++next_;
  }

  // Issues what is left.
  [[gnu::always_inline]] void finish() {
    while (next_ < kParts) issue();
    asm volatile("" ::: "memory");
  }

 private:
  static constexpr std::int64_t kLine = 64;  // bytes of a tile row
  static constexpr int kParts = 9;

  const InterleavedOperands* of_ = nullptr;
  int next_ = kParts;
};

#else

struct InterleavedProducts {
  InterleavedProducts() = default;
  explicit InterleavedProducts(const InterleavedOperands&) {}
  void issue() {}
  void finish() {}
};

#endif

}  // namespace etc::sparse
