#include "etc_core/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace etc {

namespace {

// kTables[k][b]: the contribution of byte b to the remainder after k further zero bytes.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0x82f63b78u : 0u);
    tables[0][byte] = remainder;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t last = tables[k - 1][byte];
      tables[k][byte] = (last >> 8) ^ tables[0][last & 255];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

std::uint64_t word_at(const unsigned char* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

#if defined(__x86_64__)

// The CRC instruction has a latency of three cycles and a throughput of one per cycle, so three runs of this many bytes
// are processed in an interleaved way.
constexpr std::size_t kRunBytes = 4096;

// The effect of a run of zero bytes on a remainder: a linear map, stored as a table for each byte of the remainder.
class PastRun {
 public:
  PastRun() {
    const std::array<unsigned char, kRunBytes> zeros{};
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const std::uint32_t image = ~crc32c_detail::software(~(1u << bit), zeros.data(), zeros.size());
      auto& table = tables_[bit / 8];
      for (std::uint32_t byte = 0; byte < 256; ++byte) {
        if (byte >> bit % 8 & 1) table[byte] ^= image;
      }
    }
  }
  std::uint32_t operator()(std::uint32_t remainder) const {
    return tables_[0][remainder & 255] ^ tables_[1][remainder >> 8 & 255] ^ tables_[2][remainder >> 16 & 255] ^
           tables_[3][remainder >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> tables_{};
};

__attribute__((target("sse4.2"))) std::uint32_t hardware(std::uint32_t before, const void* bytes, std::size_t size) {
  static const PastRun past_run;
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t crc = ~before;
  for (; size >= 3 * kRunBytes; size -= 3 * kRunBytes, at += 3 * kRunBytes) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < kRunBytes; i += 8) {
      crc = _mm_crc32_u64(crc, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kRunBytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kRunBytes + i));
    }
    // The remainder of concatenated runs: the first run's, carried past the later runs, plus the later runs'
    // remainders.
    crc = past_run(static_cast<std::uint32_t>(crc)) ^ second;
    crc = past_run(static_cast<std::uint32_t>(crc)) ^ third;
  }
  for (; size >= 8; size -= 8, at += 8) crc = _mm_crc32_u64(crc, word_at(at));
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; size > 0; --size, ++at) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_detail::software(std::uint32_t before, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint32_t crc = ~before;
  for (; size >= 8; size -= 8, at += 8) {
    const std::uint64_t word = word_at(at) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 255];
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 255];
  return ~crc;
}

std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return hardware(before, bytes, size);
#endif
  return crc32c_detail::software(before, bytes, size);
}

}  // namespace etc
