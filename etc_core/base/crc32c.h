// CRC-32C (Castagnoli), the checksum of TensorFlow's bundles and of TFRecords (TensorBoard's events).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etc {

// The checksum of a sequence of bytes, given the checksum of the bytes before it (0 at the beginning):
// crc32c(crc32c(0, a), b) is the checksum of a followed by b. Uses the processor's CRC instruction where it exists,
// else tables for eight bytes at a time.
std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size);

inline std::uint32_t crc32c(std::string_view bytes) {
  return crc32c(0, bytes.data(), bytes.size());
}

// The form in which these formats store checksums: rotated, plus a constant, because a checksum over data that contain
// plain checksums would be weak.
constexpr std::uint32_t masked_crc(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

namespace crc32c_detail {
// The portable implementation; tests compare it with the other one.
std::uint32_t software(std::uint32_t before, const void* bytes, std::size_t size);
}  // namespace crc32c_detail

}  // namespace etc
