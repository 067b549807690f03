#include "etc_core/base/atomic_folder.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
namespace fs = std::filesystem;

namespace {

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

void replace(const fs::path& folder, const std::string& text, OldFiles old_files) {
  AtomicFolder update(folder, old_files);
  write_file_atomically(update.path() / "weights", text);
  write_file_atomically(update.path() / (text + ".bin"), text);
  update.commit();
}

// Runs in a child process that then dies by SIGKILL.
template <typename Work>
void killed_after(const Work& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
}

}  // namespace

TEST_CASE("a folder is replaced as a whole or not at all", "[base]") {
  const test::TemporaryFolder folder;
  replace(folder / "best/", "one", OldFiles::drop);
  {
    AtomicFolder update(folder / "best", OldFiles::drop);
    write_file_atomically(update.path() / "weights", "half");
  }
  REQUIRE(read_file(folder / "best/weights") == "one");
  replace(folder / "best", "two", OldFiles::drop);
  REQUIRE(read_file(folder / "best/weights") == "two");
  REQUIRE(!fs::exists(folder / "best/one.bin"));
  REQUIRE(entries(folder.path()) == 1);
  write_file_atomically(folder / "thesis.txt", "years of work");
  REQUIRE_THROWS_WITH(AtomicFolder(folder / "thesis.txt", OldFiles::drop),
                      Catch::Contains("expected a folder, got a file"));
}

TEST_CASE("what somebody put into a folder goes along, with names, links and permissions", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  replace(best, "one", OldFiles::keep);
  fs::create_directories(best / "notes/deep");
  write_file_atomically(best / "notes/deep/a", "mine");
  fs::create_symlink("notes/deep", best / "link");
  REQUIRE(::mkfifo((best / "fifo").c_str(), 0600) == 0);
  fs::permissions(best / "weights", fs::perms{0600});
  fs::permissions(best / "notes", fs::perms{0700});
  fs::permissions(best, fs::perms{0750});
  replace(best, "two", OldFiles::keep);
  REQUIRE(read_file(best / "weights") == "two");
  REQUIRE(read_file(best / "one.bin") == "one");
  REQUIRE(read_file(best / "link/a") == "mine");
  REQUIRE(fs::is_symlink(best / "link"));
  REQUIRE(fs::is_fifo(best / "fifo"));
  REQUIRE(fs::status(best / "weights").permissions() == fs::perms{0600});
  REQUIRE(fs::status(best / "notes").permissions() == fs::perms{0700});
  REQUIRE(fs::status(best).permissions() == fs::perms{0750});
  REQUIRE(entries(folder.path()) == 1);
}

TEST_CASE("files of the writer's own do not go along", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  replace(best, "one", OldFiles::keep);
  write_file_atomically(best / "notes", "mine");
  {
    AtomicFolder update(best, OldFiles::keep, {"one.bin", "weights", "absent"});
    write_file_atomically(update.path() / "weights", "two");
    write_file_atomically(best / "more", "of the meantime");
    update.commit();
  }
  REQUIRE(read_file(best / "weights") == "two");
  REQUIRE(read_file(best / "notes") == "mine");
  REQUIRE(read_file(best / "more") == "of the meantime");
  REQUIRE(!fs::exists(best / "one.bin"));
  REQUIRE(entries(best) == 3);
}

TEST_CASE("a link to a folder stays, and the folder is replaced", "[base]") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "disk");
  replace(folder / "disk/best", "one", OldFiles::drop);
  fs::create_symlink("disk/best", folder / "best");
  replace(folder / "best", "two", OldFiles::drop);
  REQUIRE(fs::is_symlink(folder / "best"));
  REQUIRE(read_file(folder / "disk/best/weights") == "two");
  REQUIRE(entries(folder / "disk") == 1);
}

TEST_CASE("what a killed writer of a folder left is removed, what others named so is not", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  replace(best, "one", OldFiles::drop);
  for (const char* name : {"best.tmp.abc123", "best.tmp.backup", "best.old", "best.tmp.abc1234"}) {
    fs::create_directories(folder / name / "new");
    write_file_atomically(folder / name / "new/a", "mine");
    write_file_atomically(folder / name / "writer", "a poet");
  }
  REQUIRE(entries(folder.path()) == 5);
  killed_after([&] {
    auto* update = new AtomicFolder(best, OldFiles::drop);
    write_file_atomically(update->path() / "weights", "half");
  });
  REQUIRE(entries(folder.path()) == 6);
  {
    const AtomicFolder alive(best, OldFiles::drop);  // removes what the dead one left
    REQUIRE(entries(folder.path()) == 6);
    remove_left_over(best);
    REQUIRE(fs::exists(alive.path()));
  }
  REQUIRE(entries(folder.path()) == 5);
  REQUIRE(read_file(best / "weights") == "one");
}

TEST_CASE("a folder that a killed writer moved aside is put back", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  replace(best, "one", OldFiles::drop);
  killed_after([&] {
    // As where two names cannot be exchanged: the moment between the two renames.
    auto* update = new AtomicFolder(best, OldFiles::drop);
    fs::rename(best, update->path().parent_path() / "old");
  });
  REQUIRE(!fs::exists(best));
  remove_left_over(best);
  REQUIRE(read_file(best / "weights") == "one");
  REQUIRE(entries(folder.path()) == 1);
}
