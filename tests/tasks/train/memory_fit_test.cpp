// --memory-limit: what is chosen for a limit, that the run keeps it, and the message when nothing fits.
#include "tasks/train/memory_fit.h"

#include "etc_core/nn/etc_config.h"
#include "tasks/train/plan.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// One batch of 40 examples of about 30 tokens in a single micro-batch. Layers are wide only in their activations, so
// that these are much larger than the gradient sets of earlier micro-batches.
etc::RunConfig config_for(const fs::path& data) {
  etc::EtcConfig model = etc::test::tiny_model();
  model.intermediate_size = 4096;
  model.num_hidden_layers = 6;
  etc::Json config = etc::default_config("wikihop");
  config["model"] = model.to_json();
  etc::overlay_config(config,
                      {{"data", {{"train", {data.string()}}}},
                       {"training", {{"batch_size", 40}, {"steps", 1}, {"save_every", 100}, {"threads", 1}}}},
                      "test");
  return etc::run_config_from_json(config, "test");
}

// The expected memory of the process with this choice.
std::int64_t taken(etc::RunConfig config, std::int64_t tokens, std::int64_t period) {
  config.training.micro_batch_tokens = tokens;
  config.model->grad_checkpointing_period = period;
  return etc::forecast_memory(config).peak();
}

TEST_CASE("a memory limit chooses smaller micro-batches and refuses what can never fit", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  const etc::RunConfig config = config_for(folder / "train.h5");
  const std::int64_t whole = taken(config, 0, 0), single = taken(config, 1, 0);
  CAPTURE(whole, single);
  REQUIRE(whole > single + 8'000'000);

  const etc::RunConfig enough = etc::fit_memory(config, whole + 20'000'000, {});
  CHECK(enough.training.micro_batch_tokens == 0);
  CHECK(enough.model->grad_checkpointing_period == 0);

  const std::int64_t limit = (whole + single) / 2;
  const etc::RunConfig smaller = etc::fit_memory(config, limit, {});
  CHECK(smaller.training.micro_batch_tokens > 0);
  CHECK(smaller.model->grad_checkpointing_period == 0);
  CHECK(taken(smaller, smaller.training.micro_batch_tokens, 0) <= limit);

  CHECK_THROWS_WITH(
      etc::fit_memory(config, 10'000'000, {}),
      Contains("the memory limit of 10.0 MB is too low for this model: a batch of the shortest example, of ") &&
          Contains("tokens, takes "));
}

TEST_CASE("a memory limit below single examples chooses to compute layers again", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 4);
  etc::RunConfig config = config_for(folder / "train.h5");
  // Narrow layers with a wide feed-forward part: their activations for an example are larger than their weights'
  // gradients.
  config.model->hidden_size = 4;
  config.model->num_attention_heads = 1;
  config.model->intermediate_size = 16384;
  config.model->num_hidden_layers = 12;
  config.training.batch_size = 1;
  const std::int64_t kept = taken(config, 0, 0), again = taken(config, 0, 1);
  CAPTURE(kept, again);
  REQUIRE(kept > again + 8'000'000);
  const std::int64_t limit = (kept + again) / 2;
  const etc::RunConfig chosen = etc::fit_memory(config, limit, {});
  CHECK(chosen.model->grad_checkpointing_period == 1);
  CHECK(taken(chosen, chosen.training.micro_batch_tokens, 1) <= limit);
  CHECK(etc::fit_memory(config, kept + 20'000'000, {}).model->grad_checkpointing_period == 0);
}

TEST_CASE("a run keeps the choice of its memory limit", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  const etc::RunConfig config = config_for(folder / "train.h5");
  const fs::path run = folder / "run";
  const std::int64_t limit = (taken(config, 0, 0) + taken(config, 1, 0)) / 2;
  const etc::RunConfig chosen = etc::fit_memory(config, limit, run);
  etc::train(chosen, run);
  // Much more memory now: the resumed run keeps its choice, since other micro-batches give other bits.
  const etc::RunConfig again = etc::fit_memory(config, 8'000'000'000, run);
  CHECK(again.training.micro_batch_tokens == chosen.training.micro_batch_tokens);
  CHECK(etc::train(again, run).step == 1);
  CHECK_THROWS_WITH(etc::fit_memory(config, 10'000'000, run),
                    Contains("run: the run goes on with --micro-batch-tokens") && Contains("10.0 MB"));
}

TEST_CASE("a run that ended before its first checkpoint holds nobody to its choice", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  const etc::RunConfig config = config_for(folder / "train.h5");
  const fs::path run = folder / "run";
  etc::RunConfig before = config;
  before.training.micro_batch_tokens = 64;
  fs::create_directory(run);
  etc::test::write_file(run / "config.json", before.to_json().dump());
  CHECK(etc::fit_memory(config, 8'000'000'000, run).training.micro_batch_tokens == 0);
  CHECK(!etc::config_to_go_on_with(run));
}

TEST_CASE("a choice that no limit could have led to from the options is refused", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  etc::RunConfig config = config_for(folder / "train.h5");
  const fs::path run = folder / "run";
  etc::train(config, run);  // with whole batches as micro-batches
  config.training.micro_batch_tokens = 64;
  CHECK_THROWS_WITH(etc::fit_memory(config, 8'000'000'000, run),
                    Contains("goes on with --micro-batch-tokens 0 ") && Contains("not with --micro-batch-tokens 64 "));
}

}  // namespace
