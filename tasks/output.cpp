#include "tasks/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/silence.h"

namespace etc {

namespace {

[[noreturn]] void fail_standard_output() {
  const int code = errno;
  fail("standard output", "cannot write: {}", std::strerror(code));
}

}  // namespace

void write_standard_output(std::string_view bytes) {
  if (is_silent()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) fail_standard_output();
}

void flush_standard_output() {
  if (std::fflush(stdout) != 0) fail_standard_output();
}

Output::Output(const std::filesystem::path& target) {
  if (target != "-") file_ = std::make_unique<AtomicFile>(target);
}

void Output::write(std::string_view bytes) {
  if (file_) {
    file_->write(bytes);
  } else {
    write_standard_output(bytes);
    flush_standard_output();
  }
}

void Output::finish() {
  if (file_) file_->commit();
}

}  // namespace etc
