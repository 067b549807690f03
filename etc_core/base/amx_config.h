// The configuration of AMX's matrix tiles, in the layout that the instruction LDTILECFG reads.
#pragma once

#include <cstdint>

namespace etc {

// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) AmxConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(AmxConfig) == 64);

}  // namespace etc
