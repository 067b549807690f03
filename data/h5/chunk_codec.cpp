#include "data/h5/chunk_codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <vector>

namespace etc::data::h5 {

namespace {

constexpr std::size_t kChecksumBytes = 4;

struct Free {
  void operator()(libdeflate_compressor* compressor) const { libdeflate_free_compressor(compressor); }
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};

// Codec state and buffers of one thread.
struct Tools {
  libdeflate_compressor& compressor() {
    if (!deflate) deflate.reset(libdeflate_alloc_compressor(kDeflateLevel));
    if (!deflate) throw std::bad_alloc();
    return *deflate;
  }
  libdeflate_decompressor& decompressor() {
    if (!inflate) inflate.reset(libdeflate_alloc_decompressor());
    if (!inflate) throw std::bad_alloc();
    return *inflate;
  }

  std::unique_ptr<libdeflate_compressor, Free> deflate;
  std::unique_ptr<libdeflate_decompressor, Free> inflate;
  std::vector<std::byte> planes, packed;
  std::map<std::size_t, std::vector<std::byte>> packed_zeros;  // by the chunk's bytes
};

Tools& tools() {
  static thread_local Tools all;
  return all;
}

// Writes the first bytes of all elements, then all second bytes, …; the rest of each plane, for missing elements, is
// zeroed.
template <std::size_t Size>
void shuffle(std::span<const std::byte> elements, std::span<std::byte> planes) {
  const std::size_t count = elements.size() / Size, room = planes.size() / Size;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t b = 0; b < Size; ++b) planes[b * room + i] = elements[i * Size + b];
  }
  for (std::size_t b = 0; b < Size; ++b) {
    const auto plane = planes.subspan(b * room, room);
    std::fill(plane.begin() + static_cast<std::ptrdiff_t>(count), plane.end(), std::byte{0});
  }
}

// The first elements of the planes of `room` elements each.
template <std::size_t Size>
void unshuffle(const std::byte* planes, std::size_t room, std::span<std::byte> elements) {
  for (std::size_t i = 0; i < elements.size() / Size; ++i) {
    for (std::size_t b = 0; b < Size; ++b) elements[i * Size + b] = planes[b * room + i];
  }
}

std::uint32_t folded(std::uint32_t sum) {
  return (sum & 0xFFFF) + (sum >> 16);
}

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  constexpr std::size_t kWordsBeforeOverflow = 360;
  std::uint32_t first = 0, second = 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.size(), at + 2 * kWordsBeforeOverflow);
    for (; at < end; at += 2) {
      first += byte(at) << 8 | (at + 1 < end ? byte(at + 1) : 0);
      second += first;
    }
    first = folded(first);
    second = folded(second);
  }
  return folded(second) << 16 | folded(first);
}

std::size_t largest_packed(std::size_t chunk_bytes) {
  return libdeflate_zlib_compress_bound(nullptr, chunk_bytes) + kChecksumBytes;
}

std::span<const std::byte> pack_chunk(std::span<const std::byte> elements, int element_size,
                                      std::size_t chunk_elements) {
  Tools& mine = tools();
  const std::size_t chunk_bytes = chunk_elements * static_cast<std::size_t>(element_size);
  // All-zero columns are common: empty tables have offsets, and features that a split lacks are 0.
  const bool zero = std::all_of(elements.begin(), elements.end(), [](std::byte b) { return b == std::byte{0}; });
  if (zero) {
    const auto known = mine.packed_zeros.find(chunk_bytes);
    if (known != mine.packed_zeros.end()) return known->second;
  }
  mine.planes.resize(chunk_bytes);
  if (element_size == 1) shuffle<1>(elements, mine.planes);
  if (element_size == 2) shuffle<2>(elements, mine.planes);
  if (element_size == 4) shuffle<4>(elements, mine.planes);
  if (element_size == 8) shuffle<8>(elements, mine.planes);
  mine.packed.resize(largest_packed(chunk_bytes));
  const std::size_t bytes = libdeflate_zlib_compress(&mine.compressor(), mine.planes.data(), chunk_bytes,
                                                     mine.packed.data(), mine.packed.size());
  const std::uint32_t sum = fletcher32({mine.packed.data(), bytes});
  for (std::size_t b = 0; b < kChecksumBytes; ++b) mine.packed[bytes + b] = static_cast<std::byte>(sum >> (8 * b));
  const std::span<const std::byte> result(mine.packed.data(), bytes + kChecksumBytes);
  if (zero) mine.packed_zeros[chunk_bytes].assign(result.begin(), result.end());
  return result;
}

bool unpack_chunk(std::span<const std::byte> packed, std::span<std::byte> elements, int element_size,
                  std::size_t chunk_elements) {
  if (packed.size() < kChecksumBytes) return false;
  const std::size_t bytes = packed.size() - kChecksumBytes;
  std::uint32_t sum = 0;
  for (std::size_t b = 0; b < kChecksumBytes; ++b) {
    sum |= std::to_integer<std::uint32_t>(packed[bytes + b]) << (8 * b);
  }
  if (sum != fletcher32(packed.first(bytes))) return false;
  Tools& mine = tools();
  const std::size_t chunk_bytes = chunk_elements * static_cast<std::size_t>(element_size);
  const bool in_place = element_size == 1 && elements.size() == chunk_bytes;
  if (!in_place) mine.planes.resize(chunk_bytes);
  std::byte* planes = in_place ? elements.data() : mine.planes.data();
  // Without an output pointer for the length, libdeflate accepts only data of exactly this length.
  if (libdeflate_zlib_decompress(&mine.decompressor(), packed.data(), bytes, planes, chunk_bytes, nullptr) !=
      LIBDEFLATE_SUCCESS) {
    return false;
  }
  if (element_size == 1 && !in_place) unshuffle<1>(planes, chunk_elements, elements);
  if (element_size == 2) unshuffle<2>(planes, chunk_elements, elements);
  if (element_size == 4) unshuffle<4>(planes, chunk_elements, elements);
  if (element_size == 8) unshuffle<8>(planes, chunk_elements, elements);
  return true;
}

}  // namespace etc::data::h5
