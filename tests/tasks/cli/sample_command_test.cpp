// `etc sample` from the user's point of view: all files of a set or none, also after faults.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

namespace {

namespace fs = std::filesystem;
using namespace etc;
using Words = std::vector<std::string>;

Words sampling(const fs::path& output, const std::string& records) {
  return {*test::program(), "sample", "lm", "--records", records, "--output", output.string()};
}

// The command in a shell with a file size limit of a few kilobytes.
Words without_room(const Words& command) {
  std::string line = "trap '' XFSZ; ulimit -f 8; exec";
  for (const std::string& word : command) line += " '" + word + "'";
  return {"/bin/sh", "-c", line};
}

TEST_CASE("numbers of the command line are decimal, whatever they begin with", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  REQUIRE(test::Child(sampling(folder / "s", "010"), folder / "log").wait() == 0);
  const std::string texts = read_file(folder / "s/train.txt");
  CHECK(std::count(texts.begin(), texts.end(), '\n') == 10);
}

TEST_CASE("generating records that is told to stop leaves nothing", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  test::Child child(sampling(folder / "s", "1000000000"), folder / "log");
  child.run_until([&] { return child.catches(SIGTERM); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // some records are written
  child.send(SIGTERM);
  CHECK(child.wait() == 1);
  CHECK_THAT(read_file(folder / "log.err"), Catch::Contains("stopped before the end; no file was written"));
  CHECK(!fs::exists(folder / "s"));
}

TEST_CASE("a disk without room for all generated files gets none of them", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const fs::path set = folder / "s";
  CHECK(test::Child(without_room(sampling(set, "5000")), folder / "log").wait() == 1);
  CHECK(!fs::exists(set));
  // The same command is accepted, and existing files are not lost.
  REQUIRE(test::Child(sampling(set, "5"), folder / "log").wait() == 0);
  const std::string texts = read_file(set / "train.txt");
  Words again = sampling(set, "5000");
  again.emplace_back("--overwrite");
  CHECK(test::Child(without_room(again), folder / "log").wait() == 1);
  CHECK(read_file(set / "train.txt") == texts);
  CHECK(std::distance(fs::directory_iterator(set), {}) == 3);
  CHECK(test::Child(again, folder / "log").wait() == 0);
  CHECK(read_file(set / "train.txt").size() > texts.size());
}

}  // namespace
