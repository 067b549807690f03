#include "etc_core/base/files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "etc_core/base/error.h"
#include "etc_core/base/interruption.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
namespace fs = std::filesystem;

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

TEST_CASE("folders of a target that are missing are made", "[base]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "none/below/a", "x");
  REQUIRE(read_file(folder / "none/below/a") == "x");
  REQUIRE_THROWS_WITH(write_file_atomically(folder / "none/below/a/b", "x"), Catch::Contains("Not a directory"));
}

TEST_CASE("a new file has permissions 0644, a replaced one keeps the old ones", "[base]") {
  const test::TemporaryFolder folder;
  const auto permissions = [&] { return fs::status(folder / "a").permissions(); };
  write_file_atomically(folder / "a", "1");
  REQUIRE(permissions() == fs::perms{0644});
  for (const unsigned bits : {0600U, 0440U, 0755U}) {
    fs::permissions(folder / "a", fs::perms{bits});
    AtomicFile file(folder / "a");
    const auto meanwhile = fs::status(file.temporary_path()).permissions();
    REQUIRE((meanwhile & ~fs::perms{bits} & fs::perms{0077}) == fs::perms::none);  // never more access for others
    file.write("2");
    file.commit();
    REQUIRE(permissions() == fs::perms{bits});
  }
}

TEST_CASE("a name of any length the disk takes can be written", "[base]") {
  const test::TemporaryFolder folder;
  for (const std::size_t length : {230U, 250U, 255U}) {
    const std::string name(length, 'n');
    write_file_atomically(folder / name, "x");
    REQUIRE(read_file(folder / name) == "x");
  }
}

TEST_CASE("symbolic links stay, and their target is replaced", "[base]") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "links");
  fs::create_directories(folder / "files");
  write_file_atomically(folder / "files/old", "old");
  fs::create_symlink("../files/old", folder / "links/relative");
  fs::create_symlink(folder / "links/relative", folder / "chain");
  fs::create_symlink("files/new", folder / "dangling");
  write_file_atomically(folder / "chain", "new");
  REQUIRE(fs::is_symlink(folder / "chain"));
  REQUIRE(fs::is_symlink(folder / "links/relative"));
  REQUIRE(!fs::is_symlink(folder / "files/old"));
  REQUIRE(read_file(folder / "files/old") == "new");
  write_file_atomically(folder / "dangling", "made");
  REQUIRE(fs::is_symlink(folder / "dangling"));
  REQUIRE(read_file(folder / "files/new") == "made");

  fs::create_symlink("two", folder / "one");
  fs::create_symlink("one", folder / "two");
  REQUIRE_THROWS_WITH(AtomicFile(folder / "one"), Catch::Contains("one: cannot look up: Too many levels of symbolic"));
}

TEST_CASE("what cannot be written is refused with the reason", "[base]") {
  const test::TemporaryFolder folder;
  for (const std::string name : {"", "new/"}) {
    REQUIRE_THROWS_WITH(AtomicFile(folder.path() / name), Catch::Contains("expected a file, got"));
    REQUIRE_THROWS_WITH(require_writable(folder.path() / name), Catch::Contains("expected a file, got"));
  }
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  const std::string path = folder / "socket";
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(socket, reinterpret_cast<const struct sockaddr*>(&address), sizeof address) == 0);
  REQUIRE_THROWS_WITH(AtomicFile(folder / "socket"), Catch::Contains("got a socket"));
  ::close(socket);

  REQUIRE_THROWS_WITH(AtomicFile("/proc/etc_test_file"), Catch::Contains("/proc/etc_test_file: cannot create: "));
  if (::geteuid() == 0) return test::skip("root may write everywhere");
  fs::create_directory(folder / "closed");
  write_file_atomically(folder / "closed/a.partial.tmp", "somebody's");
  fs::permissions(folder / "closed", fs::perms{0500});
  REQUIRE_THROWS_WITH(AtomicFile(folder / "closed/a"), Catch::Contains("closed/a: cannot create: Permission denied"));
  REQUIRE_THROWS_WITH(require_writable(folder / "closed/new/a"), Catch::Contains("cannot create: Permission denied"));
  fs::permissions(folder / "closed", fs::perms{0700});
}

namespace {

// A thread that opens a FIFO and reads it to its end.
class FifoReader {
 public:
  explicit FifoReader(const fs::path& path) : thread_([this, path] { text_ = read_file(path); }) {}
  std::string text() {
    thread_.join();
    return text_;
  }

 private:
  std::string text_;
  std::thread thread_;
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";  // more than a pipe holds
  return text;
}

}  // namespace

TEST_CASE("a FIFO stays one, and its reader gets the bytes, written or copied", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("fifo", folder / "link");
  const std::string text = long_text();
  for (const bool by_name : {false, true}) {
    FifoReader reader(folder / "fifo");
    AtomicFile file(folder / "link");
    if (by_name) {
      std::ofstream(file.temporary_path(), std::ios::binary) << text;
    } else {
      file.write(text);
    }
    file.commit();
    REQUIRE(reader.text() == text);
  }
  REQUIRE(fs::is_fifo(folder / "fifo"));
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("a FIFO whose reader went away is an error", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const int reader = ::open((folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  AtomicFile file(folder / "fifo");
  ::close(reader);
  REQUIRE_THROWS_WITH(file.write("x"), Catch::Contains("fifo: cannot write: Broken pipe"));
  std::signal(SIGPIPE, before);
}

TEST_CASE("waiting for a FIFO's reader ends with a signal", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;  // like the program's own handlers
  REQUIRE(::sigaction(SIGALRM, &action, &before) == 0);
  ::ualarm(50'000, 50'000);
  REQUIRE_THROWS_AS(AtomicFile(folder / "fifo"), Interrupted);
  ::ualarm(0, 0);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST_CASE("waiting for a FIFO's reader ends when the stop came before the wait", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  REQUIRE_FALSE(told_to_stop());
  {
    const StopQuery stopped([] { return true; });
    ::alarm(10);  // ends this program if the wait does not end
    REQUIRE_THROWS_AS(AtomicFile(folder / "fifo"), Interrupted);
    ::alarm(0);
    {
      const StopQuery running([] { return false; });
      REQUIRE_FALSE(told_to_stop());
    }
    REQUIRE(told_to_stop());
  }
  REQUIRE_FALSE(told_to_stop());
}

TEST_CASE("a device stays one and is written", "[base]") {
  const test::TemporaryFolder folder;
  const auto null = folder / "null", full = folder / "full";
  if (::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) != 0 || ::open(full.c_str(), O_WRONLY | O_CLOEXEC) < 0) {
    return test::skip("no permission to make devices");
  }
  write_file_atomically(null, "x");
  REQUIRE(fs::is_character_file(null));
  REQUIRE_THROWS_WITH(write_file_atomically(full, "x"), Catch::Contains("full: cannot write: No space left on device"));
  AtomicFile by_name(full);
  std::ofstream(by_name.temporary_path()) << "x";
  REQUIRE_THROWS_WITH(by_name.commit(), Catch::Contains("full: cannot write: No space left on device"));
  REQUIRE(fs::is_character_file(full));
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("an open file behind /proc is written on, not replaced", "[base]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a", "before ");
  const int open_file = ::open((folder / "a").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  write_file_atomically("/proc/self/fd/" + std::to_string(open_file), "after");
  REQUIRE(::write(open_file, "!", 1) == 1);
  ::close(open_file);
  REQUIRE(read_file(folder / "a") == "before after!");
}

TEST_CASE("a temporary name that is somebody's FIFO, folder or second name of a file is left alone", "[base]") {
  const test::TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "a.partial.tmp").c_str(), 0600) == 0);
  fs::create_directory(folder / "a.partial2.tmp");
  write_file_atomically(folder / "precious", "kept");
  fs::create_hard_link(folder / "precious", folder / "a.partial3.tmp");
  write_file_atomically(folder / "a", "new");
  REQUIRE(read_file(folder / "a") == "new");
  REQUIRE(fs::is_fifo(folder / "a.partial.tmp"));
  REQUIRE(read_file(folder / "precious") == "kept");
}
