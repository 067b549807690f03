#include "data/h5/numbers.h"

#include <string>

#include "data/h5/library.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

NumberType number_type(StoredType type) {
  switch (type) {
    case StoredType::u8:
      return {1, false, false};
    case StoredType::i8:
      return {1, true, false};
    case StoredType::i16:
      return {2, true, false};
    case StoredType::i32:
      return {4, true, false};
    case StoredType::i64:
      return {8, true, false};
    case StoredType::u32:
      return {4, false, false};
    case StoredType::f32:
      return {4, true, true};
  }
  fail("h5", "unknown stored type {}", static_cast<int>(type));
}

std::string number_name(NumberType type) {
  return fmt::format("{}{}", type.is_float ? "float" : type.is_signed ? "int" : "uint", 8 * type.size);
}

IntegerRange integer_range(NumberType type) {
  return visit_number(type, [](auto zero) -> IntegerRange {
    using Limits = std::numeric_limits<decltype(zero)>;
    return {static_cast<std::int64_t>(Limits::lowest()), static_cast<std::int64_t>(Limits::max())};
  });
}

namespace {

// HDF5 types of a number: little-endian in files, native in memory.
struct LibraryTypes {
  hid_t file, memory;
};

LibraryTypes library_types(NumberType type) {
  if (type.is_float) return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT};
  switch (type.size) {
    case 1:
      return type.is_signed ? LibraryTypes{H5T_STD_I8LE, H5T_NATIVE_INT8}
                            : LibraryTypes{H5T_STD_U8LE, H5T_NATIVE_UINT8};
    case 2:
      return type.is_signed ? LibraryTypes{H5T_STD_I16LE, H5T_NATIVE_INT16}
                            : LibraryTypes{H5T_STD_U16LE, H5T_NATIVE_UINT16};
    case 4:
      return type.is_signed ? LibraryTypes{H5T_STD_I32LE, H5T_NATIVE_INT32}
                            : LibraryTypes{H5T_STD_U32LE, H5T_NATIVE_UINT32};
    default:
      return {H5T_STD_I64LE, H5T_NATIVE_INT64};
  }
}

}  // namespace

hid_t file_type(NumberType type) {
  return library_types(type).file;
}

hid_t memory_type(NumberType type) {
  return library_types(type).memory;
}

NumberType number_type_of(hid_t type, const std::string& where) {
  const H5T_class_t type_class = H5Tget_class(type);
  require(type_class, where, "read the type", kDamaged);
  const std::size_t size = H5Tget_size(type);
  if (type_class == H5T_INTEGER) {
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (size != 1 && size != 2 && size != 4 && !(size == 8 && is_signed)) {
      fail(where, "expected integers that fit into int64, got {} integers of {} bytes",
           is_signed ? "signed" : "unsigned", size);
    }
    return {static_cast<int>(size), is_signed, false};
  }
  if (type_class == H5T_FLOAT) {
    if (size != 4) fail(where, "expected floats of 4 bytes, got {}", size);
    return {4, true, true};
  }
  if (type_class == H5T_VLEN || H5Tis_variable_str(type) > 0) {
    fail(where, "expected a number type, got a variable-length type (they are refused)");
  }
  fail(where, "expected a number type, got {}", type_class == H5T_STRING ? "strings" : "a compound or other type");
}

}  // namespace etc::data::h5
