#include "tests/support/h5_edit.h"

#include <hdf5.h>

#include <vector>

#include "etc_core/base/error.h"

namespace etc::test {

namespace {

// The identifiers of one call, closed together at its end.
class Ids {
 public:
  explicit Ids(std::string where) : where_(std::move(where)) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }
  ~Ids() {
    for (auto id = ids_.rbegin(); id != ids_.rend(); ++id) H5Idec_ref(*id);
  }
  hid_t own(hid_t id) {
    ok(id);
    ids_.push_back(id);
    return id;
  }
  void ok(std::int64_t status) const {
    if (status < 0) fail(where_, "HDF5 refuses");
  }

 private:
  std::string where_;
  std::vector<hid_t> ids_;
};

hid_t integer_type(int bytes, bool is_signed, bool big_endian) {
  switch (bytes) {
    case 1:
      return is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
    case 2:
      if (big_endian) return is_signed ? H5T_STD_I16BE : H5T_STD_U16BE;
      return is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
    case 4:
      if (big_endian) return is_signed ? H5T_STD_I32BE : H5T_STD_U32BE;
      return is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
    default:
      if (big_endian) return is_signed ? H5T_STD_I64BE : H5T_STD_U64BE;
      return is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
  }
}

hid_t make_groups(Ids& ids) {
  const hid_t links = ids.own(H5Pcreate(H5P_LINK_CREATE));
  ids.ok(H5Pset_create_intermediate_group(links, 1));
  return links;
}

hid_t line(Ids& ids, std::int64_t length) {
  const hsize_t extent = static_cast<hsize_t>(length);
  return ids.own(H5Screate_simple(1, &extent, nullptr));
}

}  // namespace

H5Edit::H5Edit(const std::filesystem::path& path) : where_(path.string()) {
  const Ids ids(where_);
  file_ = std::filesystem::exists(path) ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                        : H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
  ids.ok(file_);
}

H5Edit::~H5Edit() {
  H5Fclose(file_);
}

void H5Edit::clear(const std::string& path) {
  // If a parent group is missing, the query itself fails; then there is nothing to remove.
  if (H5Lexists(file_, path.c_str(), H5P_DEFAULT) > 0) remove(path);
}

void H5Edit::put_integers(const std::string& path, const std::vector<std::int64_t>& values, int bytes, bool is_signed,
                          std::vector<std::int64_t> shape, Storage storage) {
  clear(path);
  Ids ids(where_ + ":" + path);
  if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  // Chunks may be larger than the data only if the data set is extensible.
  const std::vector<hsize_t> largest(extent.size(), storage.chunk > 0 ? H5S_UNLIMITED : 0);
  const hid_t space = ids.own(
      H5Screate_simple(static_cast<int>(extent.size()), extent.data(), storage.chunk > 0 ? largest.data() : nullptr));
  const hid_t creation = ids.own(H5Pcreate(H5P_DATASET_CREATE));
  if (storage.chunk > 0) {
    const std::vector<hsize_t> chunk(extent.size(), static_cast<hsize_t>(storage.chunk));
    ids.ok(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()));
  }
  if (storage.deflate) ids.ok(H5Pset_deflate(creation, 6));
  const hid_t set = ids.own(H5Dcreate2(file_, path.c_str(), integer_type(bytes, is_signed, storage.big_endian), space,
                                       make_groups(ids), creation, H5P_DEFAULT));
  ids.ok(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void H5Edit::put_floats(const std::string& path, const std::vector<double>& values, int bytes) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t set = ids.own(H5Dcreate2(file_, path.c_str(), bytes == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE,
                                       line(ids, static_cast<std::int64_t>(values.size())), make_groups(ids),
                                       H5P_DEFAULT, H5P_DEFAULT));
  ids.ok(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void H5Edit::put_variable_strings(const std::string& path, const std::vector<std::string>& values) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t type = ids.own(H5Tcopy(H5T_C_S1));
  ids.ok(H5Tset_size(type, H5T_VARIABLE));
  const hid_t set = ids.own(H5Dcreate2(file_, path.c_str(), type, line(ids, static_cast<std::int64_t>(values.size())),
                                       make_groups(ids), H5P_DEFAULT, H5P_DEFAULT));
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  ids.ok(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()));
}

void H5Edit::put_unwritten(const std::string& path, std::int64_t length, std::int64_t chunk) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t creation = ids.own(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk_extent = static_cast<hsize_t>(chunk);
  ids.ok(H5Pset_chunk(creation, 1, &chunk_extent));
  ids.own(H5Dcreate2(file_, path.c_str(), H5T_STD_U8LE, line(ids, length), make_groups(ids), creation, H5P_DEFAULT));
}

void H5Edit::put_external(const std::string& path, const std::filesystem::path& raw, std::int64_t length) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t creation = ids.own(H5Pcreate(H5P_DATASET_CREATE));
  ids.ok(H5Pset_external(creation, raw.c_str(), 0, static_cast<hsize_t>(length)));
  ids.own(H5Dcreate2(file_, path.c_str(), H5T_STD_U8LE, line(ids, length), make_groups(ids), creation, H5P_DEFAULT));
}

void H5Edit::put_virtual(const std::string& path, const std::filesystem::path& source, std::int64_t length) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t creation = ids.own(H5Pcreate(H5P_DATASET_CREATE)), space = line(ids, length);
  ids.ok(H5Pset_virtual(creation, space, source.c_str(), "/values", space));
  ids.own(H5Dcreate2(file_, path.c_str(), H5T_STD_U8LE, space, make_groups(ids), creation, H5P_DEFAULT));
}

void H5Edit::put_scale_offset(const std::string& path, const std::vector<std::int64_t>& values) {
  clear(path);
  Ids ids(where_ + ":" + path);
  const hid_t creation = ids.own(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = 16;
  ids.ok(H5Pset_chunk(creation, 1, &chunk));
  ids.ok(H5Pset_scaleoffset(creation, H5Z_SO_INT, 0));
  const hid_t set =
      ids.own(H5Dcreate2(file_, path.c_str(), H5T_STD_I64LE, line(ids, static_cast<std::int64_t>(values.size())),
                         make_groups(ids), creation, H5P_DEFAULT));
  ids.ok(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void H5Edit::put_soft_link(const std::string& path, const std::string& target) {
  clear(path);
  Ids ids(where_ + ":" + path);
  ids.ok(H5Lcreate_soft(target.c_str(), file_, path.c_str(), make_groups(ids), H5P_DEFAULT));
}

void H5Edit::put_external_link(const std::string& path, const std::filesystem::path& file, const std::string& target) {
  clear(path);
  Ids ids(where_ + ":" + path);
  ids.ok(H5Lcreate_external(file.c_str(), target.c_str(), file_, path.c_str(), make_groups(ids), H5P_DEFAULT));
}

void H5Edit::change_element(const std::string& path, std::int64_t index, const std::function<double(double)>& change) {
  Ids ids(where_ + ":" + path);
  const hid_t data_set = ids.own(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
  const hid_t space = ids.own(H5Dget_space(data_set));
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  ids.ok(H5Dread(data_set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  double& element = values.at(static_cast<std::size_t>(index));
  element = change(element);
  ids.ok(H5Dwrite(data_set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void H5Edit::scale_element(const std::string& path, std::int64_t index, double factor) {
  change_element(path, index, [&](double x) { return x * factor; });
}

void H5Edit::shift_element(const std::string& path, std::int64_t index, double by) {
  change_element(path, index, [&](double x) { return x + by; });
}

void H5Edit::remove(const std::string& path) {
  const Ids ids(where_ + ":" + path);
  ids.ok(H5Ldelete(file_, path.c_str(), H5P_DEFAULT));
}

namespace {

void put_scalar(std::int64_t file, const std::string& where, const std::string& object, const std::string& name,
                hid_t type, hid_t space, const void* value) {
  Ids ids(where + ":" + object + "@" + name);
  const hid_t holder = ids.own(H5Oopen(file, object.c_str(), H5P_DEFAULT));
  if (H5Aexists(holder, name.c_str()) > 0) ids.ok(H5Adelete(holder, name.c_str()));
  const hid_t attribute = ids.own(H5Acreate2(holder, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (value != nullptr) ids.ok(H5Awrite(attribute, type, value));
}

}  // namespace

void H5Edit::put_attribute(const std::string& object, const std::string& name, std::int64_t value) {
  Ids ids(where_);
  put_scalar(file_, where_, object, name, H5T_NATIVE_INT64, ids.own(H5Screate(H5S_SCALAR)), &value);
}

void H5Edit::put_attribute(const std::string& object, const std::string& name, const std::string& fixed_text) {
  Ids ids(where_);
  const hid_t type = ids.own(H5Tcopy(H5T_C_S1));
  ids.ok(H5Tset_size(type, fixed_text.size() + 1));
  put_scalar(file_, where_, object, name, type, ids.own(H5Screate(H5S_SCALAR)), fixed_text.c_str());
}

void H5Edit::put_list_attribute(const std::string& object, const std::string& name, std::int64_t length) {
  Ids ids(where_);
  put_scalar(file_, where_, object, name, H5T_NATIVE_INT64, line(ids, length), nullptr);
}

void H5Edit::put_variable_attribute(const std::string& object, const std::string& name, const std::string& text) {
  Ids ids(where_);
  const hid_t type = ids.own(H5Tcopy(H5T_C_S1));
  ids.ok(H5Tset_size(type, H5T_VARIABLE));
  const char* value = text.c_str();
  put_scalar(file_, where_, object, name, type, ids.own(H5Screate(H5S_SCALAR)), &value);
}

void H5Edit::put_float_attribute(const std::string& object, const std::string& name, double value) {
  Ids ids(where_);
  put_scalar(file_, where_, object, name, H5T_NATIVE_DOUBLE, ids.own(H5Screate(H5S_SCALAR)), &value);
}

void H5Edit::remove_attribute(const std::string& object, const std::string& name) {
  Ids ids(where_);
  const hid_t holder = ids.own(H5Oopen(file_, object.c_str(), H5P_DEFAULT));
  ids.ok(H5Adelete(holder, name.c_str()));
}

}  // namespace etc::test
