#include "data/h5/array_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "data/h5/library.h"
#include "data/h5/output_file.h"
#include "data/h5/storage.h"
#include "data/probe.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/words.h"

namespace etc::data {

namespace {

using h5::Handle;
using h5::require;

std::vector<std::string> names_in(hid_t group, const std::string& where) {
  H5G_info_t info;
  require(H5Gget_info(group, &info), where, "list", h5::kDamaged);
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto by_index = [&](char* name, std::size_t size) {
      return H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, size, H5P_DEFAULT);
    };
    const ssize_t length = by_index(nullptr, 0);
    require(length, where, "list", h5::kDamaged);
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    require(by_index(name.data(), name.size()), where, "list", h5::kDamaged);
    name.pop_back();
    names.push_back(name);
  }
  return names;
}

template <typename T>
std::vector<T> read_all(const Handle& data_set, std::int64_t elements, hid_t memory_type, const std::string& where) {
  std::vector<T> values(static_cast<std::size_t>(elements));
  if (elements > 0) {
    require(H5Dread(data_set.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), where, "read",
            h5::kDamaged);
  }
  return values;
}

NumericArray read_array(hid_t group, const ArrayRequest& request, std::uint64_t file_bytes, const std::string& where) {
  const Handle data_set = h5::open_data_set(group, request.name, where);
  const Handle type(H5Dget_type(data_set.id()), H5Tclose, where, "read the type", h5::kDamaged);
  const H5T_class_t kind = H5Tget_class(type.id());
  const std::size_t size = H5Tget_size(type.id());
  const bool is_integer = kind == H5T_INTEGER && (size == 1 || size == 2 || size == 4 || size == 8);
  const bool is_float = kind == H5T_FLOAT && (size == 4 || size == 8);
  if (request.floating ? !is_float : !is_integer) {
    fail(where, "expected {}", request.floating ? "floats of 4 or 8 bytes" : "integers of 1, 2, 4 or 8 bytes");
  }
  const h5::Stored stored = h5::check_storage(data_set, static_cast<int>(size), file_bytes, where);
  NumericArray array;
  array.shape = stored.shape;
  if (request.floating) {
    array.floats = read_all<float>(data_set, stored.elements, H5T_NATIVE_FLOAT, where);
    const auto bad = std::find_if(array.floats.begin(), array.floats.end(), [](float x) { return !std::isfinite(x); });
    if (bad != array.floats.end()) {
      fail(where, "expected finite numbers, got {} at element {}", *bad, bad - array.floats.begin());
    }
    return array;
  }
  // The library clips what does not fit, so read wide and look. Unsigned 64-bit values are clipped to int64's largest.
  const auto wide = read_all<std::int64_t>(data_set, stored.elements, H5T_NATIVE_INT64, where);
  array.integers.reserve(wide.size());
  for (const std::int64_t value : wide) {
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
      fail(where, "expected values of 32 bits, got {} at element {}", value, array.integers.size());
    }
    array.integers.push_back(static_cast<std::int32_t>(value));
  }
  return array;
}

std::map<std::string, NumericArray> read_group(const std::filesystem::path& path, const std::string& group_name,
                                               const std::vector<ArrayRequest>& requests) {
  const Handle file = h5::open_file(path);
  const std::string where = h5::where_of(path) + ":/" + group_name;
  const std::uint64_t file_bytes = std::filesystem::file_size(path);
  if (H5Lexists(file.id(), group_name.c_str(), H5P_DEFAULT) == 0) fail(where, "is missing");
  const Handle group = h5::open_group(file.id(), group_name, where);
  const std::vector<std::string> present = names_in(group.id(), where);
  std::vector<std::string> known;
  for (const ArrayRequest& request : requests) known.push_back(request.name);
  for (const std::string& name : present) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail(where + "/" + name, "is not an input{}", suggestion(name, known));
    }
  }
  std::map<std::string, NumericArray> arrays;
  for (const ArrayRequest& request : requests) {
    const std::string place = where + "/" + request.name;
    if (std::find(present.begin(), present.end(), request.name) != present.end()) {
      arrays[request.name] = read_array(group.id(), request, file_bytes, place);
    } else if (request.required) {
      fail(place, "is missing");
    }
  }
  return arrays;
}

// Appends the arrays below `group`, whose own path is `prefix` ("" or "outputs/").
void list_group(hid_t group, const std::string& prefix, int depth, std::uint64_t file_bytes, const std::string& where,
                std::vector<ArrayShape>& arrays) {
  constexpr int kDeepest = 16;  // hard links can make a group its own member
  if (depth > kDeepest) fail(where, "groups are nested deeper than {} ({})", kDeepest, h5::kDamaged);
  for (const std::string& name : names_in(group, where)) {
    const std::string place = where + "/" + name;
    h5::require_hard_link(group, name, place);
    H5O_info_t info;
    require(H5Oget_info_by_name(group, name.c_str(), &info, H5P_DEFAULT), place, "look up", h5::kDamaged);
    if (info.type == H5O_TYPE_GROUP) {
      const Handle child = h5::open_group(group, name, place);
      list_group(child.id(), prefix + name + "/", depth + 1, file_bytes, place, arrays);
    } else if (info.type == H5O_TYPE_DATASET) {
      const Handle data_set = h5::open_data_set(group, name, place);
      const Handle type(H5Dget_type(data_set.id()), H5Tclose, place, "read the type", h5::kDamaged);
      const auto size = static_cast<int>(std::clamp<std::size_t>(H5Tget_size(type.id()), 1, 1 << 20));
      arrays.push_back({prefix + name, h5::check_storage(data_set, size, file_bytes, place).shape});
    }
  }
}

std::vector<ArrayShape> list_file(const std::filesystem::path& path) {
  const Handle file = h5::open_file(path);
  std::vector<ArrayShape> arrays;
  list_group(file.id(), "", 0, std::filesystem::file_size(path), h5::where_of(path) + ":", arrays);
  return arrays;
}

}  // namespace

std::vector<ArrayShape> list_arrays(const std::filesystem::path& path) {
  const h5::Lock lock;
  run_probe("HDF5 file", path, [&] { list_file(path); });
  return list_file(path);
}

std::map<std::string, NumericArray> read_arrays(const std::filesystem::path& path, const std::string& group,
                                                const std::vector<ArrayRequest>& requests) {
  const h5::Lock lock;
  run_probe("HDF5 file", path, [&] { read_group(path, group, requests); });
  return read_group(path, group, requests);
}

// Built and destroyed under the library's Lock.
struct ArrayFileWriter::Impl {
  explicit Impl(const std::filesystem::path& path)
      : where(h5::where_of(path)), target(path), file(target.temporary_path(), where) {}

  std::string where;
  AtomicFile target;
  h5::OutputFile file;
  std::map<std::string, std::pair<Handle, std::vector<std::int64_t>>> data_sets;  // by path, with shapes

  void write_rows(const std::string& path, std::int64_t first, std::int64_t rows, hid_t type, const void* values);
};

ArrayFileWriter::ArrayFileWriter(const std::filesystem::path& path) {
  const h5::Lock lock;
  impl_ = std::make_unique<Impl>(path);
}

ArrayFileWriter::~ArrayFileWriter() {
  const h5::Lock lock;
  impl_.reset();
}

void ArrayFileWriter::create(const std::string& path, const std::vector<std::int64_t>& shape, Numbers numbers) {
  const h5::Lock lock;
  const std::string where = impl_->where + ":/" + path;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string group = path.substr(0, slash);
    const htri_t exists = H5Lexists(impl_->file.id(), group.c_str(), H5P_DEFAULT);
    require(exists, where, "look up");
    if (exists == 0) h5::create_group(impl_->file.id(), group, where);
  }
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose, where,
                     "create");
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, where, "create");
  require(H5Pset_obj_track_times(creation.id(), false), where, "create");
  require(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), where, "create");
  const hid_t type = numbers == Numbers::floats ? H5T_IEEE_F32LE : H5T_STD_I64LE;
  Handle data_set(H5Dcreate2(impl_->file.id(), path.c_str(), type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                  H5Dclose, where, "create");
  impl_->data_sets.emplace(path, std::pair(std::move(data_set), shape));
  impl_->file.check();
}

void ArrayFileWriter::Impl::write_rows(const std::string& path, std::int64_t first, std::int64_t rows, hid_t type,
                                       const void* values) {
  const std::string place = where + ":/" + path;
  const auto& [data_set, shape] = data_sets.at(path);
  std::vector<hsize_t> start(shape.size(), 0), count(shape.begin(), shape.end());
  start[0] = static_cast<hsize_t>(first);
  count[0] = static_cast<hsize_t>(rows);
  if (std::find(count.begin(), count.end(), 0) != count.end()) return;
  const Handle space(H5Dget_space(data_set.id()), H5Sclose, place, "write");
  require(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), place,
          "write");
  const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, place,
                      "write");
  require(H5Dwrite(data_set.id(), type, memory.id(), space.id(), H5P_DEFAULT, values), place, "write");
  file.check();
}

void ArrayFileWriter::write_rows(const std::string& path, std::int64_t first, std::int64_t rows, const float* values) {
  const h5::Lock lock;
  impl_->write_rows(path, first, rows, H5T_NATIVE_FLOAT, values);
}

void ArrayFileWriter::write_rows(const std::string& path, std::int64_t first, std::int64_t rows,
                                 const std::int64_t* values) {
  const h5::Lock lock;
  impl_->write_rows(path, first, rows, H5T_NATIVE_INT64, values);
}

void ArrayFileWriter::finish() {
  const h5::Lock lock;
  impl_->data_sets.clear();
  impl_->file.close();
  impl_->target.commit();
}

}  // namespace etc::data
