// Forecast memory of a run compared with the peak measured by its ledger.
#include "tasks/train/forecast.h"

#include <cstdio>
#include <cstdlib>

#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/ops/update_block.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/trainer.h"
#include "tasks/wikihop/schema.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

using etc::Json;

// Micro-batches of a few examples, so that activations are a substantial part; trained on 40 examples, evaluated on 30.
etc::RunConfig config_for(const std::filesystem::path& folder, bool residual, std::int64_t period) {
  Json config = etc::default_config("wikihop");
  etc::EtcConfig model = etc::test::tiny_model();
  model.hidden_size = 96;
  model.intermediate_size = 384;
  model.num_hidden_layers = 3;
  model.use_residual_attention = residual;
  model.grad_checkpointing_period = period;
  model.hidden_dropout_prob = 0.1;
  config["model"] = model.to_json();
  etc::overlay_config(
      config,
      {{"data", {{"train", {(folder / "train.h5").string()}}, {"eval", {(folder / "dev.h5").string()}}}},
       {"training",
        {{"batch_size", 40}, {"micro_batch_tokens", 300}, {"steps", 2}, {"save_every", 100}, {"threads", 2}}}},
      "test");
  return etc::run_config_from_json(config, "test");
}

TEST_CASE("a run takes the memory that was forecast for it", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  etc::test::write_readable_dataset(folder / "dev.h5", 500, 30);
  int run = 0;
  for (const bool residual : {false, true}) {
    for (const std::int64_t period : {0, 1}) {
      CAPTURE(residual, period);
      const etc::RunConfig config = config_for(folder.path(), residual, period);
      const etc::ProcessMemory forecast = etc::forecast_memory(config);
      const etc::MemoryReport& expected = forecast.buffers;
      etc::train(config, folder / ("run" + std::to_string(run++)));
      const etc::MemoryReport measured = etc::memory_ledger::report();
      std::printf("forecast %s\nmeasured %s\n", etc::memory_text(forecast).c_str(),
                  etc::memory_text({measured, 0}).c_str());
      // The heaviest micro-batch may run while fewer gradient sets are held than the maximum: the peak is never more
      // than forecast except for the workers' scratch memory, and not much less.
      const double share = static_cast<double>(measured.peak) / static_cast<double>(expected.peak);
      CHECK(share > 0.85);
      CHECK(share < 1.05);
      for (const etc::Purpose purpose : {etc::Purpose::weights, etc::Purpose::moments}) {
        CHECK(measured.at_peak[static_cast<int>(purpose)] == expected.at_peak[static_cast<int>(purpose)]);
      }
    }
  }
}

TEST_CASE("of the data, the batches read ahead, the one being read and the one in use are forecast", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  const etc::data::DatasetReader reader({folder / "train.h5"}, etc::wikihop::schema());
  const std::vector<std::vector<etc::data::LoadedExample>> some = {{{0, 0, reader.read(0)}, {1, 1, reader.read(1)}}};
  const auto of_batches = [&](std::int64_t ahead) {
    etc::data::LoaderOptions order;
    order.batch_examples = 5;
    order.prefetch_batches = ahead;
    etc::ProcessMemory memory;
    etc::add_reading(memory, reader, order, some);
    return static_cast<double>(memory.beside - 16 * reader.size());  // without lengths and order of the epoch
  };
  CHECK(of_batches(0) > 0);
  CHECK(of_batches(1) == Approx(1.5 * of_batches(0)).margin(2));
  CHECK(of_batches(2) == Approx(2 * of_batches(0)).margin(2));
  CHECK(of_batches(6) == of_batches(100));  // all 40
}

TEST_CASE("processes that divide the moments are forecast their part of them", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_readable_dataset(folder / "train.h5", 0, 40);
  etc::test::write_readable_dataset(folder / "dev.h5", 500, 30);
  etc::RunConfig config = config_for(folder.path(), false, 0);
  const auto moments = [&](int processes) {
    const etc::MemoryReport report = etc::forecast_memory(config, processes).buffers;
    return report.at_peak[static_cast<int>(etc::Purpose::moments)];
  };
  const std::int64_t whole = moments(1);
  CHECK(moments(8) == whole);  // with one process each keeps all
  config.training.shard_moments = true;
  CHECK(moments(1) == whole);
  constexpr std::int64_t kBlocks = 2 * 2 * etc::ops::kBlockSize * 4;  // for both moments, one block at each end
  CHECK(std::abs(moments(4) - whole / 4) <= kBlocks);
  CHECK(std::abs(moments(8) - whole / 8) <= kBlocks);
  CHECK(moments(8) >= whole / 8);
}

}  // namespace
