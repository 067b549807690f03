#include "tasks/analyze/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "data/loader/order.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/attention_analysis.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/inference_fit.h"

namespace etc::analyze {

namespace {

constexpr const char* kMemoryOf = "etc analyze";

// The distributions: of every quantity, operator, layer, head and group; sums by label and distance beside them are small.
std::int64_t bytes_of_results(const EncoderConfig& model, const AnalysisRequest& request) {
  const std::int64_t operators = model.has_global_tokens() ? 2 : 1, heads = model.num_attention_heads;
  const auto groups = std::max<std::int64_t>(1, std::ssize(request.groups));
  const std::int64_t of_bins = kBins * sizeof(std::uint32_t) + sizeof(Distribution);
  const std::int64_t of_cell = of_bins + (request.exact ? Distribution::kKept * sizeof(float) : 0);
  const std::int64_t cells = operators * model.num_hidden_layers * heads;
  return cells * (kQuantityCount * groups * of_cell + (request.all_heads ? heads * of_bins : 0));
}

// What the statistics of a layer take while its batch is there, and what is kept of the layer before.
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

CountedCall counted_analysis(const FedEncoder& fed, const AnalysisRequest& request, Examples examples) {
  return [&fed, &request, examples](const std::function<void()>& loaded) {
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
    CountedWatch watch(request);
    ForwardOptions options;
    options.attention_watch = std::ref(watch);
    encoder->forward(tape, input, options);
  };
}

// The kernel's working memory, which has no counting twin: of each thread keys of two layers, and a few numbers of 16
// queries for each, at most.
std::int64_t bytes_of_kernel(const EncoderConfig& model, std::int64_t longest) {
  const std::int64_t of_key = 4 * model.head_size() + 6 * sparse::kGroup;
  return thread_count() * longest * of_key * std::int64_t{sizeof(float)};
}

InferenceFit fit_of(const FedEncoder& fed, const AnalysisRequest& request, std::int64_t limit) {
  InferenceFit fit(kMemoryOf, limit, Device::cpu, fed.model(), ComputeType::fp32);
  const std::vector<std::int64_t> tokens = data::token_counts(*fed.reader());
  const std::int64_t longest = *std::max_element(tokens.begin(), tokens.end());
  fit.hold(bytes_of_results(fed.model(), request) + bytes_of_kernel(fed.model(), longest) +
           first_tokens_bytes(fed.model().num_attention_heads, longest));
  return fit;
}

}  // namespace

std::int64_t expected_memory(const FedEncoder& fed, const AnalysisRequest& request) {
  const InferenceFit fit = fit_of(fed, request, std::numeric_limits<std::int64_t>::max());
  const data::DatasetReader& reader = *fed.reader();
  std::int64_t most = 0;
  for (const auto& indices :
       data::heaviest_micro_batches(reader, evaluation_order(request.micro_batch_tokens), reader.size()).examples) {
    std::vector<data::LoadedExample> examples;
    for (const std::int64_t index : indices) examples.push_back({index, index, reader.read(index)});
    most = std::max(most, fit.peak(counted_analysis(fed, request, examples)));
  }
  return most;
}

std::int64_t fitting_tokens(const FedEncoder& fed, const AnalysisRequest& request) {
  InferenceFit fit = fit_of(fed, request, request.memory_limit);
  return fit.choose(*fed.reader(), request.micro_batch_tokens,
                    [&](Examples examples) { return counted_analysis(fed, request, examples); });
}

}  // namespace etc::analyze
