// The program with invalid command lines: messages and exit codes before any work is done.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "etc_core/base/files.h"
#include "etc_core/base/version.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;

TEST_CASE("help goes to standard output with exit code 0", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const std::vector<std::string> commands = {"sample",  "prepare",    "train",  "eval",     "predict",
                                             "ask",     "keyphrases", "encode", "info",     "benchmark",
                                             "convert", "completion", "manual", "translate"};
  for (const std::string& command : commands) {
    const test::Result result = test::run_program({command, "--help"}, folder.path());
    INFO(command);
    REQUIRE(result.code == 0);
    REQUIRE_THAT(result.out, Catch::Contains("Usage: etc " + command));
  }
}

TEST_CASE("the help of an option that several tasks have tells the value of each", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const std::string prepare = test::run_program({"prepare", "--help"}, folder.path()).out;
  CHECK_THAT(prepare, Catch::Contains("from one window's start to the next (1 or more) [2048 (nq), 128 (squad)]") &&
                          Catch::Contains("etc prepare TASK --help shows one of them"));
  CHECK_THAT(test::run_program({"prepare", "squad", "--help"}, folder.path()).out, Catch::Contains("--stride INT=128"));
  CHECK_THAT(test::run_program({"train", "--help"}, folder.path()).out,
             Catch::Contains("wikihop: share of the target") && Catch::Contains("below 1) [0.1]"));
  CHECK_THAT(test::run_program({"sample", "--help"}, folder.path()).out, Catch::Contains(", 1000 (lm)]"));
}

TEST_CASE("mistyped commands and options are usage errors with a suggestion", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result command = test::run_program({"trian"}, folder.path());
  REQUIRE(command.code == 2);
  REQUIRE_THAT(command.err, Catch::Contains("unknown command trian (did you mean train?)"));
  const test::Result option = test::run_program({"train", "--lerning-rate", "1"}, folder.path());
  REQUIRE(option.code == 2);
  REQUIRE_THAT(option.err, Catch::Contains("etc train: unknown option --lerning-rate (did you mean --learning-rate?)"));
  const test::Result nothing = test::run_program({}, folder.path());
  REQUIRE(nothing.code == 2);
}

TEST_CASE("the version is the one of the build's project line", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result result = test::run_program({"--version"}, folder.path());
  CHECK(result.code == 0);
  CHECK(result.out == std::string("etc ") + program_version() + "\n");
  const std::string project = read_file(test::source_folder() / "CMakeLists.txt");
  CHECK_THAT(project, Catch::Contains(std::string("project(etc VERSION ") + program_version() + " "));
}

TEST_CASE("the last line of a preparation's progress counts every byte and record", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const auto run = [&](const std::vector<std::string>& words) {
    const test::Result result = test::run_program(words, folder.path());
    INFO(words[0] << ": " << result.err);
    REQUIRE(result.code == 0);
    return result.err;
  };
  const auto at = [&](const char* name) { return (folder / name).string(); };
  run({"sample", "--task", "wikihop", "--records", "30", "--output", at("s")});
  const std::string progress = run({"prepare", "--task", "wikihop", "--split", "train", "--input", at("s/train.json"),
                                    "--vocab", at("s/vocab.txt"), "--splitter", "icu", "--output", at("train.h5")});
  const auto kilobytes = std::filesystem::file_size(folder / "s/train.json") / 1000;
  CHECK_THAT(progress, Catch::Contains(fmt::format("prepare {0}/{0} KB", kilobytes)));
  CHECK_THAT(progress, Catch::Contains(", 30 records\n"));
}
