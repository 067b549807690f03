#include "tasks/output.h"

#include <cstdio>

#include "etc_core/base/error.h"

namespace etc {

Output::Output(const std::filesystem::path& target) {
  if (target != "-") file_ = std::make_unique<AtomicFile>(target);
}

void Output::write(std::string_view bytes) {
  if (file_) {
    file_->write(bytes);
  } else if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0) {
    fail("standard output", "cannot write");
  }
}

void Output::finish() {
  if (file_) file_->commit();
}

}  // namespace etc
