// The store's filters on whole chunks. trusted_test.cpp (h5py) shows that HDF5's own filters read and write the same
// bytes, with full and partial chunks.
#include "data/h5/chunk_codec.h"

#include <string_view>
#include <thread>
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

std::vector<std::byte> packed_as(std::span<const std::byte> elements, int element_size, std::size_t room) {
  const std::span<const std::byte> packed = pack_chunk(elements, element_size, room);
  return std::vector<std::byte>(packed.begin(), packed.end());
}

// Mixed bytes, zeros, and elements of which one byte alone is not 0.
std::vector<std::vector<std::byte>> samples(std::size_t elements, int element_size) {
  const auto size = static_cast<std::size_t>(element_size);
  const std::vector<std::byte> mixed = sample_chunk(elements * size);
  std::vector<std::vector<std::byte>> all{mixed, std::vector<std::byte>(mixed.size())};
  for (std::size_t kept = 0; kept < size; ++kept) {
    std::vector<std::byte>& one = all.emplace_back(mixed.size());
    for (std::size_t i = kept; i < one.size(); i += size) one[i] = mixed[i];
  }
  return all;
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
  for (const std::size_t room : {std::size_t{5000}, std::size_t{65536}}) {
    for (const int element_size : {1, 2, 4, 8}) {
      for (const std::size_t elements : {0, 1, 1000, 5000}) {
        CAPTURE(room, element_size, elements);
        for (const std::vector<std::byte>& part : samples(elements, element_size)) {
          std::vector<std::byte> whole = part, back(room * static_cast<std::size_t>(element_size), std::byte{1});
          whole.resize(back.size());
          const std::vector<std::byte> packed = packed_as(part, element_size, room);
          CHECK(packed == packed_as(whole, element_size, room));
          REQUIRE(unpack_chunk(packed, back, element_size, room));
          CHECK(back == whole);
          std::vector<std::byte> first(part.size());
          REQUIRE(unpack_chunk(packed, first, element_size, room));
          CHECK(first == part);
        }
      }
    }
  }
}

TEST_CASE("equal chunks are packed to equal bytes, whatever a thread has packed before", "[data][store]") {
  for (const std::vector<std::byte>& chunk : samples(1000, 4)) {
    std::vector<std::byte> first;
    std::thread([&] { first = packed_as(chunk, 4, 65536); }).join();
    for (const std::vector<std::byte>& other : samples(1001, 8)) {
      packed_as(other, 8, 65536);
      CHECK(packed_as(chunk, 4, 65536) == first);
    }
  }
}

TEST_CASE("zeros behind few elements cost a thousandth of their bytes", "[data][store]") {
  for (const int element_size : {1, 2, 4, 8}) {
    const std::vector<std::byte> chunk(static_cast<std::size_t>(10 * element_size), std::byte{1});
    CHECK(packed_as(chunk, element_size, 65536).size() <= 66 * static_cast<std::size_t>(element_size) + 66 * 8);
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
