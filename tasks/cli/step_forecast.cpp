#include "tasks/cli/step_forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/loader/loader.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/optim/shards.h"
#include "tasks/cli/time_forecast.h"
#include "tasks/train/model.h"
#include "tasks/train/plan.h"

namespace etc::cli {

namespace {

using Rows = std::vector<profiler::Row>;

// Rows of the three parts of a call of EncoderCall.
struct Parts {
  Rows forward, backward, update;
};

Parts parts_of(const Rows& rows) {
  Parts parts;
  for (const profiler::Row& row : rows) {
    const std::string_view name = row.name;
    if (name == "gradient_norm" || name == "optimizer") {
      parts.update.push_back(row);
    } else if (name.find("backward") != std::string_view::npos) {
      parts.backward.push_back(row);
    } else {
      parts.forward.push_back(row);
    }
  }
  return parts;
}

}  // namespace

StepWork measured_step(const RunConfig& config) {
  const Device device = prepare_machine(config.training).device;
  const RunConfig settled = settle_compute(config, device, {});
  const ComputeType compute = training_compute(settled.training);
  const TaskModel model(*settled.model, settled.task);
  const RunData data = open_run_data(settled.data, *model.task);
  data::LoaderOptions order = training_order(settled);
  order.prefetch_batches = 0;
  data::LoadedBatch batch;
  data::Loader(data.train, order).next(batch);

  StepWork work;
  work.micro_batches = std::ssize(batch.micro_batches);
  work.shard_moments = settled.training.shard_moments;
  const Shards shards(model.parameters, 1, settled.training.bucket_bytes);
  for (const Bucket& bucket : shards.buckets()) {
    std::int64_t& bytes = work.bucket_bytes.emplace_back();
    for (std::size_t i = bucket.first; i < bucket.end; ++i) {
      bytes += model.parameters.all()[i]->size() * static_cast<std::int64_t>(sizeof(float));
    }
  }
  std::vector<Rows> rows_of_each;
  std::int64_t longs = 0, globals = 0;
  for (const auto& examples : batch.micro_batches) {
    count_memory([&] {
      const EncoderInput input = model.task->feed(examples, settled.data.train.front());
      longs += input.long_tokens();
      globals += input.global_tokens();
      rows_of_each.push_back(EncoderCall(*settled.model, CallMode::train, compute).count(input));
    });
  }
  const std::int64_t length = std::max<std::int64_t>(1, longs / std::max<std::int64_t>(1, batch.examples));
  const SliceInput slice =
      slice_input(length, std::clamp<std::int64_t>(longs / std::max<std::int64_t>(1, globals), 1, length));
  const OperatorRates rates(*settled.model, CallMode::train, compute, device, slice);
  const double count = static_cast<double>(work.micro_batches);
  for (const Rows& rows : rows_of_each) {
    const Parts parts = parts_of(rows);
    work.forward += rates.of(parts.forward).wall / count;
    work.backward += rates.of(parts.backward).wall / count;
    work.update = rates.of(parts.update).wall;
  }
  return work;
}

std::string step_time_text(const StepWork& work, const LinkRates& link, int processes) {
  const StepTime time = step_time(work, link, processes);
  return fmt::format(
      "expected step {:.4g} s in {} process{}: {} of {} micro-batches, forward {:.4g} s and backward {:.4g} s each, "
      "update {:.4g} s, waiting {:.4g} s of {:.4g} s sending\n"
      "a process takes in {:.4g} MB a step at {:.4g} GB/s and {:.4g} us a message\n",
      time.seconds(), processes, processes == 1 ? "" : "es", time.micro_batches, work.micro_batches, work.forward,
      work.backward, work.shard_moments ? work.update / processes : work.update, time.waiting, time.sending,
      time.bytes / 1e6, link.bytes_per_second / 1e9, link.latency * 1e6);
}

}  // namespace etc::cli
