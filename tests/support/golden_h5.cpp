#include "tests/support/golden_h5.h"

#include <fnmatch.h>
#include <hdf5.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/not_copied.h"
#include "tests/support/folders.h"

namespace etc::test {

namespace {

// RAII owner of an HDF5 identifier, closed by the function of its kind.
class Handle : NotCopied {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string absolute(const std::string& object) {
  return object.empty() || object.front() != '/' ? "/" + object : object;
}

// The path without leading, trailing and doubled slashes: one spelling for every object.
std::string plain(const std::string& object) {
  std::string path;
  for (const char c : object) {
    if (c != '/' || (!path.empty() && path.back() != '/')) path += c;
  }
  if (path.ends_with('/')) path.pop_back();
  return path;
}

std::string attribute_path(const std::string& object, const std::string& name) {
  return plain(object) + "@" + name;
}

template <typename T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
}

// The library clears its whole buffer for conversions, 1 MB by default, at every read that converts.
hid_t small_buffer() {
  static const hid_t list = [] {
    constexpr std::size_t kBytes = 16384;
    const hid_t made = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_buffer(made, kBytes, nullptr, nullptr);
    return made;
  }();
  return list;
}

// Common access to a data set or an attribute.
struct Source {
  std::string name;  // for messages
  hid_t id;
  bool is_attribute;

  hid_t type() const { return is_attribute ? H5Aget_type(id) : H5Dget_type(id); }
  hid_t space() const { return is_attribute ? H5Aget_space(id) : H5Dget_space(id); }
  void read(hid_t memory_type, void* to) const {
    const herr_t status =
        is_attribute ? H5Aread(id, memory_type, to) : H5Dread(id, memory_type, H5S_ALL, H5S_ALL, small_buffer(), to);
    if (status < 0) fail(name, "cannot read");
  }
};

std::vector<std::int64_t> shape_of(hid_t space) {
  std::vector<hsize_t> sizes(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  if (!sizes.empty()) H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

template <typename T>
GoldenArray<T> read_numbers(const Source& source) {
  const Handle type(source.type(), H5Tclose);
  const Handle space(source.space(), H5Sclose);
  GoldenArray<T> array;
  array.shape = shape_of(space);
  array.values.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_ENUM) {
    // A boolean as stored by h5py. The library converts enumerations only to enumerations, so the bytes are read directly.
    if (H5Tget_size(type) != 1) fail(source.name, "expected one-byte booleans");
    std::vector<std::uint8_t> bytes(array.values.size());
    source.read(type, bytes.data());
    std::copy(bytes.begin(), bytes.end(), array.values.begin());
  } else if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    if (!array.values.empty()) source.read(native_type<T>(), array.values.data());
  } else {
    fail(source.name, "expected numbers, got another type class");
  }
  return array;
}

std::vector<std::string> read_text(const Source& source) {
  const Handle type(source.type(), H5Tclose);
  const Handle space(source.space(), H5Sclose);
  if (H5Tget_class(type) != H5T_STRING) fail(source.name, "expected strings, got another type class");
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  std::vector<std::string> strings;
  if (count == 0) return strings;
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> pointers(count, nullptr);
    source.read(type, pointers.data());
    for (const char* text : pointers) strings.emplace_back(text != nullptr ? text : "");
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    return strings;
  }
  const std::size_t width = H5Tget_size(type);
  std::vector<char> bytes(count * width);
  source.read(type, bytes.data());
  for (std::size_t i = 0; i < count; ++i) {
    const char* begin = bytes.data() + i * width;
    strings.emplace_back(begin, std::find(begin, begin + width, '\0'));
  }
  return strings;
}

// Names of objects of one kind directly below a group, sorted.
std::vector<std::string> children(hid_t file, const std::string& where, const std::string& group, H5O_type_t kind) {
  const Handle id(H5Gopen2(file, absolute(group).c_str(), H5P_DEFAULT), H5Gclose);
  if (id < 0) fail(where, "no such group");
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names);
  std::erase_if(names, [&](const std::string& name) {
    H5O_info_t info;
    return H5Oget_info_by_name2(id, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 || info.type != kind;
  });
  std::sort(names.begin(), names.end());
  return names;
}

template <typename Use>
auto with_attribute(hid_t file, const std::string& where, const std::string& object, const std::string& name, Use use) {
  const Handle owner(H5Oopen(file, absolute(object).c_str(), H5P_DEFAULT), H5Oclose);
  if (owner < 0) fail(where, "no such object");
  const Handle attribute(H5Aopen(owner, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (attribute < 0) fail(where, "no attribute {}", name);
  return use(Source{where + "@" + name, attribute, true});
}

template <typename Use>
auto with_data_set(hid_t file, const std::string& where, const std::string& path, Use use) {
  const Handle data_set(H5Dopen2(file, absolute(path).c_str(), H5P_DEFAULT), H5Dclose);
  if (data_set < 0) fail(where, "no such data set");
  return use(Source{where, data_set, false});
}

std::string label(const std::filesystem::path& path, const std::string& object) {
  return path.filename().string() + ":" + absolute(object);
}

}  // namespace

GoldenFile::GoldenFile(std::filesystem::path path) : path_(std::move(path)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures become exceptions here, not text on stderr
  file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0) fail(path_.string(), "cannot open as HDF5");
}

GoldenFile::~GoldenFile() {
  H5Fclose(file_);
}

bool GoldenFile::has(const std::string& object) const {
  const Handle id(H5Oopen(file_, absolute(object).c_str(), H5P_DEFAULT), H5Oclose);
  return id >= 0;
}

std::vector<std::string> GoldenFile::groups(const std::string& group) const {
  return children(file_, label(path_, group), group, H5O_TYPE_GROUP);
}

std::vector<std::string> GoldenFile::data_sets(const std::string& group) const {
  return children(file_, label(path_, group), group, H5O_TYPE_DATASET);
}

bool GoldenFile::has_attribute(const std::string& object, const std::string& name) const {
  return H5Aexists_by_name(file_, absolute(object).c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> GoldenFile::attributes(const std::string& object) const {
  const Handle owner(H5Oopen(file_, absolute(object).c_str(), H5P_DEFAULT), H5Oclose);
  if (owner < 0) fail(label(path_, object), "no such object");
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(owner, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names);
  std::sort(names.begin(), names.end());
  return names;
}

std::string GoldenFile::string_attribute(const std::string& object, const std::string& name) const {
  read_.insert(attribute_path(object, name));
  return with_attribute(file_, label(path_, object), object, name,
                        [](const Source& source) { return read_text(source).at(0); });
}

std::int64_t GoldenFile::int_attribute(const std::string& object, const std::string& name) const {
  read_.insert(attribute_path(object, name));
  return with_attribute(file_, label(path_, object), object, name,
                        [](const Source& source) { return read_numbers<std::int64_t>(source).values.at(0); });
}

double GoldenFile::real_attribute(const std::string& object, const std::string& name) const {
  return real_attributes(object, name).at(0);
}

std::vector<double> GoldenFile::real_attributes(const std::string& object, const std::string& name) const {
  read_.insert(attribute_path(object, name));
  return with_attribute(file_, label(path_, object), object, name,
                        [](const Source& source) { return read_numbers<double>(source).values; });
}

template <typename T>
GoldenArray<T> GoldenFile::read(const std::string& data_set) const {
  read_.insert(plain(data_set));
  return with_data_set(file_, label(path_, data_set), data_set,
                       [](const Source& source) { return read_numbers<T>(source); });
}

template GoldenArray<float> GoldenFile::read(const std::string&) const;
template GoldenArray<double> GoldenFile::read(const std::string&) const;
template GoldenArray<std::int32_t> GoldenFile::read(const std::string&) const;
template GoldenArray<std::int64_t> GoldenFile::read(const std::string&) const;
template GoldenArray<std::uint8_t> GoldenFile::read(const std::string&) const;

std::vector<std::int32_t> GoldenFile::read_mask(const std::string& data_set) const {
  std::vector<std::int32_t> mask;
  for (const double number : read<double>(data_set).values) {
    if (number != 0 && number != 1) fail(label(path_, data_set), "expected a mask of 0 and 1, got {}", number);
    mask.push_back(number == 1 ? 1 : 0);
  }
  return mask;
}

void GoldenFile::check_offsets(const std::vector<std::int64_t>& offsets, std::size_t values) const {
  const bool whole = !offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<std::int64_t>(values);
  if (whole && std::is_sorted(offsets.begin(), offsets.end())) return;
  fail(path_.string(), "expected offsets of rows that rise from 0 to the number of values, {}", values);
}

std::vector<std::string> GoldenFile::read_strings(const std::string& data_set) const {
  read_.insert(plain(data_set));
  return with_data_set(file_, label(path_, data_set), data_set, [](const Source& source) { return read_text(source); });
}

void GoldenFile::add_unread(const std::string& group, std::vector<std::string>& names) const {
  const std::string prefix = group.empty() ? "" : group + "/";
  const auto add = [&](const std::string& name) {
    if (read_.count(name) == 0) names.push_back(name);
  };
  const auto add_attributes = [&](const std::string& object) {
    for (const std::string& name : attributes(object)) add(attribute_path(object, name));
  };
  add_attributes(group);
  for (const std::string& name : data_sets(group)) {
    add(prefix + name);
    add_attributes(prefix + name);
  }
  for (const std::string& name : groups(group)) add_unread(prefix + name, names);
  if (groups(group).empty() && data_sets(group).empty() && attributes(group).empty())
    names.push_back(prefix.empty() ? "/" : prefix);
}

std::vector<std::string> GoldenFile::unread(const std::string& group, const LeftUnread& left) const {
  std::vector<std::string> names;
  add_unread(plain(group), names);
  std::erase_if(names, [&](const std::string& name) {
    for (const char* text : {"@kind", "@description", "@note", "@provenance", "@source"}) {
      if (name == text) return true;
    }
    return std::any_of(left.begin(), left.end(),
                       [&](const auto& one) { return fnmatch(one.first.c_str(), name.c_str(), 0) == 0; });
  });
  std::sort(names.begin(), names.end());
  return names;
}

void GoldenFile::require_all_read(const std::string& group, const LeftUnread& left) const {
  const std::vector<std::string> names = unread(group, left);
  if (!names.empty()) fail(label(path_, group), "no test reads {}", fmt::join(names, ", "));
}

std::vector<std::filesystem::path> golden_files_of_kind(const std::string& kind) {
  std::vector<std::filesystem::path> paths;
  for (const auto& path : golden_files(".h5")) {
    const GoldenFile file(path);
    if (file.has_attribute("", "kind") && file.string_attribute("", "kind") == kind) paths.push_back(path);
  }
  return paths;
}

}  // namespace etc::test
