#include "etc_core/base/files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

TEST_CASE("an atomic file that is not committed leaves the old file and no rest", "[base]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("half");
  }
  REQUIRE(read_file(folder / "a") == "old");
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  write_file_atomically(folder / "a", "new");
  REQUIRE(read_file(folder / "a") == "new");
}

TEST_CASE("what a killed writer left is taken over by the next one, what a living one holds is not", "[base]") {
  const test::TemporaryFolder folder;
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(folder / "a");
    file.write("half of a long text");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(files() == 1);
  {
    AtomicFile first(folder / "a"), second(folder / "a");
    REQUIRE(first.temporary_path() != second.temporary_path());
    REQUIRE(files() == 2);
    first.write("first");
    second.write("2");
    first.commit();
    REQUIRE(read_file(folder / "a") == "first");
    AtomicFile third(folder / "a");
    third.write("third");
    second.commit();
    REQUIRE(read_file(folder / "a") == "2");
  }
  REQUIRE(files() == 1);
  REQUIRE(read_file(folder / "a") == "2");
}

TEST_CASE("a temporary name that leads elsewhere is not followed", "[base]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "precious", "kept");
  std::filesystem::create_symlink(folder / "precious", folder / "a.partial.tmp");
  write_file_atomically(folder / "a", "new");
  REQUIRE(read_file(folder / "a") == "new");
  REQUIRE(read_file(folder / "precious") == "kept");
}

TEST_CASE("reading names the file when it is missing, a folder or too large", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(read_file(folder / "none"), Catch::Contains("none: cannot open: No such file"));
  REQUIRE_THROWS_WITH(read_file(folder.path()), Catch::Contains("expected a file, got a folder"));
  write_file_atomically(folder / "a", "12345");
  REQUIRE_THROWS_WITH(read_file(folder / "a", 4), Catch::Contains("at most 4 bytes"));
}

TEST_CASE("a target folder that does not exist is an error naming the file", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(write_file_atomically(folder / "none/a", "x"),
                      Catch::Contains("none/a: cannot create: No such file"));
}
