// Checks how an untrusted data set is stored: no links out of the file, no filters that load code, no more memory than
// its bytes can hold. Everything here: locked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/h5/library.h"

namespace etc::data::h5 {

struct Stored {
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;        // product of the shape
  std::int64_t chunk_elements = 0;  // 0: not chunked
  bool packed = false;              // every chunk goes through shuffle, deflate, fletcher32 (chunk_codec.h)
};

// Opens a data set of `group` reached by a hard link. No chunk cache, because chunks are read once, as a whole.
Handle open_data_set(hid_t group, const std::string& name, const std::string& where);

// Throws Error on virtual and external data sets, filters other than the store's, chunks above 64 MiB, and shapes of
// more elements than the stored bytes (at most file_bytes) can hold.
Stored check_storage(const Handle& data_set, int element_size, std::uint64_t file_bytes, const std::string& where);

}  // namespace etc::data::h5
