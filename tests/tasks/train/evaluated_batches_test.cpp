// Evaluations while training that read a part of their data.
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using etc::Json;

etc::RunConfig evaluated(const fs::path& train, const fs::path& dev, std::int64_t batches) {
  Json config = etc::default_config("wikihop");
  config["model"] = etc::test::tiny_model().to_json();
  etc::overlay_config(config,
                      {{"data", {{"train", {train.string()}}, {"eval", {dev.string()}}}},
                       {"training",
                        {{"batch_size", 8},
                         {"steps", 6},
                         {"learning_rate", 0.01},
                         {"eval_every", 3},
                         {"eval_batches", batches},
                         {"threads", 1}}}},
                      "test");
  return etc::run_config_from_json(config, "test");
}

std::vector<double> accuracies_of(const fs::path& run) {
  std::vector<double> accuracies;
  std::istringstream lines(etc::read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json entry = Json::parse(line);
    if (entry.at("kind") == "eval") accuracies.push_back(entry.at("accuracy"));
  }
  return accuracies;
}

TEST_CASE("evaluations while training read as many batches as they are told, from the first example on", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const fs::path train = folder / "train.h5", dev = folder / "dev.h5", part = folder / "part.h5";
  etc::test::write_readable_dataset(train, 0, 20);
  etc::test::write_readable_dataset(dev, 500, 150);
  etc::test::write_readable_dataset(part, 500, 72);  // 9 batches
  etc::train(evaluated(train, part, 0), folder / "of_part");
  etc::train(evaluated(train, dev, 9), folder / "cut");
  etc::train(evaluated(train, dev, 0), folder / "whole");
  etc::train(evaluated(train, dev, 19), folder / "more");  // than there are
  REQUIRE(accuracies_of(folder / "cut").size() == 2);
  CHECK(accuracies_of(folder / "cut") == accuracies_of(folder / "of_part"));
  CHECK(accuracies_of(folder / "cut") != accuracies_of(folder / "whole"));
  CHECK(accuracies_of(folder / "more") == accuracies_of(folder / "whole"));
  const std::string said = "evaluations read the first ";
  CHECK_THAT(etc::read_file(folder / "cut/log.txt"), Contains(said + "72 of 150 examples (training.eval_batches 9)"));
  for (const char* run : {"of_part", "whole", "more"}) {
    CHECK_THAT(etc::read_file(folder / run / "log.txt"), !Contains(said));
  }
}

TEST_CASE("by default pre-training evaluates on 100 batches, as published, and every other task on all", "[tasks]") {
  const auto batches = [](const char* task) { return etc::default_config(task)["training"]["eval_batches"]; };
  CHECK(batches("pretrain") == 100);
  for (const char* task : {"wikihop", "squad", "lm", "translation"}) CHECK(batches(task) == 0);
}

}  // namespace
