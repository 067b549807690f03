// The folders that tests use: the checkout, the golden files, real records, and temporary folders.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::test {

// The checkout (ETC_SOURCE_DIR, set by CTest; else the working directory's nearest parent with CMakePresets.json).
std::filesystem::path source_folder();

// ETC_GOLDEN_DIR, default ../shared/golden beside the checkout; nullopt when it does not exist (tests then print
// "skipped" through `skip`).
std::optional<std::filesystem::path> golden_folder();

// Real records and vocabularies: the folder `data` beside the golden folder, else ../shared/data beside the checkout.
// nullopt when neither exists.
std::optional<std::filesystem::path> real_data_folder();

// Files of the golden folder with the given extension (".h5"), sorted by name.
std::vector<std::filesystem::path> golden_files(const std::string& extension);

// Prints "skipped: <why>" to the log. The test then returns.
void skip(const std::string& why);

// Writes a file, or another in place of an earlier one, which only this test reads: not synced, because fsync would take
// most of the time of tests that write many files. Throws Error.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// A new temporary folder, in $TMPDIR or in memory; the destructor removes it with its contents.
class TemporaryFolder : NotCopied {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace etc::test
