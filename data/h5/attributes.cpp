#include "data/h5/attributes.h"

#include <algorithm>
#include <string>

#include "data/h5/library.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

std::string named(const std::string& where, const std::string& name) {
  return where + ": " + name;
}

Handle create_scalar(hid_t object, const std::string& name, hid_t type, const std::string& where) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, where, "create the attribute");
  return Handle(H5Acreate2(object, name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, where,
                "create the attribute");
}

// Opens the attribute and checks that it is a single element.
Handle open_scalar(hid_t object, const std::string& name, const std::string& where) {
  const htri_t exists = H5Aexists(object, name.c_str());
  require(exists, where, "look up the attribute", kDamaged);
  if (exists == 0) fail(where, "is missing (run `etc prepare` again)");
  Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, where, "open the attribute", kDamaged);
  const Handle space(H5Aget_space(attribute.id()), H5Sclose, where, "read the attribute", kDamaged);
  if (H5Sget_simple_extent_type(space.id()) != H5S_SCALAR) fail(where, "expected a scalar attribute");
  return attribute;
}

}  // namespace

void write_text(hid_t object, const std::string& name, const std::string& text, const std::string& where) {
  const std::string place = named(where, name);
  if (const auto at = invalid_utf8(text)) fail(place, "expected UTF-8, got an invalid sequence at byte {}", *at);
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, place, "create the attribute");
  const std::string stored = text.empty() ? std::string(1, '\0') : text;
  require(H5Tset_size(type.id(), stored.size()), place, "create the attribute");
  require(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), place, "create the attribute");
  require(H5Tset_cset(type.id(), H5T_CSET_UTF8), place, "create the attribute");
  const Handle attribute = create_scalar(object, name, type.id(), place);
  require(H5Awrite(attribute.id(), type.id(), stored.data()), place, "write the attribute");
}

void write_integer(hid_t object, const std::string& name, std::int64_t value, NumberType type,
                   const std::string& where) {
  const std::string place = named(where, name);
  const IntegerRange range = integer_range(type);
  if (value < range.lowest || value > range.highest)
    fail(place, "expected a value that fits into {}, got {}", number_name(type), value);
  const Handle attribute = create_scalar(object, name, file_type(type), place);
  require(H5Awrite(attribute.id(), H5T_NATIVE_INT64, &value), place, "write the attribute");
}

std::string read_text(hid_t object, const std::string& name, std::uint64_t max_bytes, const std::string& where) {
  const std::string place = named(where, name);
  const Handle attribute = open_scalar(object, name, place);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose, place, "read the attribute", kDamaged);
  if (H5Tget_class(type.id()) != H5T_STRING) fail(place, "expected a string attribute");
  if (H5Tis_variable_str(type.id()) != 0)
    fail(place, "expected a fixed-length string, got a variable-length type (they are refused)");
  const std::uint64_t size = H5Tget_size(type.id());
  if (size > max_bytes)
    fail(place, "expected at most the {} bytes of the file, got a string of {} ({})", max_bytes, size, kDamaged);
  std::string text(size, '\0');
  require(H5Aread(attribute.id(), type.id(), text.data()), place, "read the attribute", kDamaged);
  text.resize(std::min(text.size(), text.find('\0')));  // null-padded or null-terminated
  if (const auto at = invalid_utf8(text))
    fail(place, "expected UTF-8, got an invalid sequence at byte {} ({})", *at, kDamaged);
  return text;
}

std::int64_t read_integer(hid_t object, const std::string& name, const std::string& where) {
  const std::string place = named(where, name);
  const Handle attribute = open_scalar(object, name, place);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose, place, "read the attribute", kDamaged);
  if (number_type_of(type.id(), place).is_float) fail(place, "expected an integer, got a float");
  std::int64_t value = 0;
  require(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), place, "read the attribute", kDamaged);
  return value;
}

}  // namespace etc::data::h5
