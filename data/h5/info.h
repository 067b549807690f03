// Root attributes of a data set file (task-wikihop 8.2). Everything here: locked.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace etc::data::h5 {

// kFormatVersion: a complete data set. One with missing parts has kIncompleteVersion and the attribute `incomplete`, so
// that programs that do not know the attribute refuse the file instead of treating it as complete; the format of
// complete files is unchanged.
inline constexpr std::int64_t kFormatVersion = 1;
inline constexpr std::int64_t kIncompleteVersion = 2;

void write_info(hid_t file, const DatasetInfo& info, const std::string& where);

// Throws Error when an attribute is missing or malformed, and for any other format_version.
DatasetInfo read_info(hid_t file, std::uint64_t file_bytes, const std::string& where);

}  // namespace etc::data::h5
