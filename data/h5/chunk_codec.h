// Chunks as they stand in the file: the filters of the store (shuffle, deflate, fletcher32) done by libdeflate on a
// whole chunk at a time. The library's own pipeline reads and writes the same format; it goes through zlib, which was a
// third of a preparation's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "etc_core/base/buffer.h"

namespace etc::data::h5 {

// The level noted in the file, and libdeflate's.
inline constexpr unsigned kDeflateLevel = 4;

// The bytes of a chunk of so many elements of element_size bytes after the three filters: the given elements, and zeros
// behind them. Equal bytes give equal bytes. Valid until this thread's next call.
std::span<const std::byte> pack_chunk(std::span<const std::byte> elements, int element_size,
                                      std::size_t chunk_elements);

// Most bytes that pack_chunk makes of chunk_bytes.
std::size_t largest_packed(std::size_t chunk_bytes);

// The filters undone into `chunk`, whose size is known. False when `packed` is anything else than such a chunk with a
// right checksum.
bool unpack_chunk(std::span<const std::byte> packed, std::span<std::byte> chunk, int element_size);

// Fletcher's checksum as HDF5 1.10 takes it (H5_checksum_fletcher32): 16-bit words, high byte first, sums modulo 65535,
// an odd last byte as the high byte of a word.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

}  // namespace etc::data::h5
