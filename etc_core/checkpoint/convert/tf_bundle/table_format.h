// Constants of the table format that its reader and its writer share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etc::convert {

inline constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57ull;
inline constexpr std::size_t kFooterBytes = 48;  // two handles, zeros up to 40, the magic number
inline constexpr std::size_t kTrailerBytes = 5;  // after a block: compression, checksum
inline constexpr char kStored = 0, kSnappy = 1;

}  // namespace etc::convert
