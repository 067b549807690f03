#include "etc_core/base/error_text.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace fs = std::filesystem;

namespace {

template <typename Action>
std::string text_thrown_by(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return etc::error_text(error);
  }
  return "";
}

}  // namespace

TEST_CASE("errors of the file library read as the program's own", "[base]") {
  const etc::test::TemporaryFolder folder;
  const fs::path loop = folder / "loop";
  fs::create_symlink("loop", loop);
  CHECK(text_thrown_by([&] { (void)fs::exists(loop); }) ==
        loop.string() + ": cannot look up: Too many levels of symbolic links");
  CHECK(text_thrown_by([&] { fs::rename(folder / "absent", folder / "other"); }) ==
        (folder / "absent").string() + ": cannot rename: No such file or directory");
  CHECK(text_thrown_by([&] { etc::fail("a file", "is {}", "damaged"); }) == "a file: is damaged");
}

TEST_CASE("errors of memory and threads say what the system did not give", "[base]") {
  CHECK(text_thrown_by([] { throw std::bad_alloc(); }) == "out of memory");
  CHECK(text_thrown_by([] { throw std::system_error(EAGAIN, std::generic_category()); }) ==
        "cannot start a thread: Resource temporarily unavailable (a limit of processes or of memory)");
  CHECK(text_thrown_by([] { throw std::system_error(EPERM, std::generic_category()); }) == "Operation not permitted");
}
