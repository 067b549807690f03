// Root attributes of a data set file (task-wikihop 8.2). Everything here: locked.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace etc::data::h5 {

inline constexpr std::int64_t kFormatVersion = 1;

void write_info(hid_t file, const DatasetInfo& info, const std::string& where);

// Throws Error when an attribute is missing or of another form, and for every format_version but ours.
DatasetInfo read_info(hid_t file, std::uint64_t file_bytes, const std::string& where);

}  // namespace etc::data::h5
