// A file that grows by whole pieces, such as lines or records, while a run is at work.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "etc_core/base/not_copied.h"

namespace etc {

// A piece that the disk refuses is kept in memory and goes in before the next one, as soon as there is room: what is in
// the file is whole, nothing is missing between two pieces, and nothing is there twice.
class AppendedFile : NotCopied {
 public:
  // Made when it is missing, with permissions 0644. Throws Error when it cannot be opened for writing.
  explicit AppendedFile(const std::filesystem::path& path);
  ~AppendedFile();  // tries once more with what is kept

  // False while the disk refuses.
  bool append(std::string_view piece);

 private:
  int descriptor_ = -1;
  std::string kept_;
};

}  // namespace etc
