// The files that golden files name: records and vocabularies, relative to the folder that holds golden/ and data/.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/folders.h"

namespace etc::test {

// "data/nq/x.jsonl" or "golden/x.jsonl" as a path. A golden file may come with records of its own, so a file of that name
// beside it is preferred; the rest lies beside the folder of real data, which must exist.
//   folder   of the golden file
inline std::filesystem::path golden_source(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path beside = folder / std::filesystem::path(name).filename();
  return std::filesystem::exists(beside) ? beside : real_data_folder().value().parent_path() / name;
}

}  // namespace etc::test
