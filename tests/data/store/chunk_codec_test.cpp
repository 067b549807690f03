// The store's filters on whole chunks. trusted_test.cpp (h5py) shows that HDF5's own filters read and write the same
// bytes, with full and partial chunks.
#include "data/h5/chunk_codec.h"

#include <string_view>
#include <vector>

#include "tests/support/catch.h"

using namespace etc::data::h5;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Mixed bytes: runs, a slope, noise.
std::vector<std::byte> sample_chunk(std::size_t size) {
  std::vector<std::byte> chunk(size);
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < size; ++i) {
    noise = noise * 1664525u + 1013904223u;
    chunk[i] = static_cast<std::byte>(i < size / 3 ? 7 : i < size / 2 ? i / 8 : noise >> 24);
  }
  return chunk;
}

}  // namespace

TEST_CASE("the checksum is Fletcher's of words with the high byte first", "[data][store]") {
  // The published test values of Fletcher-32 are for words with the low byte first, so the bytes of each word are
  // swapped here.
  CHECK(fletcher32(bytes_of("badcfe")) == 0x56502D2A);    // "abcdef"
  CHECK(fletcher32(bytes_of("badcfehg")) == 0xEBE19591);  // "abcdefgh"
  CHECK(fletcher32(bytes_of(std::string_view("ba\0", 3))) == fletcher32(bytes_of("ba")) + 0x62610000);
  CHECK(fletcher32({}) == 0);
}

TEST_CASE("a chunk comes back as it was, whatever the size of its elements", "[data][store]") {
  for (const int element_size : {1, 2, 4, 8}) {
    for (const std::size_t elements : {std::size_t{1}, std::size_t{1000}, std::size_t{65536}}) {
      CAPTURE(element_size, elements);
      const std::vector<std::byte> chunk = sample_chunk(elements * static_cast<std::size_t>(element_size));
      const std::span<const std::byte> packed = pack_chunk(chunk, element_size, elements);
      CHECK(packed.size() <= largest_packed(chunk.size()));
      std::vector<std::byte> back(chunk.size());
      REQUIRE(unpack_chunk(packed, back, element_size, elements));
      CHECK(back == chunk);
    }
  }
}

TEST_CASE("a chunk that is not full is packed as with zeros behind its elements", "[data][store]") {
  const auto packed_as = [](std::span<const std::byte> elements, int element_size) {
    const std::span<const std::byte> packed = pack_chunk(elements, element_size, 5000);
    return std::vector<std::byte>(packed.begin(), packed.end());
  };
  for (const int element_size : {1, 2, 4, 8}) {
    for (const std::size_t elements : {0, 1, 1000}) {
      CAPTURE(element_size, elements);
      const auto size = static_cast<std::size_t>(element_size);
      for (const std::vector<std::byte>& part :
           {sample_chunk(elements * size), std::vector<std::byte>(elements * size)}) {
        std::vector<std::byte> whole = part, back(5000 * size, std::byte{1});
        whole.resize(back.size());
        const std::vector<std::byte> packed = packed_as(part, element_size);
        CHECK(packed == packed_as(whole, element_size));
        REQUIRE(unpack_chunk(packed, back, element_size, 5000));
        CHECK(back == whole);
        std::vector<std::byte> first(part.size());
        REQUIRE(unpack_chunk(packed, first, element_size, 5000));
        CHECK(first == part);
      }
    }
  }
}

TEST_CASE("packed bytes that are damaged, cut or of another length are refused", "[data][store]") {
  const std::vector<std::byte> chunk = sample_chunk(4000);
  const std::span<const std::byte> view = pack_chunk(chunk, 4, 1000);
  const std::vector<std::byte> packed(view.begin(), view.end());
  std::vector<std::byte> back(chunk.size());
  REQUIRE(unpack_chunk(packed, back, 4, 1000));
  CHECK_FALSE(unpack_chunk(packed, std::span(back).first(back.size() - 4), 4, 999));
  CHECK_FALSE(unpack_chunk(packed, back, 4, 1001));
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::vector<std::byte> damaged = packed;
    damaged[i] ^= std::byte{0x10};
    if (unpack_chunk(damaged, back, 4, 1000)) FAIL("byte " << i << " was changed unseen");
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{4}, packed.size() - 1}) {
    CHECK_FALSE(unpack_chunk(std::span(packed).first(size), back, 4, 1000));
  }
}
