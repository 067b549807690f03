// A file to which whole pieces, such as lines or records, are appended during a run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "etc_core/base/not_copied.h"

namespace etc {

// A piece that cannot be written (disk full) is kept in memory and written before the next one, as soon as there is
// room. So the file contains only whole pieces, none is missing between two others, and none is duplicated.
class AppendedFile : NotCopied {
 public:
  // Creates a missing file with permissions 0644. Throws Error when it cannot be opened for writing.
  explicit AppendedFile(const std::filesystem::path& path);
  ~AppendedFile();  // tries once more to write what is kept

  // False while the disk refuses writes.
  bool append(std::string_view piece);

 private:
  int descriptor_ = -1;
  std::string kept_;
};

}  // namespace etc
