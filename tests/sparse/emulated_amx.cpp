#include "tests/sparse/emulated_amx.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "etc_core/base/amx_config.h"
#include "etc_core/base/bf16.h"
#include "sparse/cpu/bf16_round.h"

namespace etc::test {

namespace {

// Intel's manual, chapter "Intel AMX": eight registers of at most 16 rows of 64 bytes. Only full shapes are emulated,
// because the kernels configure no others.
struct TileRegisters {
  static constexpr int kRows = 16, kRowBytes = 64;
  bool configured = false;
  alignas(64) std::uint8_t tile[8][kRows][kRowBytes] = {};

  void load(int number, const void* from, std::int64_t stride) {
    for (int r = 0; r < kRows; ++r)
      std::memcpy(tile[number][r], static_cast<const char*>(from) + r * stride, kRowBytes);
  }
  void store(int number, void* to, std::int64_t stride) const {
    for (int r = 0; r < kRows; ++r) std::memcpy(static_cast<char*>(to) + r * stride, tile[number][r], kRowBytes);
  }
  void zero(int number) { std::memset(tile[number], 0, sizeof(tile[number])); }

  // TDPBF16PS: c[m][n] += a[m] · b[·][n]; even and odd products are summed separately, added to each other, then to c.
  void multiply(int c, int a, int b) {
    for (int m = 0; m < kRows; ++m) {
      for (int n = 0; n < kRowBytes / 4; ++n) {
        float sums[2] = {0.0f, 0.0f};
        for (int k = 0; k < kRowBytes / 4; ++k) {
          for (int half = 0; half < 2; ++half) {
            const float x = float_from_bf16(number_at(a, m, 2 * k + half)),
                        y = float_from_bf16(number_at(b, k, 2 * n + half));
            sums[half] = std::fma(x, y, sums[half]);
          }
        }
        float sum;
        std::memcpy(&sum, &tile[c][m][4 * n], sizeof(sum));
        sum += sums[0] + sums[1];
        std::memcpy(&tile[c][m][4 * n], &sum, sizeof(sum));
      }
    }
  }

 private:
  std::uint16_t number_at(int number, int row, int at) const {
    std::uint16_t value;
    std::memcpy(&value, &tile[number][row][2 * at], sizeof(value));
    return value;
  }
};

thread_local TileRegisters registers;

}  // namespace

}  // namespace etc::test

// The kernels' source with the instructions replaced, under another name.
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) (static_cast<void>(config), etc::test::registers.configured = true)
#define _tile_release() (etc::test::registers.configured = false)
#define _tile_loadd(number, from, stride) etc::test::registers.load(number, from, stride)
#define _tile_stored(number, to, stride) etc::test::registers.store(number, to, stride)
#define _tile_zero(number) etc::test::registers.zero(number)
#define _tile_dpbf16ps(c, a, b) etc::test::registers.multiply(c, a, b)
#define amx_bf16_tiles amx_kernels_on_emulated_tiles
#define InterleavedProducts InterleavedProductsOnEmulatedTiles
// The rounding functions need AVX-512; they are declared here and not called.
#include "sparse/cpu/bf16_interleave.h"
#include "sparse/cpu/bf16_tiles_amx.cpp"
#undef amx_bf16_tiles

namespace etc::test {

const sparse::Bf16Tiles& emulated_amx_tiles() {
  static const sparse::Bf16Tiles tiles = [] {
    sparse::Bf16Tiles own = sparse::amx_kernels_on_emulated_tiles();
    own.round_row = sparse::plain_bf16_tiles().round_row;
    own.round_pairs = sparse::plain_bf16_tiles().round_pairs;
    return own;
  }();
  return tiles;
}

void interleave_on_emulated_tiles(const sparse::InterleavedOperands& operands, int parts) {
  sparse::InterleavedProducts products(operands);
  for (int part = 0; part < parts; ++part) products.issue();
  products.finish();
}

}  // namespace etc::test

#endif  // __x86_64__
