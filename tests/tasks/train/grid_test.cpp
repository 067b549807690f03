#include "tasks/train/grid.h"

#include <fmt/format.h>

#include <cmath>

#include "etc_core/base/files.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::GridAxis;
using etc::GridResult;
using etc::GridRun;
using etc::Json;
using etc::test::has;
using etc::test::Place;
using etc::test::Words;

GridResult result_of(double accuracy) {
  return {{10, {{"accuracy", accuracy}, {"loss", 1 - accuracy}}}, ""};
}

std::vector<GridRun> runs_of(const std::vector<std::string>& settings) {
  std::vector<GridRun> runs;
  for (const std::string& setting : settings) runs.push_back({setting, runs.size(), {}});
  return runs;
}

TEST_CASE("a grid is every choice of values, the last axis fastest, with every seed", "[train]") {
  const etc::Grid grid{
      {{"training", "learning_rate", {"1e-5", "2e-5"}, {1e-5, 2e-5}}, {"training", "batch_size", {"4", "8"}, {4, 8}}},
      2};
  const auto runs = etc::plan_grid(grid, Json{{"training", {{"seed", 7}}}}, [](const Json& options) {
    etc::RunConfig config;
    config.training.learning_rate = options["training"]["learning_rate"];
    config.training.batch_size = options["training"]["batch_size"];
    config.training.seed = options["training"]["seed"];
    return config;
  });
  std::vector<std::string> folders;
  for (const GridRun& run : runs) folders.push_back(run.folder());
  const std::vector<std::string> expected = {
      "learning_rate=1e-5,batch_size=4/seed=7", "learning_rate=1e-5,batch_size=4/seed=8",
      "learning_rate=1e-5,batch_size=8/seed=7", "learning_rate=1e-5,batch_size=8/seed=8",
      "learning_rate=2e-5,batch_size=4/seed=7", "learning_rate=2e-5,batch_size=4/seed=8",
      "learning_rate=2e-5,batch_size=8/seed=7", "learning_rate=2e-5,batch_size=8/seed=8"};
  CHECK(folders == expected);
  CHECK(runs[5].config.training.learning_rate == 2e-5);
  CHECK(runs[5].config.training.batch_size == 4);
  CHECK(runs[5].config.training.seed == 8);
}

TEST_CASE("a setting's figure is the median over its seeds, and its deviation that of a sample", "[train]") {
  const auto runs = runs_of({"a", "a", "a", "a", "b", "b", "b"});
  const auto summaries = etc::summarise(runs, {result_of(0.1), result_of(0.4), result_of(0.2), result_of(0.9),
                                               result_of(0.3), result_of(0.3), result_of(0.6)});
  REQUIRE(summaries.size() == 2);
  CHECK(summaries[0].metrics[0].name == "accuracy");
  CHECK(summaries[0].metrics[0].median == Approx(0.3));
  CHECK(summaries[0].metrics[0].deviation == Approx(0.355902608));
  CHECK(summaries[1].metrics[0].median == Approx(0.3));
  CHECK(summaries[1].metrics[1].median == Approx(0.7));
  CHECK(etc::best_setting(summaries) == &summaries[0]);  // the first among equals
}

TEST_CASE("runs that diverged are counted, and a setting without any figure is never the best", "[train]") {
  const auto runs = runs_of({"a", "a", "b", "c"});
  const GridResult failed{{}, "train: loss is nan"};
  const auto summaries =
      etc::summarise(runs, {failed, failed, result_of(0.2), {{1, {{"accuracy", std::nan("")}}}, ""}});
  CHECK(summaries[0].failed == 2);
  CHECK(summaries[0].metrics.empty());
  CHECK(std::isnan(summaries[2].metrics[0].median));
  CHECK(etc::best_setting(summaries) == &summaries[1]);
  CHECK(etc::best_setting({}) == nullptr);
}

Words grid_command(const Place& place) {
  Words words = place.training({"--eval-data", place.folder / "train.h5"}, "train.h5", "4");
  *(std::find(words.begin(), words.end(), "--output") + 1) = place.folder / "whole";
  return etc::test::joined(words, {"--seeds", "2", "--grid", "learning_rate=0.001,1e30", "hidden-size=16,24"});
}

TEST_CASE("a grid is trained, goes on after it was cut short, and gives the figures of its runs made alone",
          "[train]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const auto whole = place.run(grid_command(place));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  CHECK(has(whole.out, "learning_rate=0.001,hidden_size=16  accuracy"));
  CHECK(has(whole.out, "others diverged"));
  CHECK(has(whole.out, "optimistic"));
  const std::string json = etc::read_file(place.folder / "whole/grid.json");
  const Json results = etc::parse_json(json, "grid.json");
  CHECK(results["runs"].size() == 8);
  CHECK(results["settings"].size() == 4);
  CHECK(has(results["runs"][4].value("failure", ""), "at step"));

  // Simulates a stop after the second run: one folder less, and the table of two runs.
  fs::remove_all(place.folder / "whole/learning_rate=0.001,hidden_size=24");
  const auto again = place.run(grid_command(place));
  CHECK(again.out == whole.out);
  CHECK(etc::read_file(place.folder / "whole/grid.json") == json);

  const auto alone = place.run(etc::test::joined(
      place.training({"--eval-data", place.folder / "train.h5", "--seed", "2", "--learning-rate", "0.001"}, "train.h5",
                     "4"),
      {}));
  REQUIRE(alone.code == 0);
  CHECK(has(alone.out, fmt::format("accuracy {:.6g}", results["runs"][1]["metrics"]["accuracy"].get<double>())));
  CHECK(etc::read_file(place.folder / "whole/learning_rate=0.001,hidden_size=16/seed=2/best/model.safetensors") ==
        etc::read_file(place.folder / "run/best/model.safetensors"));
}

TEST_CASE("a grid goes on behind a run whose residual scores left their range", "[train]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const auto result =
      place.run(place.training({"--use-residual-attention", "--grid", "learning_rate=1e30,0.001"}, "train.h5", "4"));
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(has(result.out, "learning_rate=1e30  (0 of 1 runs, the others diverged)"));
  CHECK(has(result.err, "without --eval-data nothing is measured"));
  const Json results = etc::parse_json(etc::read_file(place.folder / "run/grid.json"), "grid.json");
  CHECK(has(results["runs"][0].value("failure", ""), "train: step 1: "));
  CHECK(has(results["runs"][0].value("failure", ""), "the model diverges"));
}

TEST_CASE("a grid leaves a folder alone that holds files of somebody else", "[train]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  fs::create_directory(place.folder / "run");
  etc::test::write_file(place.folder / "run/grid.csv", "mine");
  const auto result = place.run(place.training({"--grid", "learning_rate=0.001"}));
  CHECK(result.code == 2);
  CHECK(has(result.err, "holds files that belong to no grid"));
  CHECK(etc::read_file(place.folder / "run/grid.csv") == "mine");
}

TEST_CASE("a grid that cannot be meant is a usage error before any work", "[train]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const auto refused = [&](const Words& more, const std::string& message) {
    const auto result = place.run(etc::test::joined(place.training(), more));
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(has(result.err, message));
    CHECK_FALSE(fs::exists(place.folder / "run"));
  };
  refused({"--grid", "lerning_rate=1,2"}, "did you mean learning_rate?");
  refused({"--grid", "learning_rate"}, "expected KEY=VALUE,VALUE…, got learning_rate");
  refused({"--grid", "learning_rate=1,1"}, "1 is there twice");
  refused({"--grid", "seed=1,2"}, "use --seeds N");
  refused({"--grid", "learning_rate=1,two"}, "two");
  refused({"--grid", "learning_rate=0.1,-1"}, "setting learning_rate=-1 of the grid");
  refused({"--seeds", "0"}, "from 1 to 10000");
  refused({"--seeds", "2", "--forecast"}, "--forecast");
}

}  // namespace
