#include "tasks/train/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// Returns how many of the bytes were written.
std::size_t write_some(int descriptor, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace

AppendedFile::AppendedFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail(path.string(), "cannot open for writing: {}", std::strerror(errno));
}

AppendedFile::~AppendedFile() {
  append("");
  ::close(descriptor_);
}

bool AppendedFile::append(std::string_view piece) {
  kept_ += piece;
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  const std::size_t written = write_some(descriptor_, kept_);
  // Do not leave a partial piece for readers. If it cannot be truncated away, only the rest remains to be written.
  const bool taken_back = written < kept_.size() && end >= 0 && ::ftruncate(descriptor_, end) == 0;
  if (!taken_back) kept_.erase(0, written);
  return kept_.empty();
}

}  // namespace etc
