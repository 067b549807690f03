#include "tasks/analyze/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <memory>

#include "data/loader/order.h"
#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/process_memory.h"
#include "etc_core/nn/attention_analysis.h"
#include "etc_core/nn/count_memory.h"
#include "tasks/analyze/member_labels.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/run_config.h"

namespace etc::analyze {

namespace {

constexpr const char* kMemoryOf = "etc analyze";
using Batch = std::vector<data::LoadedExample>;

Batch batch_of(const data::DatasetReader& reader, const std::vector<std::int64_t>& indices) {
  Batch batch;
  for (const std::int64_t index : indices) batch.push_back({index, index, reader.read(index)});
  return batch;
}

// Queries of a batch by operator (long, global), and by group.
struct QueryCounts {
  std::array<std::vector<std::int64_t>, 2> of_groups;
};

QueryCounts queries_of(const FedEncoder& fed, const AnalysisRequest& request, Examples examples) {
  QueryCounts counts;
  count_memory([&] {
    const EncoderInput input = fed.task().feed(examples, fed.where());
    const TaskTokens tokens = TaskTokens::of(fed.reader()->info());
    const std::vector<std::uint8_t> bits[2] = {groups_of_long(tokens, request.groups, input),
                                               groups_of_global(tokens, request.groups, input)};
    for (std::size_t op = 0; op < 2; ++op) {
      counts.of_groups[op].resize(request.groups.size());
      for (const std::uint8_t own : bits[op]) {
        for (std::size_t g = 0; g < request.groups.size(); ++g) counts.of_groups[op][g] += own >> g & 1;
      }
    }
  });
  return counts;
}

// Whether an operator of the model has values of a quantity: OperatorResults::takes before results exist.
bool taken_of(const EncoderConfig& model, const AnalysisRequest& request, Quantity quantity) {
  if (quantity == Quantity::jsd_distance) return request.jsd_distance;
  const std::string name = info_of(quantity).name;
  const bool of_type = name.find('%') != std::string::npos && quantity != Quantity::distance_0;
  return model.has_global_tokens() || !of_type;
}

// The distributions of one quantity and head: every group has one, but only those with queries have bins.
std::int64_t bytes_of_cells(const AnalysisRequest& request, const std::vector<std::int64_t>& queries, bool bins) {
  std::int64_t bytes = 0;
  for (const std::int64_t count : queries) {
    bytes += static_cast<std::int64_t>(sizeof(Distribution));
    if (count == 0) continue;
    if (bins) bytes += kBins * static_cast<std::int64_t>(sizeof(std::uint32_t));
    const std::int64_t kept = std::min(count, Distribution::kKept);
    // A growing vector has up to twice the capacity.
    if (request.exact)
      bytes += static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(kept)) * sizeof(float));
  }
  return bytes;
}

// The number of sums of probabilities by distance, 8 bytes each. While the files are written, each also takes kWrittenBytes
// for its mean and its line of text.
std::int64_t distance_sums(const EncoderConfig& model, const AnalysisRequest& request, std::int64_t longest) {
  const std::int64_t operators = model.has_global_tokens() ? 2 : 1;
  return operators * model.num_hidden_layers * model.num_attention_heads * std::ssize(request.groups) *
         (2 * reach_of(model, request, longest) + 1);
}
constexpr std::int64_t kWrittenBytes = 112;

// The distributions of every quantity, operator, layer, head and group; the sums by label are negligible.
// times: number of batches like the counted one.
std::int64_t bytes_of_results(const EncoderConfig& model, const AnalysisRequest& request, const QueryCounts& counts,
                              double times) {
  const std::int64_t heads = model.num_attention_heads, layers = model.num_hidden_layers;
  constexpr std::int64_t kPair = kBins * sizeof(std::uint32_t) + sizeof(Distribution);
  std::int64_t bytes = 0;
  for (std::size_t op = 0; op < (model.has_global_tokens() ? 2 : 1); ++op) {
    std::vector<std::int64_t> queries = counts.of_groups[op];
    for (std::int64_t& count : queries) count = static_cast<std::int64_t>(static_cast<double>(count) * times);
    const std::vector<std::int64_t> none(queries.size());
    for (int n = 0; n < kQuantityCount; ++n) {
      const auto quantity = static_cast<Quantity>(n);
      const bool bins = info_of(quantity).range != QuantityInfo::Range::open;
      bytes += layers * heads * bytes_of_cells(request, taken_of(model, request, quantity) ? queries : none, bins);
    }
    if (request.all_heads) bytes += layers * heads * heads * kPair;
  }
  return bytes;
}

// Counts the memory of a layer's statistics during its batch, and the data kept from the layer before.
class CountedWatch {
 public:
  CountedWatch(const AnalysisRequest& request) : request_(request) {}

  void operator()(const WatchedAttention& watched) {
    const std::int64_t queries = watched.inputs.q.rows, heads = watched.inputs.heads;
    const std::int64_t of_statistics = heads * queries * sparse::kQueryStatistics * std::int64_t{sizeof(double)};
    const std::int64_t of_pairs = request_.all_heads ? heads * heads * queries * std::int64_t{sizeof(double)} : 0;
    const Bytes statistics((request_.all_heads ? 2 : 1) * of_statistics + of_pairs, Purpose::activations);
    before_[watched.inputs.tiles->op] = watched;
  }

 private:
  const AnalysisRequest& request_;
  std::map<const sparse::AttentionOperator*, WatchedAttention> before_;
};

// A pass of the encoder without values, with a callback for its attention.
CountedCall counted_pass(const FedEncoder& fed, Examples examples, std::function<void(const WatchedAttention&)> watch) {
  return [&fed, examples, watch = std::move(watch)](const std::function<void()>& loaded) {
    const EncoderConfig& model = fed.model();
    const auto task = feeding_task(fed.document(), model, fed.reader()->schema().task, kMemoryOf);
    ParameterSet parameters;
    const auto encoder = model.make_encoder(parameters);
    if (has_task(fed.document())) task->add_parameters(parameters);
    for (const auto& parameter : parameters.all()) parameter->allocate();
    encoder->release_kernels(ComputeType::fp32);
    loaded();
    Tape tape(Recording::off);
    EncoderInput input = task->feed(examples, kMemoryOf);
    if (has_task(fed.document())) task->add_to_embeddings(tape, examples, input);
    ForwardOptions options;
    options.attention_watch = watch;
    encoder->forward(tape, input, options);
  };
}

CountedCall counted_analysis(const FedEncoder& fed, const AnalysisRequest& request, Examples examples) {
  const auto watch = std::make_shared<CountedWatch>(request);
  return [&fed, examples, pass = counted_pass(fed, examples, [watch](const WatchedAttention& watched) {
                            (*watch)(watched);
                          })](const std::function<void()>& loaded) {
    MemberLabels members(fed);
    pass([&] {
      loaded();
      if (members.needed()) members.read(examples);
    });
  };
}

// The pass for the probabilities between the first tokens.
CountedCall counted_first_tokens(const FedEncoder& fed, const Batch& alone) {
  return counted_pass(fed, alone, [](const WatchedAttention& watched) {
    if (watched.layer != 0) return;
    const std::int64_t queries = watched.inputs.q.rows, heads = watched.inputs.heads;
    const std::int64_t of_statistics = heads * queries * sparse::kQueryStatistics * std::int64_t{sizeof(double)};
    const Bytes held(of_statistics + first_tokens_bytes(heads), Purpose::activations);
  });
}

// Weights, gradients and the saved data for the backward pass of one example.
CountedCall counted_gradients(const FedEncoder& fed, const Batch& alone) {
  return [&fed, &alone](const std::function<void()>& loaded) {
    Json complete = default_config(fed.reader()->schema().task);
    overlay_config(complete, Json{{"task", fed.document().at("task")}}, "the model's config.json");
    TaskModel model(fed.model(), complete["task"]);
    for (const auto& parameter : model.parameters.all()) parameter->allocate();
    loaded();
    const std::vector<double> counts(model.task->loss_terms().size(), 1.0);
    add_gradient(model, alone, counts, kMemoryOf);
  };
}

// Upper bound of the kernel's working memory, which the counted pass does not include: for each thread, the keys of two
// layers and a few numbers per key for a group of 16 queries.
std::int64_t bytes_of_kernel(const EncoderConfig& model, std::int64_t longest) {
  const std::int64_t of_key = 4 * model.head_size() + 6 * sparse::kGroup;
  return thread_count() * longest * of_key * std::int64_t{sizeof(float)};
}

InferenceFit fit_of(const FedEncoder& fed, std::int64_t limit) {
  return {kMemoryOf, limit, Device::cpu, fed.model(), ComputeType::fp32};
}

// The heaviest batches, by tokens and by pairs of tokens.
std::vector<std::vector<std::int64_t>> heaviest_of(const std::vector<std::vector<std::int64_t>>& batches,
                                                   const std::vector<std::int64_t>& tokens) {
  const auto weight = [&](const std::vector<std::int64_t>& batch, bool pairs) {
    double sum = 0;
    for (const std::int64_t index : batch) {
      const auto own = static_cast<double>(tokens[static_cast<std::size_t>(index)]);
      sum += pairs ? own * own : own;
    }
    return sum;
  };
  std::vector<std::vector<std::int64_t>> heaviest;
  for (const bool pairs : {false, true}) {
    heaviest.push_back(*std::max_element(batches.begin(), batches.end(), [&](const auto& a, const auto& b) {
      return weight(a, pairs) < weight(b, pairs);
    }));
  }
  if (heaviest[0] == heaviest[1]) heaviest.pop_back();
  return heaviest;
}

std::int64_t longest_of(const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& chosen) {
  std::int64_t longest = 1;
  for (const std::int64_t index : chosen) longest = std::max(longest, tokens[static_cast<std::size_t>(index)]);
  return longest;
}

// The memory of the final results of an analysis of the chosen examples, extrapolated from one batch.
std::int64_t held_results(const FedEncoder& fed, const AnalysisRequest& request, const Batch& batch,
                          const std::vector<std::int64_t>& chosen) {
  const std::vector<std::int64_t> tokens = data::token_counts(*fed.reader());
  double all = 0, own = 0;
  for (const std::int64_t index : chosen) all += static_cast<double>(tokens[static_cast<std::size_t>(index)]);
  for (const data::LoadedExample& example : batch)
    own += static_cast<double>(tokens[static_cast<std::size_t>(example.index)]);
  return bytes_of_results(fed.model(), request, queries_of(fed, request, batch), all / std::max(1.0, own)) +
         8 * distance_sums(fed.model(), request, longest_of(tokens, chosen));
}

// For request.micro_batch_tokens at a time.
ExpectedMemory expected_memory(const FedEncoder& fed, const AnalysisRequest& request) {
  const data::DatasetReader& reader = *fed.reader();
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  const std::vector<std::int64_t> chosen = drawn_examples(reader.size(), request.examples, request.seed);
  const auto taken = [&](std::int64_t index) { return tokens[static_cast<std::size_t>(index)]; };
  const auto shorter = [&](std::int64_t a, std::int64_t b) { return taken(a) < taken(b); };
  InferenceFit fit = fit_of(fed, std::numeric_limits<std::int64_t>::max());
  ExpectedMemory expected;
  std::int64_t most = 0;
  for (const auto& indices : heaviest_of(micro_batches_of(tokens, chosen, request.micro_batch_tokens), tokens)) {
    const Batch batch = batch_of(reader, indices);
    const std::int64_t longest = taken(*std::max_element(indices.begin(), indices.end(), shorter));
    expected.results = std::max(expected.results, held_results(fed, request, batch, chosen));
    most = std::max(most, fit.peak(counted_analysis(fed, request, batch)) + bytes_of_kernel(fed.model(), longest));
  }
  const Batch first = batch_of(reader, {chosen.front()});
  most = std::max(most, fit.peak(counted_first_tokens(fed, first)));
  if (request.gradients > 0) {
    const auto end = chosen.begin() + std::min<std::ptrdiff_t>(std::ssize(chosen), request.gradients);
    const Batch longest = batch_of(reader, {*std::max_element(chosen.begin(), end, shorter)});
    most = std::max(most, fit.peak(counted_gradients(fed, longest)));
  }
  const std::int64_t written = kWrittenBytes * distance_sums(fed.model(), request, longest_of(tokens, chosen));
  expected.peak = std::max(most, bytes_beside_buffers() + written) + expected.results;
  return expected;
}

// The number of tokens at a time.
std::int64_t fitting_tokens(const FedEncoder& fed, const AnalysisRequest& request, std::int64_t held) {
  const data::DatasetReader& reader = *fed.reader();
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  const auto longest = std::max_element(tokens.begin(), tokens.end());
  const Batch most = batch_of(reader, {longest - tokens.begin()});
  InferenceFit fit = fit_of(fed, request.memory_limit);
  const std::vector<std::int64_t> chosen = drawn_examples(reader.size(), request.examples, request.seed);
  fit.hold(held + held_results(fed, request, most, chosen) + bytes_of_kernel(fed.model(), *longest));
  const std::int64_t chosen_tokens = fit.choose(
      reader, request.micro_batch_tokens, [&](Examples examples) { return counted_analysis(fed, request, examples); });
  // Memory that does not depend on the number of tokens at a time.
  const auto require = [&](const char* what, const CountedCall& call) {
    const std::int64_t peak = fit.peak(call);
    if (peak <= request.memory_limit) return;
    fail(kMemoryOf, "the memory limit of {} is too low: {} of an example of {} tokens takes {}",
         byte_size_text(request.memory_limit), what, *longest, byte_size_text(peak));
  };
  const std::int64_t written = kWrittenBytes * distance_sums(fed.model(), request, longest_of(tokens, chosen));
  if (held + bytes_beside_buffers() + written > request.memory_limit) {
    fail(kMemoryOf, "the memory limit of {} is too low: the tables of {} distances take {} (take a smaller --reach)",
         byte_size_text(request.memory_limit), reach_of(fed.model(), request, longest_of(tokens, chosen)),
         byte_size_text(written));
  }
  require("the first layer's picture", counted_first_tokens(fed, most));
  if (request.gradients > 0) require("the gradient (--gradients)", counted_gradients(fed, most));
  return chosen_tokens;
}

}  // namespace

ExpectedMemory fit_memory(OpenedAnalysis& opened, std::int64_t held) {
  if (opened.request.memory_limit > 0) {
    opened.request.micro_batch_tokens = fitting_tokens(*opened.fed, opened.request, held);
  }
  ExpectedMemory expected = expected_memory(*opened.fed, opened.request);
  expected.peak += held;
  return expected;
}

}  // namespace etc::analyze
