#include "data/h5/storage.h"

#include <algorithm>

#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

// A chunk is decompressed as a whole, so this bounds the memory that a damaged or hostile chunk size can cost.
constexpr std::uint64_t kLargestChunk = std::uint64_t{64} << 20;  // bytes

// The largest compression ratio of deflate (258 bytes per two bits of code).
constexpr std::uint64_t kLargestDeflateRatio = 1032;

// Refuses raw data in other files and filters other than the store's (an unknown filter makes the library load code
// from its plugin folder). Returns the filters.
std::vector<H5Z_filter_t> check_layout(const Handle& creation, const std::string& where) {
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  require(layout, where, "read the layout", kDamaged);
  if (layout == H5D_VIRTUAL) fail(where, "expected raw data in this file, got a virtual data set (they are refused)");
  const int external = H5Pget_external_count(creation.id());
  require(external, where, "read the layout", kDamaged);
  if (external > 0) fail(where, "expected raw data in this file, got external raw data (it is refused)");
  const int filters = H5Pget_nfilters(creation.id());
  require(filters, where, "read the filters", kDamaged);
  std::vector<H5Z_filter_t> found;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t no_parameters = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &no_parameters, nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_FLETCHER32)
      fail(where, "expected the filters shuffle, deflate and fletcher32 only, got filter {}", filter);
    found.push_back(filter);
  }
  return found;
}

// Elements of one chunk; 0 when the data set is not chunked.
std::int64_t chunk_elements(const Handle& creation, int rank, int element_size, const std::string& where) {
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return 0;
  std::vector<hsize_t> chunk(static_cast<std::size_t>(rank));
  if (rank == 0 || H5Pget_chunk(creation.id(), rank, chunk.data()) != rank)
    fail(where, "expected chunks of {} dimension{}", rank, rank == 1 ? "" : "s");
  std::uint64_t elements = 1;
  bool overflow = false;
  for (const hsize_t size : chunk) overflow = __builtin_mul_overflow(elements, size, &elements) || overflow;
  if (elements == 0 || overflow || elements > kLargestChunk / static_cast<std::uint64_t>(element_size))
    fail(where, "expected chunks of at most {} MiB, got {} elements of {} bytes", kLargestChunk >> 20,
         overflow ? std::string("more than 2^64") : std::to_string(elements), element_size);
  return static_cast<std::int64_t>(elements);
}

}  // namespace

Handle open_data_set(hid_t group, const std::string& name, const std::string& where) {
  require_hard_link(group, name, where);
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, where, "open");
  require(H5Pset_chunk_cache(access.id(), 0, 0, 1.0), where, "open");
  return Handle(H5Dopen2(group, name.c_str(), access.id()), H5Dclose, where, "open as a data set", kDamaged);
}

Stored check_storage(const Handle& data_set, int element_size, std::uint64_t file_bytes, const std::string& where) {
  const Handle creation(H5Dget_create_plist(data_set.id()), H5Pclose, where, "read the layout", kDamaged);
  const std::vector<H5Z_filter_t> filters = check_layout(creation, where);
  const bool deflate = std::find(filters.begin(), filters.end(), H5Z_FILTER_DEFLATE) != filters.end();
  const Handle space(H5Dget_space(data_set.id()), H5Sclose, where, "read the shape", kDamaged);
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) fail(where, "expected an array, got nothing");
  const int rank = H5Sget_simple_extent_ndims(space.id());
  require(rank, where, "read the shape", kDamaged);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  require(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), where, "read the shape", kDamaged);
  const std::uint64_t stored = std::min<std::uint64_t>(H5Dget_storage_size(data_set.id()), file_bytes);
  const std::uint64_t most = stored * (deflate ? kLargestDeflateRatio : 1) / static_cast<std::uint64_t>(element_size);
  Stored result;
  std::uint64_t elements = 1;
  bool overflow = false;
  for (const hsize_t size : sizes) {
    overflow = __builtin_mul_overflow(elements, size, &elements) || size > INT64_MAX || overflow;
    result.shape.push_back(static_cast<std::int64_t>(size));
  }
  if (overflow || elements > most)
    fail(where, "expected at most {} elements in {} stored bytes, got {} ({})", most, stored,
         overflow ? std::string("more than 2^64") : std::to_string(elements), kDamaged);
  result.elements = static_cast<std::int64_t>(elements);
  result.chunk_elements = chunk_elements(creation, rank, element_size, where);
  result.packed = filters == std::vector<H5Z_filter_t>{H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
  return result;
}

}  // namespace etc::data::h5
