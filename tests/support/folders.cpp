#include "tests/support/folders.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "etc_core/base/error.h"

namespace etc::test {

namespace fs = std::filesystem;

fs::path source_folder() {
  if (const char* set = std::getenv("ETC_SOURCE_DIR")) return set;
  for (fs::path folder = fs::current_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "CMakePresets.json")) return folder;
  }
  return fs::current_path();
}

std::optional<fs::path> golden_folder() {
  const char* set = std::getenv("ETC_GOLDEN_DIR");
  const fs::path folder = set != nullptr ? fs::path(set) : source_folder() / ".." / "shared" / "golden";
  if (fs::is_directory(folder)) return fs::canonical(folder);
  return std::nullopt;
}

std::optional<fs::path> real_data_folder() {
  const auto golden = golden_folder();
  const fs::path shared = source_folder() / ".." / "shared";
  for (const fs::path& beside : {golden ? golden->parent_path() : shared, shared}) {
    if (fs::is_directory(beside / "data")) return fs::canonical(beside / "data");
  }
  return std::nullopt;
}

std::vector<fs::path> golden_files(const std::string& extension) {
  std::vector<fs::path> files;
  const auto folder = golden_folder();
  if (!folder) return files;
  for (const auto& entry : fs::directory_iterator(*folder)) {
    if (entry.is_regular_file() && entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void skip(const std::string& why) {
  std::printf("skipped: %s\n", why.c_str());
  std::fflush(stdout);
}

void write_file(const fs::path& path, std::string_view bytes) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  fs::remove(path);  // some file systems sync a file that is truncated and written again
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) fail("test", "cannot write {}", path.string());
}

namespace {

// TMPDIR; without it in memory, where there is room: programs under test sync what they write, and the disk would take a
// sixth of the processor's time.
fs::path place_of_folders() {
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kRoom = std::uint64_t{4} << 30;
  struct statvfs memory = {};
  const bool usable = std::getenv("TMPDIR") == nullptr && ::statvfs(kMemory, &memory) == 0 &&
                      memory.f_bavail * memory.f_frsize >= kRoom && (memory.f_flag & ST_NOEXEC) == 0 &&
                      ::access(kMemory, W_OK | X_OK) == 0;
  return usable ? kMemory : fs::temp_directory_path();
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (place_of_folders() / "etc-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail("test", "cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace etc::test
