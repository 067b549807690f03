#include "tasks/analyze/model_analysis.h"

#include <algorithm>
#include <utility>

#include "data/dataset_info.h"
#include "data/loader/order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "etc_core/base/random.h"
#include "sparse/etc_attention.h"
#include "sparse/labels/relative_ids.h"
#include "tasks/analyze/member_labels.h"
#include "tasks/analyze/visible_keys.h"
#include "tasks/train/model.h"
#include "tasks/train/stop_signal.h"

namespace etc::analyze {

namespace {

constexpr const char* kWhere = "etc analyze";
constexpr std::int64_t kFullReach = 128;  // for attention without a window

// Accumulates the results of a model batch by batch.
class Collector {
 public:
  Collector(const FedEncoder& fed, const AnalysisRequest& request)
      : fed_(fed), request_(request), tokens_(TaskTokens::of(fed.reader()->info())), members_(fed) {
    const EncoderConfig& model = fed.model();
    const Json config = model.to_json();
    radius_ = config.value("local_radius", std::int64_t{0});
    const std::int64_t labels = config.value("relative_pos_max_distance", std::int64_t{0});
    if (members_.needed()) member_label_ = MemberLabels::member_label();
    if (model.has_global_tokens() && labels > 0) {
      member_label_ = sparse::member_id(labels);
      etc_distance_ = labels;
    }
  }

  void set_lengths(std::int64_t most_long, std::int64_t most_global) {
    const std::int64_t window = radius_ > 0 ? std::min(most_long, 2 * radius_ + 1) : most_long;
    most_keys_[0] = static_cast<double>(window + most_global);
    most_keys_[1] = static_cast<double>(most_long + most_global);
    reach_ = reach_of(fed_.model(), request_, most_long);
  }

  void add(Examples examples) {
    Tape tape(Recording::off);
    const EncoderInput input = fed_.feed(tape, examples);
    if (members_.needed()) members_.read(examples);
    AnalysisSettings settings;
    const std::vector<std::uint8_t> of_long = groups_of_long(tokens_, request_.groups, input);
    const std::vector<std::uint8_t> of_global = groups_of_global(tokens_, request_.groups, input);
    const auto is_global = [](const sparse::AttentionOperator* op) { return op == &sparse::kGlobalAttention; };
    std::vector<std::int64_t> numbers;
    for (const data::LoadedExample& example : examples) numbers.push_back(example.index);
    settings.groups_of = [&](const sparse::AttentionOperator* op) {
      return QueryGroups{static_cast<int>(request_.groups.size()), is_global(op) ? of_global : of_long};
    };
    settings.member_label = member_label_;
    settings.reach = reach_;
    settings.all_heads = request_.all_heads;
    std::vector<std::int32_t> visible_1[2];  // of long and global queries
    AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
      const bool global = is_global(of.op);
      const BatchQueries from{global ? input.global_offsets : input.long_offsets, global ? of_global : of_long, numbers,
                              visible_1[global ? 1 : 0]};
      OperatorResults& results = results_of(of, global);
      if (of.layer == 0) results.add_queries(from);
      results.add(of, from);
    });
    ForwardOptions options;
    const bool first = operators_.empty();
    options.attention_watch = [&](const WatchedAttention& watched) {
      if (first && watched.layer == 0) keep_tables(watched);
      const sparse::AttentionTiles& tiles = *watched.inputs.tiles;
      if (watched.layer == 0 && fed_.model().has_global_tokens()) {  // the other layers have the same tiles
        visible_1[is_global(tiles.op) ? 1 : 0] = visible_keys(tiles.types[1]);
      }
      analysis(members_.needed() ? members_.labelled(watched) : watched);
    };
    fed_.encoder().forward(tape, input, options);
  }

  std::vector<RelativeTableValues> take_tables() { return std::move(tables_); }
  std::vector<OperatorResults> take() { return std::move(operators_); }

 private:
  void keep_tables(const WatchedAttention& watched) {
    for (RelativeTableValues& table : relative_tables_of(watched, etc_distance_)) tables_.push_back(std::move(table));
  }

  OperatorResults& results_of(const LayerStatistics& of, bool global) {
    const std::string name = short_name(*of.op);
    for (OperatorResults& known : operators_) {
      if (known.name == name) return known;
    }
    const ResultOptions options{reach_, most_keys_[global ? 1 : 0], request_.exact, request_.jsd_distance,
                                !members_.needed()};
    return operators_.emplace_back(of, fed_.model().num_hidden_layers, options);
  }

  const FedEncoder& fed_;
  const AnalysisRequest& request_;
  TaskTokens tokens_;
  MemberLabels members_;
  std::int64_t radius_ = 0, reach_ = 0, member_label_ = -1, etc_distance_ = 0;
  double most_keys_[2] = {2, 2};  // maximum number of keys of long and global queries
  std::vector<OperatorResults> operators_;
  std::vector<RelativeTableValues> tables_;  // first layer
};

}  // namespace

std::vector<std::int64_t> drawn_examples(std::int64_t size, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::vector<std::uint64_t> keys;
  for (std::int64_t i = 0; i < size; ++i) {
    all[static_cast<std::size_t>(i)] = i;
    keys.push_back(mix_key(seed, static_cast<std::uint64_t>(i)));
  }
  if (count >= size) return all;
  // The examples with the smallest keys, where a key is a function of seed and index alone.
  std::sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) {
    const auto key = [&](std::int64_t i) { return std::pair(keys[static_cast<std::size_t>(i)], i); };
    return key(a) < key(b);
  });
  all.resize(static_cast<std::size_t>(count));
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::vector<std::int64_t>> micro_batches_of(const std::vector<std::int64_t>& tokens,
                                                        const std::vector<std::int64_t>& chosen, std::int64_t limit) {
  std::vector<std::int64_t> own;
  for (const std::int64_t index : chosen) own.push_back(tokens[static_cast<std::size_t>(index)]);
  std::vector<std::vector<std::int64_t>> batches;
  auto at = chosen.begin();
  for (const std::int64_t size : data::cut_micro_batches(own, limit)) {
    batches.emplace_back(at, at + size);
    at += size;
  }
  return batches;
}

namespace {

// The description of the model itself.
ModelAnalysis described(const OpenedAnalysis& opened) {
  const FedEncoder& fed = *opened.fed;
  ModelAnalysis result;
  result.folder = opened.folder;
  result.task = fed.reader()->info().task;
  result.data = opened.request.data;
  result.residual = residual_text(fed.model());
  result.layers = fed.model().num_hidden_layers;
  result.heads = fed.model().num_attention_heads;
  result.examples_asked = opened.request.examples;
  for (const QueryGroup group : opened.request.groups) {
    result.groups.push_back(query_group_names()[static_cast<std::size_t>(group)]);
  }
  return result;
}

FirstTokens first_tokens(const FedEncoder& fed, std::int64_t index) {
  const std::vector<data::LoadedExample> alone{{index, index, fed.reader()->read(index)}};
  Tape tape(Recording::off);
  const EncoderInput input = fed.feed(tape, alone);
  return first_tokens_of(fed.encoder(), tape, input);
}

ModelAnalysis attention_results(const OpenedAnalysis& opened) {
  FedEncoder& fed = *opened.fed;
  const AnalysisRequest& request = opened.request;
  fed.load(Device::cpu, ComputeType::fp32);
  const data::DatasetReader& reader = *fed.reader();
  const std::vector<std::int64_t> chosen = drawn_examples(reader.size(), request.examples, request.seed);
  if (std::ssize(chosen) < request.examples) {
    log::info("{}: {} examples asked for, the data have {}: all are used", kWhere, request.examples, reader.size());
  }
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  const auto lengths = reader.lengths(reader.schema().long_align);
  std::int64_t most_long = 1;
  for (const std::int64_t index : chosen) most_long = std::max(most_long, lengths[static_cast<std::size_t>(index)]);
  Collector collector(fed, request);
  // Global tokens never outnumber the long tokens.
  collector.set_lengths(most_long, fed.model().has_global_tokens() ? most_long : 0);
  ModelAnalysis result = described(opened);
  Progress progress("analyze " + opened.folder.string(), std::ssize(chosen), "examples");
  for (const std::vector<std::int64_t>& indices : micro_batches_of(tokens, chosen, request.micro_batch_tokens)) {
    if (StopSignal::requested()) throw Interrupted("etc analyze: stopped before the end; no file was written");
    std::vector<data::LoadedExample> batch;
    for (const std::int64_t index : indices) {
      batch.push_back({index, index, reader.read(index)});
      result.tokens += tokens[static_cast<std::size_t>(index)];
    }
    collector.add(batch);
    progress.update(result.examples += std::ssize(batch));
  }
  progress.finish();
  result.operators = collector.take();
  result.first_layer = collector.take_tables();
  if (!chosen.empty()) result.first_tokens = first_tokens(fed, chosen.front());
  result.tables = table_norms_of(fed.model(), fed.parameters());
  return result;
}

// The examples whose loss --gradients is about.
std::vector<std::int64_t> gradient_examples(const data::DatasetReader& reader, const AnalysisRequest& request) {
  std::vector<std::int64_t> chosen = drawn_examples(reader.size(), request.examples, request.seed);
  chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(request.gradients)));
  return chosen;
}

}  // namespace

std::int64_t reach_of(const EncoderConfig& model, const AnalysisRequest& request, std::int64_t longest) {
  if (request.reach > 0) return std::min(request.reach, std::max<std::int64_t>(1, longest - 1));
  const std::int64_t radius = model.to_json().value("local_radius", std::int64_t{0});
  return radius > 0 ? radius : kFullReach;
}

OpenedAnalysis open_analysis(const std::filesystem::path& folder, const AnalysisRequest& request) {
  OpenedAnalysis opened{folder, request, std::make_unique<FedEncoder>(request.data, folder, request.allow_incomplete)};
  const FedEncoder& fed = *opened.fed;
  if (fed.model().to_json().value("attention", std::string()) == "performer") {
    fail(kWhere, "this model's attention is linear: it has no probabilities to look at");
  }
  if (request.gradients == 0) return opened;
  const LoadedModel model = open_model(folder);
  loss_counts(*model.model->task, *fed.reader(), gradient_examples(*fed.reader(), request), fed.where());
  return opened;
}

ModelAnalysis analyse(OpenedAnalysis opened) {
  const StopSignal stop_signal;
  ModelAnalysis result = attention_results(opened);
  if (opened.request.gradients == 0) return result;
  const auto reader = opened.fed->reader();
  const std::string where = opened.fed->where();
  // The model is loaded again, because the one that ran before has packed weights.
  opened.fed.reset();
  const LoadedModel loaded = load_model(opened.folder);
  result.gradients = gradient_norms_of(*loaded.model, *reader, gradient_examples(*reader, opened.request), where);
  return result;
}

}  // namespace etc::analyze
