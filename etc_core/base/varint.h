// Numbers of variable length as protocol buffers and LevelDB's tables write them: seven bits a byte, the lowest first,
// the eighth bit set in all bytes but the last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etc {

inline constexpr std::size_t kLongestVarint = 10;  // bytes of 64 bits

inline void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  bytes += static_cast<char>(value);
}

// Removes a number from the front of the bytes. Returns nullopt, and leaves the bytes unchanged, if they end within the
// number or it has more than 64 bits.
inline std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kLongestVarint; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i + 1 == kLongestVarint && byte > 1) break;
    value |= std::uint64_t{byte & 127u} << (7 * i);
    if (byte >= 128) continue;
    bytes.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

}  // namespace etc
