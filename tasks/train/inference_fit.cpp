#include "tasks/train/inference_fit.h"

#include <algorithm>
#include <numeric>

#include "data/loader/order.h"
#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/random_input.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/forecast.h"
#include "tasks/train/released_model.h"

namespace etc {

namespace {

using Loaded = std::function<void()>;

void allocate(const ParameterSet& parameters) {
  for (const auto& parameter : parameters.all()) parameter->allocate();
}

std::vector<data::LoadedExample> loaded_examples(const data::DatasetReader& reader,
                                                 const std::vector<std::int64_t>& indices) {
  std::vector<data::LoadedExample> examples;
  for (const std::int64_t index : indices) {
    examples.push_back({index, static_cast<std::int64_t>(examples.size()), reader.read(index)});
  }
  return examples;
}

}  // namespace

InferenceFit::InferenceFit(std::string where, std::int64_t limit, Device device, const EncoderConfig& model,
                           InferenceTypes types)
    : where_(std::move(where)),
      limit_(limit),
      device_(device),
      model_(model),
      types_(types),
      held_(memory_ledger::report().total),
      beside_(device == Device::cpu ? bytes_beside_buffers() + bytes_of_computing() : 0) {}

void InferenceFit::hold(std::int64_t bytes) {
  if (device_ == Device::cpu) beside_ += bytes;
}

ProcessMemory InferenceFit::memory(const CountedCall& call) const {
  std::int64_t before = 0, peaks = 0;
  MemoryReport loading;
  ProcessMemory memory;
  memory.buffers = count_memory([&] {
    before = memory_ledger::report().total;
    call([&] {
      loading = memory_ledger::report();
      memory_ledger::reset_peak();
    });
    peaks = memory_ledger::sum_of_heap_peaks();
  });
  memory.beside = beside_;
  if (device_ == Device::cpu) memory.beside += peaks - memory.buffers.peak;
  const std::int64_t computing = memory.buffers.peak + memory.beside - beside_;
  if (loading.peak > computing) {
    memory.buffers = loading;
    memory.beside = beside_;
  }
  // Memory loaded since this object was made is weights, which the call counts, too.
  memory.buffers.peak += held_ - before;
  memory.buffers.at_peak[static_cast<std::size_t>(Purpose::weights)] += held_ - before;
  return memory;
}

bool InferenceFit::fits_all(const data::DatasetReader& reader, std::int64_t micro_batch_tokens,
                            const std::function<CountedCall(Examples)>& call) const {
  const auto heaviest = data::heaviest_micro_batches(reader, evaluation_order(micro_batch_tokens), reader.size());
  return std::all_of(heaviest.examples.begin(), heaviest.examples.end(), [&](const auto& indices) {
    const std::vector<data::LoadedExample> examples = loaded_examples(reader, indices);
    return fits(call(examples));
  });
}

std::int64_t InferenceFit::choose(const data::DatasetReader& reader, std::int64_t most,
                                  const std::function<CountedCall(Examples)>& call) {
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  std::vector<std::int64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto tokens_of = [&](std::int64_t index) { return tokens[static_cast<std::size_t>(index)]; };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tokens_of(a) < tokens_of(b); });
  const std::int64_t longest = tokens_of(order.back());
  if (device_ == Device::cpu) {
    ProcessMemory reading;
    add_reading(reading, reader, evaluation_order(most), {loaded_examples(reader, {order[order.size() / 2]})});
    hold(reading.peak());
  }
  std::vector<std::int64_t> choices;
  for (std::int64_t limit = most; limit > longest; limit /= 2) choices.push_back(limit);
  if (most >= longest) choices.push_back(longest);
  choices.push_back(1);
  for (const std::int64_t choice : choices) {
    if (!fits_all(reader, choice, call)) continue;
    log::info("memory limit {}: {}", byte_size_text(limit_),
              choice == 1 ? "one example at a time" : fmt::format("up to {} tokens at a time", choice));
    return choice;
  }

  const auto taken = [&](std::int64_t index) { return peak(call(loaded_examples(reader, {index}))); };
  const auto longer =
      std::partition_point(order.begin(), order.end(), [&](std::int64_t index) { return taken(index) <= limit_; });
  const std::string limit = byte_size_text(limit_);
  if (longer == order.begin()) {
    fail(where_,
         "the memory limit of {} is too low for this model: the shortest example, of {} tokens, takes {} (take a "
         "smaller model)",
         limit, tokens_of(order.front()), byte_size_text(taken(order.front())));
  }
  fail(
      where_,
      "the memory limit of {} holds examples of up to {} tokens; {} of {} are longer, up to {}, which take {} (prepare "
      "the data with shorter inputs, or take a smaller model)",
      limit, tokens_of(*(longer - 1)), order.end() - longer, order.size(), longest,
      byte_size_text(taken(order.back())));
}

void InferenceFit::refuse(const std::string& what, std::int64_t long_tokens, std::int64_t global_tokens,
                          const CountedCall& call) const {
  const std::int64_t block = std::max<std::int64_t>(1, long_tokens / std::max<std::int64_t>(1, global_tokens));
  std::int64_t good = 0, bad = long_tokens / block + 1;  // blocks
  while (bad - good > 1) {
    const std::int64_t middle = (good + bad) / 2;
    const bool enough = fits([&](const Loaded& loaded) {
      ParameterSet parameters;
      const auto encoder = model_->make_encoder(parameters);
      allocate(parameters);
      encoder->release_kernels(types_);
      loaded();
      const CountedInput counted(*model_, middle * block, block);
      Tape tape(Recording::off);
      encoder->forward(tape, counted.input(), ForwardOptions{});
    });
    (enough ? good : bad) = middle;
  }
  const std::string tokens = model_->has_global_tokens()
                                 ? fmt::format("{} long and {} global tokens", long_tokens, global_tokens)
                                 : fmt::format("{} tokens", long_tokens);
  fail(where_, "{}, of {}, takes {}, more than the memory limit of {}; {}", what, tokens, byte_size_text(peak(call)),
       byte_size_text(limit_),
       good == 0
           ? "the limit is too low for any input of this model (take a smaller one)"
           : fmt::format("an input of about {} long tokens fits (prepare shorter inputs, or take a smaller model)",
                         good * block));
}

CountedCall counted_prediction(const TaskModel& model, InferenceTypes types, Examples examples,
                               const std::string& where) {
  return [&config = model.config, &section = model.task_section, types, examples, where](const Loaded& loaded) {
    TaskModel counted(*config, section);
    allocate(counted.parameters);
    release_kernels(counted, types);
    loaded();
    CarriedMemory memory(*config);
    memory.serve(counted);
    EncoderInput input = counted.task->feed(examples, where);
    Tape tape(Recording::off);
    const HeadOutput logits = counted.forward(tape, examples, input, ForwardOptions{});
    counted.task->count_predictions(examples, input, logits);
  };
}

}  // namespace etc
