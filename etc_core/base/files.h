// Whole files: bounded reading, and writing that is never seen half done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace etc {

// The file's bytes. Throws Error naming the file when it is missing, a directory, unreadable, or larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{1} << 40);

// A file under a temporary name in the target's own folder; commit() syncs it and renames it into place. Without
// commit() the destructor removes it, so the old target, if any, stays whole.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& temporary_path() const { return temporary_; }  // for writers that open by name
  void write(std::string_view bytes);                                         // throws Error (disk full, …)
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// fsync of a file or folder by name; a rename is durable only when the folder is synced, too.
void sync_path(const std::filesystem::path& path);

}  // namespace etc
