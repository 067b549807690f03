// The files named by a training command: several shards, and a run resumed from another folder.
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

using namespace etc;
using test::has;
using test::Place;
using test::Result;
using test::Words;

namespace {

namespace fs = std::filesystem;

// The program started in `folder`.
Result run_in(const fs::path& folder, const Words& arguments, const Place& place) {
  std::string line = "cd '" + folder.string() + "' && exec '" + test::program().value() + "'";
  for (const std::string& word : arguments) line += " '" + word + "'";
  const fs::path output = place.folder / "run_in";
  test::Child child({"/bin/sh", "-c", line}, output);
  const int code = child.wait();
  return {code, read_file(output.string() + ".out"), read_file(output.string() + ".err")};
}

// The training command with paths relative to the place's own folder.
Words relative_training(const Place& place) {
  Words words = place.training({"--eval-data", "dev.h5"});
  for (std::string& word : words) {
    if (word.starts_with(place.folder.path().string())) word = fs::path(word).filename().string();
  }
  return words;
}

}  // namespace

TEST_CASE("training and evaluation take several files behind one option", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Place place;
  test::write_readable_dataset(place.folder / "more.h5", 100, 10);
  Words words = place.training();
  words.insert(words.begin() + 5, place.folder / "more.h5");  // after --data train.h5
  words.insert(words.end(), {"--eval-data", place.folder / "train.h5", place.folder / "more.h5"});
  const Result trained = place.run(words);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(has(trained.err, "30 examples, "));
  const Json data = read_json_file(place.folder / "run/config.json")["data"];
  CHECK(data["train"].size() == 2);
  CHECK(data["eval"].size() == 2);
  const Result scored = place.run(
      {"eval", "--model", place.folder / "run/best", "--data", place.folder / "train.h5", place.folder / "more.h5"});
  INFO(scored.err);
  CHECK(scored.code == 0);
  CHECK(has(scored.out, "examples 30\n"));
  const Result types =
      place.run(place.training({"--use-residual-attention", "--residual-attention-types", "l2l", "g2g", "--forecast"}));
  INFO(types.err);
  CHECK(types.code == 0);
}

TEST_CASE("a run that was started with relative paths goes on from any folder", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Place place;
  test::write_readable_dataset(place.folder / "dev.h5", 500, 10);
  const fs::path here = fs::canonical(place.folder.path()), config = place.folder / "run/config.json";
  const Result started = run_in(here, relative_training(place), place);
  INFO(started.err);
  REQUIRE(started.code == 0);
  CHECK(read_json_file(config)["data"]["train"] == Json({(here / "train.h5").string()}));
  CHECK(read_json_file(config)["data"]["eval"] == Json({(here / "dev.h5").string()}));
  fs::create_directory(place.folder / "elsewhere");
  const Result resumed = run_in(place.folder / "elsewhere", {"train", "--resume", "../run"}, place);
  INFO(resumed.err);
  CHECK(resumed.code == 0);

  SECTION("one of before that goes on from the folder it was started in, or says what it tried") {
    Json older = read_json_file(config);
    older["data"]["train"] = {"train.h5"};
    older["data"]["eval"] = {"dev.h5"};
    test::write_file(config, json_line(older));
    const Result other = run_in(place.folder / "elsewhere", {"train", "--resume", "../run"}, place);
    INFO(other.err);
    CHECK(other.code == 1);
    CHECK(has(other.err, "data.train: " + (here / "elsewhere/train.h5").string() +
                             " is not there: the run says train.h5, from the folder it was started in (give --data "
                             "FILE if it lies elsewhere now, or resume from that folder)"));
    const Result there = run_in(here, {"train", "--resume", "run"}, place);
    INFO(there.err);
    CHECK(there.code == 0);
    CHECK(read_json_file(config)["data"]["train"] == Json({(here / "train.h5").string()}));
  }
  SECTION("and data that moved are named") {
    fs::rename(place.folder / "dev.h5", place.folder / "moved.h5");
    const Result moved = run_in(here, {"train", "--resume", "run"}, place);
    INFO(moved.err);
    CHECK(moved.code == 1);
    CHECK(has(moved.err, "data.eval: " + (here / "dev.h5").string() +
                             " is not there (give --eval-data FILE if it lies elsewhere now)"));
    const Result told = run_in(here, {"train", "--resume", "run", "--eval-data", "moved.h5"}, place);
    INFO(told.err);
    CHECK(told.code == 0);
  }
}
