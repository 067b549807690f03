// A copy of a golden file that a test changes on purpose (support/h5_edit.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/support/folders.h"

namespace etc::test {

// Which numbers a test changes: those of every file and group (slow), or of each kind of data set in the first that has it.
enum class Sweep { every_group, first_of_kind };

// Removes the names that an earlier group had, if the sweep leaves those out.
inline void keep_new(Sweep sweep, std::set<std::string>& seen, std::vector<std::string>& names) {
  if (sweep == Sweep::first_of_kind)
    std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
}

struct Falsified {
  explicit Falsified(const std::filesystem::path& original) : path(folder / original.filename()) {
    std::filesystem::copy_file(original, path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
};

// The place of the largest magnitude among the elements that count, by their places; -1 if none does.
template <typename Number, typename Counts>
std::int64_t largest_place(const std::vector<Number>& values, const Counts& counts) {
  std::int64_t largest = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!counts(i)) continue;
    if (largest < 0 || std::abs(values[i]) > std::abs(values[static_cast<std::size_t>(largest)])) {
      largest = static_cast<std::int64_t>(i);
    }
  }
  return largest;
}

}  // namespace etc::test
