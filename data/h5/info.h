// Root attributes of a data set file (task-wikihop 8.2). Everything here: locked.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace etc::data::h5 {

// Of a whole data set. One with missing parts says kIncompleteVersion and has the attribute `incomplete`: programs that
// do not know the attribute refuse such a file instead of taking it for whole, and whole files stay as they were.
inline constexpr std::int64_t kFormatVersion = 1;
inline constexpr std::int64_t kIncompleteVersion = 2;

void write_info(hid_t file, const DatasetInfo& info, const std::string& where);

// Throws Error when an attribute is missing or of another form, and for every format_version but these two.
DatasetInfo read_info(hid_t file, std::uint64_t file_bytes, const std::string& where);

}  // namespace etc::data::h5
