// Training and prediction on an emulated device: the same loop, the same files, the same numbers except for rounding.
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/simt/device_loss.h"
#include "tests/support/simt/emulator.h"
#include "tests/tasks/train/run_losses.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

RunConfig config_for(const fs::path& folder, const std::string& device) {
  Json config = default_config("wikihop");
  EtcConfig model = tiny_model();
  model.use_residual_attention = true;
  config["model"] = model.to_json();
  overlay_config(
      config,
      {{"data", {{"train", {(folder / "train.h5").string()}}, {"eval", {(folder / "train.h5").string()}}}},
       {"training",
        {{"batch_size", 4}, {"micro_batch_tokens", 200}, {"steps", 2}, {"learning_rate", 0.003}, {"device", device}}}},
      "test");
  return run_config_from_json(config, "test");
}

}  // namespace

TEST_CASE("a run on an emulated device has the losses of the CPU's, and only that device goes on with it",
          "[tasks][cuda]") {
  add_backend(cuda_backend());
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 8);
  train(config_for(folder.path(), "cpu"), folder / "cpu");
  const std::int64_t before = simt::emulator_counts().launches;
  const TrainReport report = train(config_for(folder.path(), "auto"), folder / "cuda");
  CHECK(simt::emulator_counts().launches > before + 100);
  CHECK(report.step == 2);
  const auto expected = losses(folder / "cpu"), got = losses(folder / "cuda");
  REQUIRE(!expected.empty());
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-4));
  CHECK(read_file(folder / "cuda" / "best" / "model.safetensors").size() ==
        read_file(folder / "cpu" / "best" / "model.safetensors").size());
  CHECK_THROWS_WITH(
      train(config_for(folder.path(), "cpu"), folder / "cuda"),
      Contains("cannot be resumed: device: the run was started with \"emulated device\", now it is \"cpu\""));
  RunConfig strict = config_for(folder.path(), "cuda");
  strict.training.deterministic = "strict";
  CHECK_THROWS_WITH(
      train(strict, folder / "cuda"),
      Contains("cannot be resumed: training.deterministic: the run was started with \"run\", now it is \"strict\""));
  CHECK(train(config_for(folder.path(), "cuda"), folder / "cuda").step == 2);  // nothing left to do
}

TEST_CASE("a run whose device is lost says so, and goes on with the same bits from its last checkpoint",
          "[tasks][cuda]") {
  add_backend(cuda_backend());
  constexpr int kLaunchFailure = 719;
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 8);
  RunConfig config = config_for(folder.path(), "cuda");
  config.training.save_every = 1;
  config.training.eval_every = 2;
  const std::int64_t first = simt::device_operations();
  train(config, folder / "whole");
  const std::int64_t operations = simt::device_operations() - first;
  const auto bits = [&](const char* run) { return read_file(folder / run / "last" / "state.safetensors"); };
  std::vector<std::string> said;
  for (const std::int64_t percent : {1, 70, 40}) {  // of the work of one process before the device fails
    simt::lose_device_after(operations * percent / 100, kLaunchFailure);
    try {
      train(config, folder / "lost");
    } catch (const Error& error) {
      said.emplace_back(error.what());
    }
    simt::restore_device();
  }
  REQUIRE(said.size() == 3);
  CHECK_THAT(said[0], Contains("train: step 0: cuda: the device was lost") && Contains("there is no checkpoint yet"));
  for (const std::string& later : {said[1], said[2]}) {
    CHECK_THAT(later, Contains("the device was lost") && Contains("goes on from the checkpoint of step 1"));
  }
  CHECK(train(config, folder / "lost").step == 2);
  CHECK(bits("lost") == bits("whole"));
}

TEST_CASE("a run in bf16 on an emulated device has losses near those of fp32 and stores what auto chose",
          "[tasks][cuda]") {
  add_backend(cuda_backend());
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 8);
  RunConfig config = config_for(folder.path(), "cuda");
  config.data.eval.clear();
  config.training.compute = "auto";
  train(config, folder / "auto");
  CHECK(read_json_file(folder / "auto" / "config.json")["training"]["compute"] == "bf16");
  config.training.compute = "fp32";
  train(config, folder / "fp32");
  const auto got = losses(folder / "auto"), expected = losses(folder / "fp32");
  REQUIRE(!expected.empty());
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(0.02));
  CHECK(got != expected);
}

TEST_CASE("a run on an emulated device takes the memory that was forecast, the backend's own included",
          "[tasks][cuda]") {
  add_backend(cuda_backend());
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 8);
  RunConfig config = config_for(folder.path(), "cuda");
  config.training.steps = 1;
  open_device("cuda");
  CHECK(memory_ledger::report().total >= 64 << 20);  // rings of copies, the library's workspace
  const MemoryReport expected = forecast_memory(config).buffers;
  train(config, folder / "run");
  const MemoryReport measured = memory_ledger::report();
  CAPTURE(expected.peak, measured.peak);
  // The model is tiny compared with the backend's own memory.
  const double share = static_cast<double>(measured.peak) / static_cast<double>(expected.peak);
  CHECK(share > 0.99);
  CHECK(share < 1.01);
}

TEST_CASE("out of device memory names what holds it and a micro-batch that is expected to fit", "[tasks][cuda]") {
  add_backend(cuda_backend());
  const TemporaryFolder folder;
  write_readable_dataset(folder / "train.h5", 0, 16);
  open_device("cuda");
  RunConfig config = config_for(folder.path(), "cuda");
  config.training.batch_size = 16;
  config.training.micro_batch_tokens = 0;  // the whole batch at once
  const std::int64_t needed = forecast_memory(config).peak() - memory_ledger::report().total;
  const std::int64_t held = simt::memory_in_use();  // by the backend
  simt::set_memory_capacity(held + needed * 6 / 10);
  CHECK_THROWS_WITH(train(config, folder / "run"),
                    Contains("step 0: memory: ") && Contains("activations") && Contains("is expected to fit"));
  simt::set_memory_capacity(held + needed / 100);
  CHECK_THROWS_WITH(train(config, folder / "other"), Contains("bytes of device memory"));
  simt::set_memory_capacity(std::int64_t{1} << 40);
}
