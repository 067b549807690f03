// Every task trains on an emulated device, from generated records: the device supports everything that its head and its
// embeddings need, and none of it accesses the device's memory from the host.
#include "data/sample/hotpotqa_sample.h"
#include "data/sample/nq_sample.h"
#include "data/sample/openkp_sample.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/prepare/run.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"
#include "tasks/train/trainer.h"
#include "tests/core/encoder_sizes.h"
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

EtcConfig small_etc() {
  EtcConfig model = tiny_model();
  model.vocab_size = 512;
  model.num_hidden_layers = 1;
  model.use_residual_attention = true;
  return model;
}

// A model with norms, branch scales and running scores.
DenseConfig small_dense() {
  DenseConfig model =
      with_sizes(DenseConfig(), {.vocabulary = 512, .hidden = 16, .layers = 2, .heads = 2, .feed_forward = 32});
  model.norm = DenseConfig::Norm::rezero_post_ln;
  model.use_residual_attention = true;
  return model;
}

// A task with its keys, and the encoder it is trained with.
struct Trained {
  std::string task;
  Json keys;
  ModelConfig model;
};

RunConfig config_for(const Trained& one, const fs::path& folder, const std::string& device) {
  const auto& [task, task_keys, model] = one;
  Json config = default_config(task);
  config["model"] = model->to_json();
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
  const std::vector<Trained> kTrained = {
      {"hotpotqa", {{"answer_encoding", "bio"}}, small_etc()},
      {"nq", {{"mask_long_output", true}}, small_etc()},
      {"nq", Json::object(), small_dense()},
      {"openkp", {{"kp_max_length", 3}, {"extra_dense_feature_layers", 1}}, small_etc()},
  };
  for (const Trained& one : kTrained) {
    const std::string& task = one.task;
    CAPTURE(task, model_kind_of(one.model->to_json()));
    const TemporaryFolder folder;
    write_dataset(task, folder.path());
    const TrainReport cpu = train(config_for(one, folder.path(), "cpu"), folder / "cpu");
    const std::int64_t before = simt::emulator_counts().launches;
    const TrainReport cuda = train(config_for(one, folder.path(), "cuda"), folder / "cuda");
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
