// Scalar attributes: fixed-length UTF-8 strings and integers (task-wikihop 8.1, 8.2). Everything here: locked.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "data/h5/numbers.h"

namespace etc::data::h5 {

// Stores the text in a string of its size, at least 1 byte. Any length: above 64 KB the library stores it outside the
// object header.
void write_text(hid_t object, const std::string& name, const std::string& text, const std::string& where);
void write_integer(hid_t object, const std::string& name, std::int64_t value, NumberType type,
                   const std::string& where);

// Throw Error when the attribute is missing, not a scalar, of another class, of variable length, larger than max_bytes
// (a file holds its attributes uncompressed, so its own size is the bound), or not well-formed UTF-8.
std::string read_text(hid_t object, const std::string& name, std::uint64_t max_bytes, const std::string& where);
std::int64_t read_integer(hid_t object, const std::string& name, const std::string& where);

}  // namespace etc::data::h5
