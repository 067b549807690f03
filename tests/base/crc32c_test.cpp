#include "etc_core/base/crc32c.h"

#include <string>

#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("CRC-32C has its published values, in hardware and in software, whole and in pieces", "[base]") {
  // The check values of RFC 3720, B.4, and of the polynomial's catalogue entry.
  const std::string digits = "123456789", zeros(32, '\0'), ones(32, '\xff');
  REQUIRE(crc32c(0, digits.data(), 9) == 0xe3069283u);
  REQUIRE(crc32c(0, zeros.data(), 32) == 0x8a9136aau);
  REQUIRE(crc32c(0, ones.data(), 32) == 0x62a8ab43u);
  std::string bytes;
  for (int i = 0; i < 40000; ++i) bytes += static_cast<char>(i * i / 7);
  for (std::size_t begin : {0u, 1u, 5u}) {
    for (std::size_t size : {0u, 1u, 7u, 8u, 9u, 63u, 900u, 12287u, 12288u, 12289u, 39990u}) {
      const std::uint32_t whole = crc32c(0, bytes.data() + begin, size);
      REQUIRE(crc32c_detail::software(0, bytes.data() + begin, size) == whole);
      const std::uint32_t half = crc32c(0, bytes.data() + begin, size / 3);
      REQUIRE(crc32c(half, bytes.data() + begin + size / 3, size - size / 3) == whole);
    }
  }
}
