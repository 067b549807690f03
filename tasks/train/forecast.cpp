#include "tasks/train/forecast.h"

#include <algorithm>
#include <numeric>

#include "data/loader/order.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/ops/library_versions.h"
#include "etc_core/optim/shards.h"
#include "etc_core/optim/tree_sum.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model.h"
#include "tasks/whole_batch.h"

namespace etc {

using MicroBatch = std::vector<data::LoadedExample>;

namespace {

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

// Bytes of an example as returned by the loader.
std::int64_t bytes_of(const data::Example& example) {
  constexpr std::int64_t kEach = 128;  // a node of the map, its name and malloc's overhead
  const auto of = [](const auto& value) -> std::int64_t {
    if constexpr (requires { value.size(); }) {
      const auto size = static_cast<std::int64_t>(value.size() * sizeof(value[0]));
      if constexpr (requires { value.front().size(); }) {
        return std::accumulate(value.begin(), value.end(), size, [](std::int64_t sum, const auto& text) {
          return sum + static_cast<std::int64_t>(text.size());
        });
      }
      return size;
    }
    return 0;
  };
  std::int64_t bytes = 0;
  for (const auto& [name, value] : example) bytes += kEach + std::visit(of, value);
  return bytes;
}

// How a batch is computed: at most this many micro-batches, by this many processes.
struct Sharing {
  std::int64_t micro_batches = 1;
  int processes = 1;
};

// Gradient sets that a process holds in the tree of gradients (optim/tree_sum.h).
struct HeldSets {
  std::int64_t waiting = 0;  // at most, while micro-batches run
  std::int64_t roots = 0;    // after the last one
};

HeldSets held_sets(const Sharing& sharing, int rank) {
  const auto left = [](int value, int) { return value; };
  TreeSum<int, decltype(left)> tree(left);
  const data::Share own = data::share_of(sharing.micro_batches, rank, sharing.processes);
  HeldSets held;
  for (std::int64_t leaf = own.begin; leaf < own.end; ++leaf) {
    held.waiting = std::max(held.waiting, std::ssize(tree.roots()));
    tree.push({0, leaf}, 0);
  }
  held.roots = std::ssize(tree.roots());
  return held;
}

// The maximum over all processes.
std::int64_t waiting_sets(const Sharing& sharing) {
  std::int64_t most = 0;
  for (int rank = 0; rank < sharing.processes; ++rank) most = std::max(most, held_sets(sharing, rank).waiting);
  return most;
}

// One gradient of each parameter that has any.
void hold_set(const ParameterSet& parameters, std::vector<Tensor>& held) {
  for (const auto& parameter : parameters.all()) {
    if (parameter->grad) held.push_back(Tensor::empty(parameter->shape, Purpose::gradients));
  }
}

// Parameter elements owned by this rank, of parameters that have gradients.
std::int64_t own_numbers(const ParameterSet& parameters, const Shards& shards, int rank) {
  std::int64_t numbers = 0;
  for (const NumberRange& part : shards.of(rank)) {
    if (parameters.all()[part.parameter]->grad) numbers += part.count;
  }
  return numbers;
}

// The moments kept by the process that owns the most.
std::vector<Tensor> own_moments(const ParameterSet& parameters, const Shards& shards, int processes) {
  std::int64_t most = 0;
  for (int rank = 0; rank < processes; ++rank) most = std::max(most, own_numbers(parameters, shards, rank));
  return {Tensor::empty({most}, Purpose::moments), Tensor::empty({most}, Purpose::moments)};
}

// The peak of the sum over processes in the process that holds the most: its roots, and its share of all others.
void count_sum(const ParameterSet& parameters, const Shards& shards, const Sharing& sharing) {
  if (sharing.processes == 1) return;
  std::int64_t roots = 0, most = 0;
  for (int rank = 0; rank < sharing.processes; ++rank) {
    const std::int64_t own = held_sets(sharing, rank).roots;
    roots += own;
    most = std::max(most, own);
  }
  std::vector<Tensor> held;
  for (std::int64_t root = 0; root < std::max<std::int64_t>(1, most); ++root) hold_set(parameters, held);
  held.push_back(Tensor::empty({(roots - most) * own_numbers(parameters, shards, 0)}, Purpose::gradients));
}

void train_on(TaskModel& model, const MicroBatch& examples, const RunConfig& config) {
  const std::string where = files_text(config.data.train);
  EncoderInput input = model.task->feed(examples, where);
  Tape tape(Recording::on);
  ForwardOptions options;
  options.training = true;
  options.compute = training_compute(config.training);
  HeadOutput logits = model.forward(tape, examples, input, options);
  const std::vector<double> counts(model.task->loss_terms().size(), 1);
  model.task->loss(tape, examples, input, logits, counts);
  tape.backward();
}

// What a task takes that compares the examples of a batch of several micro-batches, each of which has at most as many
// rows as these.
std::int64_t bytes_of_comparing(const Task& task, const std::vector<MicroBatch>& some, const Sharing& sharing) {
  const auto* const comparing = dynamic_cast<const ComparesBatch*>(&task);
  if (comparing == nullptr || !comparing->compares() || sharing.micro_batches == 1) return 0;
  std::int64_t most = 0;
  for (const MicroBatch& micro_batch : some) {
    std::int64_t rows = 0;
    for (const data::LoadedExample& example : micro_batch) rows += comparing->rows_of(example);
    most = std::max(most, rows);
  }
  return comparing->bytes_of_comparing(most * sharing.micro_batches);
}

data::LoaderOptions evaluation_of(const RunConfig& config, const data::DatasetReader& reader) {
  return evaluation_order(evaluation_tokens(*config.model, config.task, reader, kEvaluationTokens));
}

// training: micro-batches as indices of examples; one of them determines the peak.
ProcessMemory forecast(const RunConfig& config, const RunData& data, Device device,
                       const std::vector<std::vector<std::int64_t>>& training_indices, const Sharing& sharing) {
  const std::vector<MicroBatch> training = read_examples(*data.train, training_indices);
  std::vector<MicroBatch> evaluation;
  if (data.eval != nullptr) {
    const auto heaviest =
        data::heaviest_micro_batches(*data.eval, evaluation_of(config, *data.eval), data.eval->size());
    evaluation = read_examples(*data.eval, heaviest.examples);
  }
  ProcessMemory memory;
  if (device == Device::cpu) memory.beside = bytes_beside_buffers() + bytes_of_computing();
  std::int64_t peaks = 0, comparing = 0;
  memory.buffers = count_memory([&] {
    TaskModel model(*config.model, config.task);
    CarriedMemory full(*config.model);
    full.serve(model);
    Tensor of_streams;  // memory left in this step and in the one before
    if (model.memory != nullptr) {
      of_streams = Tensor::empty({2 * CarriedMemory::numbers_of(*config.model, config.training.batch_size)},
                                 Purpose::activations);
    }
    for (const auto& parameter : model.parameters.all()) parameter->allocate();
    train_on(model, training.front(), config);  // after this it is known which parameters have gradients
    const Shards shards(model.parameters, sharing.processes, config.training.bucket_bytes);
    const std::vector<Tensor> moments = config.training.shard_moments && sharing.processes > 1
                                            ? own_moments(model.parameters, shards, sharing.processes)
                                            : moments_without_values(model.parameters);
    count_sum(model.parameters, shards, sharing);
    {
      std::vector<Tensor> waiting;
      for (std::int64_t set = 0; set < waiting_sets(sharing); ++set) hold_set(model.parameters, waiting);
      for (const MicroBatch& examples : training) {
        model.parameters.drop_gradients();
        train_on(model, examples, config);
      }
    }
    model.parameters.drop_gradients();
    comparing = bytes_of_comparing(*model.task, training, sharing);
    for (const MicroBatch& examples : evaluation) {
      EncoderInput input = model.task->feed(examples, files_text(config.data.eval));
      Tape tape(Recording::off);
      const HeadOutput logits = model.forward(tape, examples, input, ForwardOptions{});
      model.task->count_predictions(examples, input, logits);
    }
    peaks = memory_ledger::sum_of_heap_peaks();
  });
  if (device != Device::cpu) return memory;
  memory.beside += peaks - memory.buffers.peak + comparing;
  add_reading(memory, *data.train, training_order(config), training);
  if (data.eval != nullptr) add_reading(memory, *data.eval, evaluation_of(config, *data.eval), evaluation);
  return memory;
}

}  // namespace

std::int64_t bytes_of_computing() {
  // Measured with trainings of the tiny and the small WikiHop model: pages of code, and what malloc's heap loses between
  // small objects; a thread's stack, its working memory and its own heap.
  constexpr std::int64_t kProgram = 4'000'000, kThread = 2'500'000;
  return kProgram + ops::product_library_bytes() + kThread * thread_count();
}

void add_reading(ProcessMemory& memory, const data::DatasetReader& reader, const data::LoaderOptions& order,
                 const std::vector<MicroBatch>& some) {
  // Decompressed blocks of the file that stay cached in buffers of their own.
  const std::int64_t blocks = reader.cache_growth();
  memory.buffers.at_peak[static_cast<std::size_t>(Purpose::data)] += blocks;
  memory.buffers.peak += blocks;
  // For every example its length and its position in the order of the epoch.
  memory.beside += 2 * static_cast<std::int64_t>(sizeof(std::int64_t)) * reader.size();
  // Batches that are queued, the one being read and the one in use. Examples are assumed to be as large per token as
  // `some`.
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  std::int64_t bytes = 0, tokens_of_some = 0;
  for (const MicroBatch& micro_batch : some) {
    for (const data::LoadedExample& example : micro_batch) {
      bytes += bytes_of(example.features);
      tokens_of_some += tokens[static_cast<std::size_t>(example.index)];
    }
  }
  const std::int64_t all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  const std::int64_t mean = std::max<std::int64_t>(1, all / reader.size());
  const std::int64_t of_batch =
      order.batch_tokens > 0 ? std::max<std::int64_t>(1, order.batch_tokens / mean) : order.batch_examples;
  const std::int64_t examples = std::min((order.prefetch_batches + 2) * of_batch, reader.size());
  memory.beside += static_cast<std::int64_t>(
      static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, tokens_of_some)) *
      static_cast<double>(all) / static_cast<double>(reader.size()) * static_cast<double>(examples));
}

std::vector<Tensor> moments_without_values(const ParameterSet& parameters) {
  std::vector<Tensor> moments;
  for (const auto& parameter : parameters.all()) {
    for (int i = 0; i < 2 && parameter->grad; ++i) moments.push_back(Tensor::empty(parameter->shape, Purpose::moments));
  }
  return moments;
}

ProcessMemory forecast_training(const RunConfig& config, const RunData& data, Device device, std::int64_t steps,
                                int processes) {
  const auto heaviest = data::heaviest_micro_batches(*data.train, training_order(config),
                                                     samples_to_look_at(config.training, *data.train, steps));
  return forecast(config, data, device, heaviest.examples, {heaviest.most_of_a_batch, processes});
}

void log_forecast(const RunConfig& config, const RunData& data, Device device, std::int64_t steps, int processes) {
  const ProcessMemory expected = forecast_training(config, data, device, steps, processes);
  log::info("expected peak memory {}", memory_text(expected));
  const std::int64_t machine = memory_capacity(device);
  if (machine <= 0 || expected.peak() <= machine) return;
  log::warn(
      "this is more than the memory of {:.1f} GB (with --memory-limit the program chooses --micro-batch-tokens and "
      "--grad-checkpointing-period that fit)",
      static_cast<double>(machine) / 1e9);
}

ProcessMemory forecast_single_example(const RunConfig& config, const RunData& data, Device device, std::int64_t index) {
  return forecast(config, data, device, {{index}}, {});
}

}  // namespace etc
