// Encodes and decodes chunks as the file stores them: the filters shuffle, deflate and fletcher32, with libdeflate on a
// whole chunk at a time. HDF5's filter pipeline reads and writes the same format, but uses zlib, which took a third of
// a preparation's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "etc_core/base/buffer.h"

namespace etc::data::h5 {

// The compression level, recorded in the file and passed to the compressors.
inline constexpr unsigned kDeflateLevel = 4;

// The bytes, after the three filters, of a chunk of chunk_elements elements of element_size bytes: the given elements,
// then zeros. Equal bytes give equal bytes. Valid until this thread's next call.
std::span<const std::byte> pack_chunk(std::span<const std::byte> elements, int element_size,
                                      std::size_t chunk_elements);

// Upper bound of pack_chunk's output for chunk_bytes of input.
std::size_t largest_packed(std::size_t chunk_bytes);

// Undoes the filters and gives the chunk's first elements, as many as `elements` holds (the last chunk of a column is
// stored in full size). False unless `packed` is a chunk of chunk_elements elements with a right checksum.
bool unpack_chunk(std::span<const std::byte> packed, std::span<std::byte> elements, int element_size,
                  std::size_t chunk_elements);

// Fletcher's checksum as HDF5 1.10 computes it (H5_checksum_fletcher32): 16-bit words, high byte first, sums modulo
// 65535, an odd last byte as the high byte of a word.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

}  // namespace etc::data::h5
