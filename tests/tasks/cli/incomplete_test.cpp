// Prepared data of inputs that could not be read to their end: refused by every command that trains on or evaluates
// with them.
#include "data/dataset.h"
#include "data/dataset_info.h"
#include "etc_core/base/json.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;

// cut.h5: the data of train.h5, marked as incomplete.
struct IncompleteScene : Place {
  fs::path whole = folder / "train.h5", cut = folder / "cut.h5", model = folder / "run/best";

  IncompleteScene() {
    etc::test::write_readable_dataset(cut, 0, 20, "v1", {{"train.json", "byte 813: the file ends inside a record"}});
    train();
  }
  void refuses(const Words& words) const {
    const Result result = run(words);
    INFO(words[0] << ": " << result.out << result.err);
    CHECK(result.code == 1);
    CHECK(result.out.empty());
    for (const char* part : {"cut.h5: the data set is incomplete: train.json: byte 813: the file ends inside a record",
                             "prepare it again", "--allow-incomplete"}) {
      CHECK(has(result.err, part));
    }
  }
  void takes(Words words) const {
    words.push_back("--allow-incomplete");
    const Result result = run(words);
    INFO(words[0] << ": " << result.err);
    CHECK(result.code == 0);
    CHECK(has(result.err, "cut.h5: the data set is incomplete: train.json"));
    CHECK(has(result.err, "taken as it is: --allow-incomplete"));
  }
};

TEST_CASE("incomplete data are refused without --allow-incomplete, by every command and in every place", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const IncompleteScene scene;
  const auto training = [&](const Words& more, const char* data, const char* output) {
    Words words = scene.training(more, data);
    *(std::find(words.begin(), words.end(), "--output") + 1) = scene.folder / output;
    return words;
  };
  const std::vector<Words> commands = {
      training({}, "cut.h5", "a"),
      training({"--eval-data", scene.cut}, "train.h5", "b"),
      training({"--data", scene.cut}, "train.h5", "c"),  // as shards
      {"eval", "--model", scene.model, "--data", scene.cut},
      {"eval", "--model", scene.model, "--data", scene.whole, scene.cut},
      {"predict", "--model", scene.model, "--data", scene.cut, "--output", scene.folder / "predictions.json"},
      {"encode", "--model", scene.model, "--data", scene.cut, "--output", scene.folder / "states.h5"}};
  for (const Words& words : commands) scene.refuses(words);
  for (const char* name : {"a", "b", "c", "predictions.json", "states.h5"}) CHECK(!fs::exists(scene.folder / name));
  for (const Words& words : commands) scene.takes(words);
  // States of incomplete data are incomplete themselves.
  const etc::data::DatasetInfo states = etc::data::read_dataset_info(scene.folder / "states.h5");
  REQUIRE(states.missing.size() == 1);
  CHECK(states.missing[0].name == "train.json");
  CHECK(has(scene.run({"info", scene.folder / "states.h5"}).out, "INCOMPLETE: train.json"));
}

TEST_CASE("a run that was allowed incomplete data goes on with them, and one that was not can be allowed", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const IncompleteScene scene;
  Words words = scene.training({"--allow-incomplete"}, "cut.h5");
  *(std::find(words.begin(), words.end(), "--output") + 1) = scene.folder / "allowed";
  REQUIRE(scene.run(words).code == 0);
  CHECK(etc::read_json_file(scene.folder / "allowed/config.json")["data"]["allow_incomplete"] == true);
  CHECK(scene.run({"train", "--resume", scene.folder / "allowed"}).code == 0);
  CHECK(scene.run({"train", "--resume", scene.folder / "run", "--allow-incomplete"}).code == 0);
}

}  // namespace
