#include "etc_core/base/lock_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
namespace fs = std::filesystem;

TEST_CASE("who comes second to a lock file is told the process that has it, until that lets go", "[base]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "deep/lock";
  const std::string own = std::to_string(::getpid());
  REQUIRE(LockFile::holder_of(path).empty());
  REQUIRE_FALSE(fs::exists(path));  // holder_of() does not create the file
  {
    const LockFile first(path);
    REQUIRE(first.holder().empty());
    REQUIRE(read_file(path) == own);
    REQUIRE(LockFile(path).holder() == own);
    REQUIRE(LockFile::holder_of(path) == own);
    REQUIRE(LockFile(folder / "other").holder().empty());
  }
  REQUIRE(fs::exists(path));
  REQUIRE(LockFile::holder_of(path).empty());
  REQUIRE(LockFile(path).holder().empty());
}

TEST_CASE("the lock of another process is free once that is killed", "[base]") {
  const test::TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const LockFile lock(folder / "lock");
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(LockFile(folder / "lock").holder() == std::to_string(child));
  CHECK(LockFile::holder_of(folder / "lock") == std::to_string(child));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(LockFile::holder_of(folder / "lock").empty());
  CHECK(LockFile(folder / "lock").holder().empty());
  CHECK(read_file(folder / "lock") == std::to_string(::getpid()));
}

TEST_CASE("a lock file that cannot be opened is an error that names it", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(LockFile(folder.path()), Catch::Contains(folder.path().string() + ": cannot open: "));
  write_file_atomically(folder / "file", "x");
  REQUIRE_THROWS_AS(LockFile(folder / "file/lock"), Error);
}

TEST_CASE("of several who take a lock file and remove it with its folder one at a time has it", "[base][threads]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "work/lock";
  std::atomic<int> inside{0}, most{0}, taken{0};
  const auto work = [&] {
    for (int had = 0; had < 20;) {
      const LockFile lock(path);
      if (!lock.holder().empty()) continue;
      most = std::max(most.load(), ++inside);
      ++had;
      ++taken;
      std::this_thread::yield();
      --inside;
      std::error_code ignored;
      fs::remove(path, ignored);
      fs::remove(path.parent_path(), ignored);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CHECK(taken == 60);
  CHECK(most == 1);
}
