// The number types of the store: the type a feature is stored as, and the types a file may contain instead.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace etc::data::h5 {

// An integer of 1, 2, 4 or 8 bytes, or a float of 4. Unsigned integers have at most 4 bytes: values widen to int64.
struct NumberType {
  int size = 4;
  bool is_signed = true;
  bool is_float = false;

  bool operator==(const NumberType&) const = default;
};

NumberType number_type(StoredType type);
std::string number_name(NumberType type);  // "int32"

// Calls body(T{}) with the C++ type of `type` and returns what it returns.
template <typename Body>
decltype(auto) visit_number(NumberType type, Body&& body) {
  if (type.is_float) return body(float{});
  switch (type.size) {
    case 1:
      return type.is_signed ? body(std::int8_t{}) : body(std::uint8_t{});
    case 2:
      return type.is_signed ? body(std::int16_t{}) : body(std::uint16_t{});
    case 4:
      return type.is_signed ? body(std::int32_t{}) : body(std::uint32_t{});
    default:
      return body(std::int64_t{});
  }
}

struct IntegerRange {
  std::int64_t lowest;
  std::int64_t highest;
};

// Requires an integer type.
IntegerRange integer_range(NumberType type);

// Identifiers of predefined types (never closed): little-endian in the file, this machine's in memory. Locked.
hid_t file_type(NumberType type);
hid_t memory_type(NumberType type);

// The type of a data set or attribute as a NumberType. Throws Error for every other class (naming it, variable-length
// types in particular) and for numbers that do not widen to int64 or float without loss. Locked.
NumberType number_type_of(hid_t type, const std::string& where);

}  // namespace etc::data::h5
