#include <algorithm>
#include <bit>

#include "data/h5/chunk_codec.h"
#include "data/h5/column.h"
#include "data/h5/storage.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

ColumnReader::ColumnReader(hid_t group, const std::string& name, NumberClass wanted, std::uint64_t file_bytes,
                           std::string where)
    : where_(std::move(where)), data_set_(open_data_set(group, name, where_)) {
  const Handle type(H5Dget_type(data_set_.id()), H5Tclose, where_, "read the type", kDamaged);
  type_ = number_type_of(type.id(), where_);
  if (wanted != NumberClass::any && type_.is_float != (wanted == NumberClass::floating))
    fail(where_, "expected {}, got {}", wanted == NumberClass::floating ? "floats" : "integers", number_name(type_));
  const Stored stored = check_storage(data_set_, type_.size, file_bytes, where_);
  if (stored.shape.size() != 1) fail(where_, "expected one dimension, got {}", stored.shape.size());
  size_ = stored.elements;
  const std::int64_t chunk = stored.chunk_elements;
  // A block is several small chunks or one large chunk.
  if (chunk > 0) block_elements_ = chunk * std::max<std::int64_t>(1, kChunk / chunk);
  packed_ = stored.packed && block_elements_ == chunk && H5Tequal(type.id(), file_type(type_)) > 0;
}

Block ColumnReader::load(std::int64_t index) const {
  return load_as(index, memory_type(type_));
}

Block ColumnReader::load_little_endian(std::int64_t index) const {
  return load_as(index, file_type(type_));
}

Block ColumnReader::load_as(std::int64_t index, hid_t type) const {
  Block block;
  block.first = index * block_elements_;
  block.size = std::min(block_elements_, size_ - block.first);
  block.bytes = Bytes(block.size * type_.size, Purpose::data);
  if (packed_ && unpack(block)) return block;
  const hsize_t first = static_cast<hsize_t>(block.first), count = static_cast<hsize_t>(block.size);
  const Handle space(H5Dget_space(data_set_.id()), H5Sclose, where_, "read");
  require(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), where_, "read");
  const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose, where_, "read");
  require(H5Dread(data_set_.id(), type, memory.id(), space.id(), H5P_DEFAULT, block.bytes.data()), where_, "read",
          kDamaged);
  return block;
}

// Reads the block's chunk without the library's filter pipeline. False if anything about it is unusual or wrong: the
// library then reads it or reports the error.
bool ColumnReader::unpack(Block& block) const {
  static_assert(std::endian::native == std::endian::little, "numbers in memory are those in the file");
  const hsize_t first = static_cast<hsize_t>(block.first);
  const std::size_t chunk_bytes = static_cast<std::size_t>(block_elements_) * static_cast<std::size_t>(type_.size);
  hsize_t packed_bytes = 0;
  if (H5Dget_chunk_storage_size(data_set_.id(), &first, &packed_bytes) < 0 || packed_bytes == 0 ||
      packed_bytes > largest_packed(chunk_bytes)) {
    return false;
  }
  std::vector<std::byte> packed(packed_bytes);
  std::uint32_t skipped_filters = 0;
  if (H5Dread_chunk(data_set_.id(), H5P_DEFAULT, &first, &skipped_filters, packed.data()) < 0 || skipped_filters != 0) {
    return false;
  }
  auto* values = static_cast<std::byte*>(block.bytes.data());
  return unpack_chunk(packed, {values, static_cast<std::size_t>(block.bytes.size())}, type_.size,
                      static_cast<std::size_t>(block_elements_));
}

}  // namespace etc::data::h5
