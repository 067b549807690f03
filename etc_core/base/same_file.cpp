#include "etc_core/base/same_file.h"

#include <sys/stat.h>

namespace etc {

bool leads_to(const std::filesystem::path& path, int descriptor) {
  struct stat held {
  }, there{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

}  // namespace etc
