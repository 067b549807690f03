// Every task trains on an emulated device, from generated records: what its head and its embeddings ask of a device is
// there, and none of it touches the device's memory from the host.
#include "data/sample/hotpotqa_sample.h"
#include "data/sample/nq_sample.h"
#include "data/sample/openkp_sample.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/prepare/run.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/simt/emulator.h"
#include "tests/tasks/train/run_losses.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;
using namespace etc::test;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecords = 4;

// Generated records of a task, prepared as train.h5.
void write_dataset(const std::string& task, const fs::path& folder) {
  std::string records = "train.jsonl";
  if (task == "hotpotqa") {
    data::write_hotpotqa_sample({.records = kRecords, .long_tokens = 40}, folder);
    records = "train.json";
  } else if (task == "nq") {
    data::write_nq_sample({.records = kRecords, .candidates = 2, .long_tokens = 64}, folder);
  } else {
    data::write_openkp_sample({.records = kRecords, .topics = 2, .long_tokens = 66}, folder);
  }
  const prepare::PreparationKind& kind = preparation_kind(task);
  Json settings = kind.settings.defaults();
  prepare::RunOptions run;
  run.inputs = {folder / records};
  run.output = folder / "train.h5";
  run.report = folder / "rejects.jsonl";
  run.split = "train";
  REQUIRE(prepare::run(*kind.make(settings, folder / "vocab.txt", prepare::Labels::required), run).examples >=
          kRecords);
}

RunConfig config_for(const std::string& task, const Json& task_keys, const fs::path& folder,
                     const std::string& device) {
  Json config = default_config(task);
  EtcConfig model = tiny_model();
  model.vocab_size = 512;
  model.num_hidden_layers = 1;
  model.use_residual_attention = true;
  config["model"] = model.to_json();
  overlay_config(
      config,
      {{"data",
        {{"train", {(folder / "train.h5").string()}},
         {"eval", {(folder / "train.h5").string()}},
         {"vocab", (folder / "vocab.txt").string()}}},
       {"training", {{"batch_size", kRecords}, {"steps", 2}, {"eval_every", 2}, {"log_every", 1}, {"device", device}}},
       {"task", task_keys}},
      "test");
  return run_config_from_json(config, "test");
}

}  // namespace

TEST_CASE("training and predictions of every task on an emulated device equal the CPU's", "[tasks][cuda]") {
  add_backend(cuda_backend());
  const std::vector<std::pair<std::string, Json>> kTasks = {
      {"hotpotqa", {{"answer_encoding", "bio"}}},
      {"nq", {{"mask_long_output", true}}},
      {"openkp", {{"kp_max_length", 3}, {"extra_dense_feature_layers", 1}}},
  };
  for (const auto& [task, keys] : kTasks) {
    CAPTURE(task);
    const TemporaryFolder folder;
    write_dataset(task, folder.path());
    const TrainReport cpu = train(config_for(task, keys, folder.path(), "cpu"), folder / "cpu");
    const std::int64_t before = simt::emulator_counts().launches;
    const TrainReport cuda = train(config_for(task, keys, folder.path(), "cuda"), folder / "cuda");
    CHECK(simt::emulator_counts().launches > before + 100);
    CHECK(cuda.step == 2);
    // Scores of predictions, and losses.
    REQUIRE(cuda.best.size() == cpu.best.size());
    for (std::size_t i = 0; i < cpu.best.size(); ++i) {
      CAPTURE(cpu.best[i].first);
      CHECK(cuda.best[i].first == cpu.best[i].first);
      CHECK(cuda.best[i].second == Approx(cpu.best[i].second).epsilon(1e-4));
    }
    const auto expected = losses(folder / "cpu"), got = losses(folder / "cuda");
    REQUIRE(expected.size() >= 2);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-4));  // fp32, two steps
  }
}
