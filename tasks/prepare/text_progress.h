// The progress of reading the texts of raw files (PreparationKind::texts), with the remaining time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/progress.h"
#include "tasks/prepare/run_inputs.h"

namespace etc::prepare {

// Counts uncompressed bytes. Where in a file a text lies is unknown, so it is estimated: the texts stand for the whole file
// in the proportion of the files read before or, in the first one, byte for byte. The end of a file is exact.
class TextProgress {
 public:
  // The inputs are read `passes` times, one after the other. The total is unknown if one is a stream; the size of a
  // compressed file follows from the ratio of its beginning.
  TextProgress(const std::string& what, const std::vector<std::filesystem::path>& inputs, std::int64_t passes);

  void add_text(std::string_view text);
  void end_file();
  void finish() { progress_.finish(); }

 private:
  std::int64_t total(std::int64_t passes) const;

  std::vector<std::int64_t> files_;  // bytes of each; empty: unknown
  ProgressUnit unit_;
  Progress progress_;
  std::size_t file_ = 0;             // the current one
  std::int64_t finished_bytes_ = 0;  // of the files before it
  std::int64_t finished_text_ = 0;   // of the texts in them
  std::int64_t text_ = 0;            // of the texts of the current one
};

}  // namespace etc::prepare
