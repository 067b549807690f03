#include "data/h5/output_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

// The driver's file object. The library's part comes first, because the library casts between the two.
struct DriverFile {
  H5FD_t common{};
  OutputFile::State* state = nullptr;
  haddr_t end_of_allocation = 0;
  haddr_t end_of_file = 0;
};

DriverFile& ours(H5FD_t* file) {
  return *reinterpret_cast<DriverFile*>(file);
}

const DriverFile& ours(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file);
}

H5FD_t* open_driver(const char*, unsigned, hid_t access, haddr_t) {
  auto* file = new DriverFile;
  // The file access property list holds the address of the state.
  file->state = *static_cast<OutputFile::State* const*>(H5Pget_driver_info(access));
  return &file->common;
}

herr_t close_driver(H5FD_t* file) {
  delete &ours(file);
  return 0;
}

// The features of the library's driver for plain files (sec2), because the output is a plain file.
herr_t query_driver(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t get_end_of_allocation(const H5FD_t* file, H5FD_mem_t) {
  return ours(file).end_of_allocation;
}

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  ours(file).end_of_allocation = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return ours(file).end_of_file;
}

herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* buffer) {
  OutputFile::State& state = *ours(file).state;
  auto* bytes = static_cast<char*>(buffer);
  while (size > 0 && state.error == 0) {
    const ssize_t got = ::pread(state.descriptor, bytes, size, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) state.error = errno;
    if (got <= 0) break;
    bytes += got;
    address += static_cast<haddr_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  std::memset(bytes, 0, size);  // beyond the end of the file, or after an error
  return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
  DriverFile& self = ours(file);
  const auto* bytes = static_cast<const char*>(buffer);
  self.end_of_file = std::max(self.end_of_file, address + size);
  while (size > 0 && self.state->error == 0) {
    const ssize_t put = ::pwrite(self.state->descriptor, bytes, size, static_cast<off_t>(address));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      self.state->error = errno;
      break;
    }
    bytes += put;
    address += static_cast<haddr_t>(put);
    size -= static_cast<std::size_t>(put);
  }
  return 0;
}

herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& self = ours(file);
  if (self.end_of_allocation != self.end_of_file && self.state->error == 0 &&
      ::ftruncate(self.state->descriptor, static_cast<off_t>(self.end_of_allocation)) != 0) {
    self.state->error = errno;
  }
  self.end_of_file = self.end_of_allocation;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
  driver.name = "etc_output_file";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(OutputFile::State*);
  driver.open = open_driver;
  driver.close = close_driver;
  driver.query = query_driver;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.truncate = truncate_file;
  constexpr H5FD_mem_t kFreeLists[] = H5FD_FLMAP_DICHOTOMY;  // as in the library's driver for plain files
  std::copy(std::begin(kFreeLists), std::end(kFreeLists), driver.fl_map);
  return driver;
}

// Registered once and never unregistered: the library does that at exit.
hid_t driver_id(const std::string& where) {
  static const H5FD_class_t driver = driver_class();
  static hid_t id = -1;
  if (id < 0) id = H5FDregister(&driver);
  require(id, where, "create");
  return id;
}

Handle create(OutputFile::State* state, const std::filesystem::path& path, const std::string& where) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, where, "create");
  require(H5Pset_driver(access.id(), driver_id(where), &state), where, "create");
  require(H5Pset_file_locking(access.id(), false, true), where, "create");
  require(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), where, "create");
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, where, "create");
  require(H5Pset_obj_track_times(creation.id(), false), where, "create");
  return Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose, where, "create");
}

std::unique_ptr<OutputFile::State> open_state(const std::filesystem::path& path, const std::string& where) {
  auto state = std::make_unique<OutputFile::State>();
  state->descriptor = ::open(path.c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
  if (state->descriptor < 0) fail(where, "cannot open: {}", std::strerror(errno));
  return state;
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path, std::string where)
    : where_(std::move(where)), state_(open_state(path, where_)), file_(create(state_.get(), path, where_)) {}

OutputFile::~OutputFile() {
  file_.reset();
  ::close(state_->descriptor);
}

void OutputFile::check() const {
  if (state_->error != 0) fail(where_, "cannot write: {}", std::strerror(state_->error));
}

void OutputFile::close() {
  file_.close(where_);
  check();
}

}  // namespace etc::data::h5
