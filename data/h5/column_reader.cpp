#include <algorithm>

#include "data/h5/column.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

// A chunk is decompressed as a whole: this is the most a damaged or hostile chunk size can cost.
constexpr std::uint64_t kLargestChunk = std::uint64_t{64} << 20;  // bytes

// Deflate cannot shrink further than this (258 bytes per two bits of code).
constexpr std::uint64_t kLargestDeflateRatio = 1032;

Handle open_data_set(hid_t group, const std::string& name, const std::string& where) {
  require_hard_link(group, name, where);
  // No chunk cache: blocks are whole chunks and kept by BlockCache.
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, where, "open");
  require(H5Pset_chunk_cache(access.id(), 0, 0, 1.0), where, "open");
  return Handle(H5Dopen2(group, name.c_str(), access.id()), H5Dclose, where, "open as a data set", kDamaged);
}

// Refuses raw data in other files and filters other than the store's (an unknown filter makes the library load code
// from its plugin folder). True when deflate is among the filters.
bool check_storage(const Handle& creation, const std::string& where) {
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  require(layout, where, "read the layout", kDamaged);
  if (layout == H5D_VIRTUAL) fail(where, "expected raw data in this file, got a virtual data set (they are refused)");
  const int external = H5Pget_external_count(creation.id());
  require(external, where, "read the layout", kDamaged);
  if (external > 0) fail(where, "expected raw data in this file, got external raw data (it is refused)");
  const int filters = H5Pget_nfilters(creation.id());
  require(filters, where, "read the filters", kDamaged);
  bool deflate = false;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t no_parameters = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &no_parameters, nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_FLETCHER32)
      fail(where, "expected the filters shuffle, deflate and fletcher32 only, got filter {}", filter);
    deflate = deflate || filter == H5Z_FILTER_DEFLATE;
  }
  return deflate;
}

// Elements of one chunk; 0 when the data set is not chunked. A chunk has the rank of its data set, known to be 1.
std::int64_t chunk_elements(const Handle& creation, int element_size, const std::string& where) {
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return 0;
  hsize_t chunk = 0;
  if (H5Pget_chunk(creation.id(), 1, &chunk) != 1 || chunk == 0) fail(where, "expected chunks of one dimension");
  if (chunk > kLargestChunk / static_cast<std::uint64_t>(element_size))
    fail(where, "expected chunks of at most {} MiB, got {} elements of {} bytes", kLargestChunk >> 20, chunk,
         element_size);
  return static_cast<std::int64_t>(chunk);
}

// The length, when the file can hold as many elements.
std::int64_t checked_length(const Handle& data_set, int element_size, bool deflate, std::uint64_t file_bytes,
                            const std::string& where) {
  const Handle space(H5Dget_space(data_set.id()), H5Sclose, where, "read the shape", kDamaged);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank != 1) fail(where, "expected one dimension, got {}", rank);
  hsize_t length = 0;
  require(H5Sget_simple_extent_dims(space.id(), &length, nullptr), where, "read the shape", kDamaged);
  const std::uint64_t stored = std::min<std::uint64_t>(H5Dget_storage_size(data_set.id()), file_bytes);
  const std::uint64_t most = stored * (deflate ? kLargestDeflateRatio : 1) / static_cast<std::uint64_t>(element_size);
  if (length > most)
    fail(where, "expected at most {} elements in {} stored bytes, got {} ({})", most, stored, length, kDamaged);
  return static_cast<std::int64_t>(length);
}

}  // namespace

ColumnReader::ColumnReader(hid_t group, const std::string& name, NumberClass wanted, std::uint64_t file_bytes,
                           std::string where)
    : where_(std::move(where)), data_set_(open_data_set(group, name, where_)) {
  const Handle creation(H5Dget_create_plist(data_set_.id()), H5Pclose, where_, "read the layout", kDamaged);
  const bool deflate = check_storage(creation, where_);
  const Handle type(H5Dget_type(data_set_.id()), H5Tclose, where_, "read the type", kDamaged);
  type_ = number_type_of(type.id(), where_);
  if (wanted != NumberClass::any && type_.is_float != (wanted == NumberClass::floating))
    fail(where_, "expected {}, got {}", wanted == NumberClass::floating ? "floats" : "integers", number_name(type_));
  size_ = checked_length(data_set_, type_.size, deflate, file_bytes, where_);
  const std::int64_t chunk = chunk_elements(creation, type_.size, where_);
  // Small chunks are read several at a time, large ones alone.
  if (chunk > 0) block_elements_ = chunk * std::max<std::int64_t>(1, kChunk / chunk);
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
  const hsize_t first = static_cast<hsize_t>(block.first), count = static_cast<hsize_t>(block.size);
  const Handle space(H5Dget_space(data_set_.id()), H5Sclose, where_, "read");
  require(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), where_, "read");
  const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose, where_, "read");
  require(H5Dread(data_set_.id(), type, memory.id(), space.id(), H5P_DEFAULT, block.bytes.data()), where_, "read",
          kDamaged);
  return block;
}

}  // namespace etc::data::h5
