#include "tasks/train/forecast.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>

#include "data/loader/order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/large_blocks.h"
#include "etc_core/nn/count_memory.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model.h"

namespace etc {

namespace {

using MicroBatch = std::vector<data::LoadedExample>;

std::vector<MicroBatch> read_examples(const data::DatasetReader& reader,
                                      const std::vector<std::vector<std::int64_t>>& indices_of_each) {
  std::vector<MicroBatch> micro_batches;
  for (const std::vector<std::int64_t>& indices : indices_of_each) {
    MicroBatch& examples = micro_batches.emplace_back();
    for (const std::int64_t index : indices) {
      examples.push_back({index, static_cast<std::int64_t>(examples.size()), reader.read(index)});
    }
  }
  return micro_batches;
}

// Sets of gradients that wait in the accumulator while the micro-batches of a batch run: before number i there are as
// many as i has binary ones (optim/accumulator.h).
std::int64_t waiting_sets(std::int64_t micro_batches) {
  int most = 0;
  for (std::int64_t i = 0; i < micro_batches; ++i) most = std::max(most, std::popcount(static_cast<std::uint64_t>(i)));
  return most;
}

void train_on(TaskModel& model, const MicroBatch& examples, const RunConfig& config) {
  const std::string where = files_text(config.data.train);
  EtcInput input = model.task->feed(examples, where);
  Tape tape(true);
  ForwardOptions options;
  options.training = true;
  options.compute = training_compute(config.training);
  HeadOutput logits = model.forward(tape, examples, input, options);
  const std::vector<double> counts(model.task->loss_terms().size(), 1);
  model.task->loss(tape, examples, input, logits, counts);
  tape.backward();
}

// training: micro-batches as indices of examples, one of which has the peak; most_of_a_batch: micro-batches of a batch.
MemoryReport forecast(const RunConfig& config, const RunData& data,
                      const std::vector<std::vector<std::int64_t>>& training_indices, std::int64_t most_of_a_batch) {
  const std::vector<MicroBatch> training = read_examples(*data.train, training_indices);
  std::vector<MicroBatch> evaluation;
  if (data.eval != nullptr) {
    const auto heaviest =
        data::heaviest_micro_batches(*data.eval, evaluation_order(kEvaluationTokens), data.eval->size());
    evaluation = read_examples(*data.eval, heaviest.examples);
  }
  return count_memory([&] {
    TaskModel model(config.model, config.task);
    for (const auto& parameter : model.parameters.all()) parameter->allocate();
    train_on(model, training.front(), config);  // which parameters have gradients shows here
    const std::vector<Tensor> moments = moments_without_values(model.parameters);
    {
      std::vector<Tensor> waiting;
      for (std::int64_t set = 0; set < waiting_sets(most_of_a_batch); ++set) {
        for (const auto& parameter : model.parameters.all()) {
          if (parameter->grad) waiting.push_back(Tensor::empty(parameter->shape, Purpose::gradients));
        }
      }
      for (const MicroBatch& examples : training) {
        model.parameters.drop_gradients();
        train_on(model, examples, config);
      }
    }
    model.parameters.drop_gradients();
    for (const MicroBatch& examples : evaluation) {
      EtcInput input = model.task->feed(examples, files_text(config.data.eval));
      Tape tape(false);
      model.forward(tape, examples, input, ForwardOptions{});
    }
  });
}

}  // namespace

std::vector<Tensor> moments_without_values(const ParameterSet& parameters) {
  std::vector<Tensor> moments;
  for (const auto& parameter : parameters.all()) {
    for (int i = 0; i < 2 && parameter->grad; ++i) moments.push_back(Tensor::empty(parameter->shape, Purpose::moments));
  }
  return moments;
}

MemoryReport forecast_training(const RunConfig& config, const RunData& data, std::int64_t steps) {
  data::LoaderOptions order = training_order(config.training);
  constexpr std::int64_t kSamples = 20'000'000;  // half a second; heavier micro-batches behind them would be rare
  const std::int64_t samples = std::min(steps, kSamples / order.batch_examples + 1) * order.batch_examples;
  const auto heaviest = data::heaviest_micro_batches(*data.train, order, samples);
  return forecast(config, data, heaviest.examples, heaviest.most_of_a_batch);
}

MemoryReport forecast_single_example(const RunConfig& config, const RunData& data, std::int64_t index) {
  return forecast(config, data, {{index}}, 1);
}

std::int64_t bytes_outside_ledger() {
  std::int64_t pages = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages >> resident)) return 0;
  const large_blocks::Report large = large_blocks::report();
  return std::max<std::int64_t>(0, resident * ::sysconf(_SC_PAGESIZE) - large.in_use - large.kept);
}

std::string memory_text(const MemoryReport& peak) {
  constexpr double kGigabyte = 1e9, kMegabyte = 1e6;
  const bool large = peak.peak >= 1000 * static_cast<std::int64_t>(kMegabyte);
  const auto number = [&](std::int64_t bytes) {
    return fmt::format("{:.{}f}", static_cast<double>(bytes) / (large ? kGigabyte : kMegabyte), large ? 2 : 1);
  };
  std::string text = fmt::format("{} {}", number(peak.peak), large ? "GB" : "MB");
  const char* separator = ": ";
  for (int p = 0; p < kPurposeCount; ++p) {
    if (peak.at_peak[static_cast<std::size_t>(p)] == 0) continue;
    text += fmt::format("{}{} {}", separator, purpose_name(static_cast<Purpose>(p)),
                        number(peak.at_peak[static_cast<std::size_t>(p)]));
    separator = ", ";
  }
  return text;
}

}  // namespace etc
