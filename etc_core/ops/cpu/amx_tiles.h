// The two halves of a dense product on matrix tiles: the instructions, and the order in which they want the weights.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kAmxRowBytes = 64;  // of a row of a tile
inline constexpr std::int64_t kAmxRows = 16;      // of a tile
inline constexpr std::int64_t kAmxTileBytes = kAmxRows * kAmxRowBytes;
inline constexpr std::int64_t kAmxCols = 32;  // of a group: two tiles

// Around the products of one thread's task: setting the tiles up takes as long as a tenth of a product. They nest. In
// between no library may use the tiles.
void begin_amx();
void end_amx();

// y [m, cols] = x·W for a group of 32 columns or fewer, y row-major without gaps; x [m, steps·64 bytes], rows row_bytes
// apart; m a multiple of 16.
//   weights [steps][2][16][64 bytes]: k by 64 bytes, then a tile of 16 columns each, whose row holds for every column
//   the numbers of 4 bytes that follow one another in k
// 32 rows by 32 columns are summed in four tiles at a time: every tile that is loaded serves two products.
//   amx_bf16: bf16 -> fp32        amx_int8: unsigned and signed bytes -> int32
struct AmxProduct {
  std::int64_t m = 0, cols = 0;
  std::int64_t steps = 0;  // of 64 bytes of k
  const void* x = nullptr;
  std::int64_t row_bytes = 0;
  const void* weights = nullptr;
  void* y = nullptr;  // of numbers of 4 bytes
};
void amx_bf16(const AmxProduct& product);
void amx_int8(const AmxProduct& product);

// w [k, n], without gaps -> weights of all groups [n/32 rounded up], zeros where there are none.
void pack_amx_bf16(const std::uint16_t* w, std::int64_t k, std::int64_t n, std::uint16_t* weights);
void pack_amx_int8(const std::uint8_t* w, std::int64_t k, std::int64_t n, std::uint8_t* weights);

}  // namespace etc::ops::cpu
