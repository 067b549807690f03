// Whole files: reading with a size limit, and atomic writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "etc_core/base/output_target.h"

namespace etc {

// The file's bytes. Throws Error naming the file when it is missing, a directory, unreadable, or larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{1} << 40);

// Writes an output file; every output file of the program goes through it. Symbolic links are followed, and missing
// folders are made.
//   If the target is new or a regular file, bytes go to a temporary file beside it; commit() syncs that file and
//   renames it into place. Without commit() the destructor removes it, so the old file, if any, stays whole. A new file
//   has permissions 0644, a replaced one keeps the old ones.
//   If the target is a device, a FIFO or an open file (output_target.h), bytes go there directly.
// Throws Error naming the target, Interrupted as open_in_place() does.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // For writers that open by name and seek, instead of write(). If the target is a device or FIFO, they write a
  // temporary file, which commit() copies into it.
  const std::filesystem::path& temporary_path();
  void write(std::string_view bytes);  // throws Error (disk full, closed pipe, …)
  void commit();

 private:
  void copy_staged();

  std::filesystem::path name_;  // as given
  OutputTarget target_;
  std::filesystem::path temporary_;  // to be removed, or empty; for an in-place target: the name of `staged_`
  int descriptor_ = -1;              // of the temporary file or of the in-place target
  int staged_ = -1;                  // the unlinked temporary file for an in-place target that is opened by name
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// fsync of a file or folder by name; a rename is durable only when the folder is synced, too.
void sync_path(const std::filesystem::path& path);

}  // namespace etc
