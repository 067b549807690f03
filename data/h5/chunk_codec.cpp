#include "data/h5/chunk_codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "data/h5/padded_deflate.h"

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
  std::optional<PaddedDeflate> padded;
  std::vector<std::byte> planes, packed;
  std::vector<std::byte> unpacked;  // planes hold the elements of these packed bytes; empty: those of none
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

// Writes the planes' zlib stream to tools.packed.
void deflate_padded(Tools& tools, std::size_t filled, std::size_t room) {
  if (!tools.padded) tools.padded.emplace(kDeflateLevel);
  constexpr std::byte kHeader[]{std::byte{0x78}, std::byte{0x5E}};  // as libdeflate at this level
  tools.packed.assign(std::begin(kHeader), std::end(kHeader));
  tools.padded->append(tools.planes, filled, room, tools.packed);
  const std::uint32_t sum = libdeflate_adler32(1, tools.planes.data(), tools.planes.size());
  for (int shift = 24; shift >= 0; shift -= 8) tools.packed.push_back(static_cast<std::byte>(sum >> shift));
}

// False unless the zlib stream is valid and as long as the planes.
bool inflate(Tools& tools, std::span<const std::byte> stream, std::span<std::byte> planes) {
  // Without an output pointer for the length, libdeflate accepts only data of exactly this length.
  return libdeflate_zlib_decompress(&tools.decompressor(), stream.data(), stream.size(), planes.data(), planes.size(),
                                    nullptr) == LIBDEFLATE_SUCCESS;
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
  const auto size = static_cast<std::size_t>(element_size), chunk_bytes = chunk_elements * size;
  mine.unpacked.clear();
  mine.planes.resize(chunk_bytes);
  if (element_size == 1) shuffle<1>(elements, mine.planes);
  if (element_size == 2) shuffle<2>(elements, mine.planes);
  if (element_size == 4) shuffle<4>(elements, mine.planes);
  if (element_size == 8) shuffle<8>(elements, mine.planes);
  const auto nonzero = std::find_if(elements.rbegin(), elements.rend(), [](std::byte b) { return b != std::byte{0}; });
  const auto bytes = static_cast<std::size_t>(elements.rend() - nonzero);
  const std::size_t filled = (bytes + size - 1) / size;
  if (PaddedDeflate::suits(filled, chunk_elements)) {
    deflate_padded(mine, filled, chunk_elements);
  } else {
    mine.packed.resize(libdeflate_zlib_compress_bound(nullptr, chunk_bytes));
    mine.packed.resize(libdeflate_zlib_compress(&mine.compressor(), mine.planes.data(), chunk_bytes, mine.packed.data(),
                                                mine.packed.size()));
  }
  const std::uint32_t sum = fletcher32(mine.packed);
  for (std::size_t b = 0; b < kChecksumBytes; ++b) mine.packed.push_back(static_cast<std::byte>(sum >> (8 * b)));
  return mine.packed;
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
  if (element_size == 1 && elements.size() == chunk_bytes) return inflate(mine, packed.first(bytes), elements);
  // Aligned features have one column of offsets, and empty tables have equal ones, which are read one after the other.
  if (mine.planes.size() != chunk_bytes || !std::ranges::equal(packed, mine.unpacked)) {
    mine.unpacked.clear();
    mine.planes.resize(chunk_bytes);
    if (!inflate(mine, packed.first(bytes), mine.planes)) return false;
    mine.unpacked.assign(packed.begin(), packed.end());
  }
  if (element_size == 1) unshuffle<1>(mine.planes.data(), chunk_elements, elements);
  if (element_size == 2) unshuffle<2>(mine.planes.data(), chunk_elements, elements);
  if (element_size == 4) unshuffle<4>(mine.planes.data(), chunk_elements, elements);
  if (element_size == 8) unshuffle<8>(mine.planes.data(), chunk_elements, elements);
  return true;
}

}  // namespace etc::data::h5
