// A run that stops when evaluations do not improve any more, and how it can be continued.
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

// A rate of 0 learns nothing: the first evaluation, at step 2, is the best, and two more do not improve it.
etc::RunConfig patient(const fs::path& data, std::int64_t steps, std::int64_t patience) {
  Json config = etc::default_config("wikihop");
  config["model"] = etc::test::tiny_model().to_json();
  etc::overlay_config(config,
                      {{"data", {{"train", {data.string()}}, {"eval", {data.string()}}}},
                       {"training",
                        {{"batch_size", 8},
                         {"steps", steps},
                         {"learning_rate", 0},
                         {"eval_every", 2},
                         {"early_stopping", patience},
                         {"threads", 1}}}},
                      "test");
  return etc::run_config_from_json(config, "test");
}

TEST_CASE("a run that stopped early says so, and takes more steps only with more patience", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const fs::path data = folder / "train.h5", run = folder / "run";
  etc::test::write_readable_dataset(data, 0, 20);
  const auto log = [&] { return etc::read_file(run / "log.txt"); };
  CHECK(etc::train(patient(data, 12, 2), run).step == 6);
  CHECK_THAT(log(), Contains("stopped early, after 2 evaluations without a better result"));
  CHECK(etc::train(patient(data, 12, 2), run).step == 6);  // the same command has no effect
  CHECK_THROWS_WITH(
      etc::train(patient(data, 16, 2), run),
      Contains("cannot take more steps: the run stopped early, after 2 evaluations") && Contains("--early-stopping"));
  CHECK(etc::train(patient(data, 16, 3), run).step == 8);
  CHECK_THAT(log(), Contains("stopped early, after 3 evaluations without a better result"));
  CHECK(etc::train(patient(data, 16, 0), run).step == 16);
  // Its bits do not depend on where it had stopped.
  etc::train(patient(data, 16, 0), folder / "whole");
  for (const char* file : {"last/model.safetensors", "best/model.safetensors"})
    CHECK(etc::read_file(run / file) == etc::read_file(folder / "whole" / file));
}

}  // namespace
