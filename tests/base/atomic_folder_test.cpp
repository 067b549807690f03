#include "etc_core/base/atomic_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
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

// Runs `work` in a child process that is then killed by SIGKILL.
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
    const AtomicFolder alive(best, OldFiles::drop);  // removes what the killed process left
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
    // The moment between the two renames on a file system without atomic exchange.
    auto* update = new AtomicFolder(best, OldFiles::drop);
    fs::rename(best, update->path().parent_path() / "old");
  });
  REQUIRE(!fs::exists(best));
  remove_left_over(best);
  REQUIRE(read_file(best / "weights") == "one");
  REQUIRE(entries(folder.path()) == 1);
}

TEST_CASE("the lock's file goes last when a writer's folder is removed", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  replace(best, "one", OldFiles::drop);
  AtomicFolder update(best, OldFiles::drop);
  write_file_atomically(update.path() / "weights", "two");
  const int watch = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  REQUIRE(::inotify_add_watch(watch, update.path().parent_path().c_str(), IN_DELETE) >= 0);
  update.commit();
  alignas(struct inotify_event) char bytes[4096];
  const ssize_t got = ::read(watch, bytes, sizeof bytes);
  ::close(watch);
  std::vector<std::string> removed;
  for (ssize_t at = 0; at < got;) {
    const auto* event = reinterpret_cast<const struct inotify_event*>(bytes + at);
    if (event->len > 0) removed.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  CHECK(removed == std::vector<std::string>{"new", "writer"});
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a writer's folder that has no mark yet is removed only while nobody holds it", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  fs::create_directory(folder / "best.tmp.aaaaaa");  // killed before anything was in it
  fs::create_directory(folder / "best.tmp.bbbbbb");  // killed before the mark
  write_file_atomically(folder / "best.tmp.bbbbbb/writer", "");
  fs::create_directories(folder / "best.tmp.cccccc/new");  // a file system without locks
  write_file_atomically(folder / "best.tmp.cccccc/writer", "");
  fs::create_directory(folder / "best.tmp.dddddd");  // a living writer, just before its mark
  write_file_atomically(folder / "best.tmp.dddddd/writer", "");
  const int lock = ::open((folder / "best.tmp.dddddd/writer").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  replace(best, "one", OldFiles::drop);
  ::close(lock);
  CHECK(read_file(best / "weights") == "one");
  CHECK(!fs::exists(folder / "best.tmp.aaaaaa"));
  CHECK(!fs::exists(folder / "best.tmp.bbbbbb"));
  CHECK(fs::exists(folder / "best.tmp.cccccc"));
  CHECK(fs::exists(folder / "best.tmp.dddddd"));
}

TEST_CASE("writers of one folder do not take each other's folders for left over ones", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  std::vector<std::thread> writers;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        try {
          const AtomicFolder update(best, OldFiles::drop);
          if (!fs::exists(update.path())) ++failed;
        } catch (const std::exception&) {
          ++failed;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(failed == 0);
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("messages name the place where a file of a new folder was to lie", "[base]") {
  const test::TemporaryFolder folder;
  const auto best = folder / "best";
  AtomicFolder update(best, OldFiles::drop);
  CHECK(name_after_commit(update.path() / "weights") == best / "weights");
  CHECK(name_after_commit(best / "weights") == best / "weights");
  CHECK(name_after_commit(folder / "new/weights") == folder / "new/weights");
  const test::FileSizeLimit full(10);
  REQUIRE_THROWS_WITH(write_file_atomically(update.path() / "weights", std::string(20, 'w')),
                      (best / "weights").string() + ": cannot write: File too large");
}
