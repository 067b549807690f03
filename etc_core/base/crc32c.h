// CRC-32C (Castagnoli), the checksum of TensorFlow's bundles and of TFRecords (TensorBoard's events).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etc {

// The checksum of a run of bytes, given the one of what went before (0 at the beginning): crc32c(crc32c(0, a), b) is
// the checksum of a followed by b. The instruction of the processor where it has one, else eight bytes a step.
std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size);

inline std::uint32_t crc32c(std::string_view bytes) {
  return crc32c(0, bytes.data(), bytes.size());
}

// What all of these store: a checksum of data that holds checksums would be weak, so they are rotated and
// shifted.
constexpr std::uint32_t masked_crc(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

namespace crc32c_detail {
// The portable form; tests hold the two against each other.
std::uint32_t software(std::uint32_t before, const void* bytes, std::size_t size);
}  // namespace crc32c_detail

}  // namespace etc
