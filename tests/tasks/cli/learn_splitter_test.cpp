// `etc prepare --learn-splitter`: tables learned from the user's own text, kept and used.
#include <filesystem>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;

namespace {

using Words = std::vector<std::string>;

// Generated WikiHop records, and the program run beside them.
struct SplitterPlace {
  test::TemporaryFolder folder;

  SplitterPlace() {
    REQUIRE(run({"sample", "--task", "wikihop", "--records", "50", "--output", path("sample")}).code == 0);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  test::Result run(const Words& words) const { return test::run_program(words, folder.path()); }
  test::Result prepare(const std::string& task, const std::string& output, const Words& more) const {
    Words words = {"prepare",
                   "--task",
                   task,
                   "--split",
                   "train",
                   "--input",
                   path("sample/train.json"),
                   "--vocab",
                   path("sample/vocab.txt"),
                   "--output",
                   path(output)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

}  // namespace

TEST_CASE("tables learned from the input are written, used, and used again", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SplitterPlace place;
  const std::string tables = "punkt:" + place.path("tables");
  const test::Result learned = place.prepare("wikihop", "a.h5", {"--splitter", tables, "--learn-splitter"});
  INFO(learned.err);
  REQUIRE(learned.code == 0);
  CHECK_THAT(learned.err, Catch::Contains("sentence starters learned from"));
  CHECK(std::filesystem::exists(place.folder / "tables" / "ortho_context.tab"));
  CHECK_FALSE(std::filesystem::exists(place.folder / "tables.partial"));
  REQUIRE(place.prepare("wikihop", "b.h5", {"--splitter", tables}).code == 0);
  CHECK(read_file(place.folder / "a.h5") == read_file(place.folder / "b.h5"));
  const test::Result again = place.prepare("wikihop", "c.h5", {"--splitter", tables, "--learn-splitter"});
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Catch::Contains("tables: exists already"));
}

TEST_CASE("learning a splitter needs a folder for it and a task that cuts sentences", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SplitterPlace place;
  const test::Result icu = place.prepare("wikihop", "a.h5", {"--splitter", "icu", "--learn-splitter"});
  CHECK(icu.code == 2);
  CHECK_THAT(icu.err, Catch::Contains("expected --splitter punkt:FOLDER"));
  const test::Result task = place.prepare("nq", "a.h5", {"--learn-splitter"});
  CHECK(task.code == 2);
  CHECK_THAT(task.err, Catch::Contains("task nq cuts no sentences"));
}
