#include "data/h5/library.h"

#include <system_error>

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"

namespace etc::data::h5 {

namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Keeps only the error message in quotes of "…, errno = 28, error message = 'No space left on device', …".
std::string shortened(const std::string& reason) {
  const std::string marker = "error message = '";
  const std::size_t begin = reason.find(marker);
  if (begin == std::string::npos) return reason;
  const std::size_t end = reason.find('\'', begin + marker.size());
  return reason.substr(begin + marker.size(), end - begin - marker.size());
}

}  // namespace

Lock::Lock() : guard_(library_mutex()) {
  // By default the library prints every error to stderr; the setting is per thread.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string library_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* entry, void* result) -> herr_t {
        auto& text = *static_cast<std::string*>(result);
        if (text.empty() && entry->desc != nullptr) text = entry->desc;
        return 0;
      },
      &reason);
  return reason.empty() ? "no reason given" : shortened(reason);
}

void fail_library(const std::string& where, const char* action, const char* advice) {
  const std::string reason = library_reason();
  if (*advice == '\0') fail(where, "cannot {}: {}", action, reason);
  fail(where, "cannot {}: {} ({})", action, reason, advice);
}

std::string where_of(const std::filesystem::path& path) {
  return "h5: " + path.string();
}

Handle open_file(const std::filesystem::path& path) {
  const std::string where = where_of(path);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail(where, "cannot open: {}", error.message());
  if (!std::filesystem::is_regular_file(status)) fail(where, "expected a file, got a folder or a device");
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, where, "open");
  require(H5Pset_file_locking(access.id(), false, true), where, "open");
  return Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, where, "open",
                "not an HDF5 file, or a damaged one");
}

void require_hard_link(hid_t parent, const std::string& name, const std::string& where) {
  const htri_t exists = H5Lexists(parent, name.c_str(), H5P_DEFAULT);
  require(exists, where, "look up", kDamaged);
  if (exists == 0) fail(where, "is missing (run `etc prepare` again)");
  H5L_info_t link;
  require(H5Lget_info(parent, name.c_str(), &link, H5P_DEFAULT), where, "look up", kDamaged);
  if (link.type != H5L_TYPE_HARD) {
    fail(where, "expected an object of this file, got {} link (links that may lead out of the file are refused)",
         link.type == H5L_TYPE_SOFT ? "a soft" : "an external");
  }
}

Handle create_group(hid_t parent, const std::string& name, const std::string& where) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, where, "create the group");
  require(H5Pset_obj_track_times(creation.id(), false), where, "create the group");
  return Handle(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose, where,
                "create the group");
}

Handle open_group(hid_t parent, const std::string& name, const std::string& where) {
  require_hard_link(parent, name, where);
  return Handle(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, where, "open as a group", kDamaged);
}

}  // namespace etc::data::h5
