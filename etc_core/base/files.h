// Whole files: bounded reading, and writing that is never seen half done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "etc_core/base/output_target.h"

namespace etc {

// The file's bytes. Throws Error naming the file when it is missing, a directory, unreadable, or larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{1} << 40);

// Where every output file goes. Symbolic links are followed, and missing folders made.
//   A name that is new or a regular file: bytes go to a temporary name beside it; commit() syncs that file and renames
//   it into place. Without commit() the destructor removes it, so the old file, if any, stays whole. A new file has
//   permissions 0644, a replaced one keeps the old ones.
//   A device, a FIFO or an open file (output_target.h): bytes go there as they are written.
// Throws Error naming the target, Interrupted as open_in_place() does.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // For writers that open by name and seek, instead of write(). What they wrote for a device or FIFO is copied into it
  // by commit().
  const std::filesystem::path& temporary_path();
  void write(std::string_view bytes);  // throws Error (disk full, closed pipe, …)
  void commit();

 private:
  void copy_staged();

  std::filesystem::path name_;  // as given
  OutputTarget target_;
  std::filesystem::path temporary_;  // to be removed, or empty; in place: the name of `staged_`
  int descriptor_ = -1;              // of the temporary file or of the target in place
  int staged_ = -1;                  // in place, opened by name: a file without a name of its own
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// fsync of a file or folder by name; a rename is durable only when the folder is synced, too.
void sync_path(const std::filesystem::path& path);

}  // namespace etc
