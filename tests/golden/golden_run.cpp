#include "tests/golden/golden_run.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"

#include <algorithm>
#include <cmath>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "tests/core/tensor_values.h"
#include "tests/support/catch.h"

namespace etc::test {

namespace {

double seed_loss(const GoldenCase& golden, const char* name, Var& states) {
  const auto weights = golden.file.read<float>(std::string("loss/") + name).values;
  REQUIRE(std::ssize(weights) == states.value().size());
  double loss = 0;
  float* gradient = states.grad().data();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    loss += static_cast<double>(weights[i]) * states.value().data()[i];
    gradient[i] = weights[i];
  }
  return loss;
}

// Embeddings come before any mask.
void compare_states(Worst& worst, const GoldenCase& golden, const std::string& name, const Tensor& actual) {
  compare_output(worst, golden.file, name, values_of(actual), counted_rows(golden, name));
}

void compare_scores(Worst& worst, const GoldenCase& golden, std::int64_t layer, const std::string& type,
                    const GoldenRun& run) {
  const std::string name = fmt::format("layer_{}/scores_{}", layer, type);
  require_zero_outside(golden.file, golden.masks, type, "outputs/" + name);
  compare_output(worst, golden.file, name, run.scores.at(layer).at(type), counted_scores(golden, layer, type, run));
}

// Makes layer `layer` of the model return the output of its attention block, on one side: the feed-forward block adds zero.
// If a layer norm follows the block, it gets the gamma and beta of the attention block's norm, which in turn only normalises
// (normalising a second time changes nothing beyond rounding).
void stop_after_attention(ParameterSet& parameters, const EtcConfig& config, std::int64_t layer, bool global) {
  const std::string layers = "etc_document_bert/global_local_transformer_layers/";
  const auto tensor = [&](const std::string& name) -> Tensor& { return parameters.at(layers + name).value; };
  const auto fill = [](Tensor& values, float value) { std::fill_n(values.data(), values.size(), value); };
  const std::string sides[] = {"long_", "global_"};
  const std::string feed_forward =
      fmt::format("{}feed_forward_layer_{}/", config.share_feed_forward_params ? "" : sides[global], layer);
  fill(tensor(feed_forward + "dense_layers/layer_1/kernel"), 0);
  fill(tensor(feed_forward + "dense_layers/layer_1/bias"), 0);
  if (config.use_pre_activation_order) return;
  const std::string norm = fmt::format("fused_att_layer_{}/layer_norm_{}/", layer, global ? 1 : 0);
  for (const std::string part : {"gamma", "beta"}) {
    tensor(feed_forward + "layer_norm/" + part) = tensor(norm + part).clone();
    fill(tensor(norm + part), part == "gamma" ? 1 : 0);
  }
}

bool has_attention_states(const GoldenCase& golden) {
  for (const std::string& name : data_sets_below(golden.file, "outputs")) {
    if (name.ends_with("/att_long") || name.ends_with("/att_global")) return true;
  }
  return false;
}

}  // namespace

std::vector<float> scores_as(ScoreForm form, const std::vector<float>& from, const std::string& type,
                             std::int64_t batch, std::int64_t heads) {
  if (type != "l2l") return from;
  std::vector<float> to(from.size());
  const std::int64_t block = std::ssize(from) / batch / heads;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t n = 0; n < heads; ++n) {
      const std::int64_t file = (b * heads + n) * block, engine = (n * batch + b) * block;
      const bool to_engine = form == ScoreForm::engine;
      std::copy_n(from.begin() + (to_engine ? file : engine), block, to.begin() + (to_engine ? engine : file));
    }
  }
  return to;
}

std::vector<float> running_scores(const GoldenMasks& masks, const sparse::AttentionInputs& read, int key_set,
                                  std::vector<float> before) {
  const std::string type = read.tiles->op->types[key_set].name;
  const std::int64_t N = read.heads, D = read.head_size, queries = masks.queries(type), keys = masks.keys(type);
  const std::int64_t columns = masks.columns(type), count = masks.batch * N * queries * columns;
  const sparse::Rows &q = read.q, &k = read.keys[key_set].k;
  const sparse::RelativeTable& table = read.relative;
  const std::vector<std::int32_t>& ids = masks.ids(type);
  before.resize(static_cast<std::size_t>(count));
  for (std::int64_t at = 0; at < count; ++at) {
    const std::int64_t column = at % columns, query = at / columns % queries, head = at / columns / queries % N;
    const std::int64_t b = at / columns / queries / N, key = masks.key(type, query, column);
    if (key < 0) continue;
    const float* const x = q.data + (b * queries + query) * q.stride + head * D;
    const float* const y = k.data + (b * keys + key) * k.stride + head * D;
    double sum = 0;
    for (std::int64_t i = 0; i < D; ++i) sum += static_cast<double>(x[i]) * y[i];
    if (!ids.empty() && table.labels > 0) {
      const std::int64_t id = ids[static_cast<std::size_t>((b * queries + query) * columns + column)];
      if (id < 0 || id >= table.labels) fail(type, "relative id {}: expected one below {}", id, table.labels);
      if (table.biases != nullptr) sum += table.biases[id * N + head];
      for (std::int64_t i = 0; table.vectors != nullptr && i < D; ++i) {
        sum += static_cast<double>(x[i]) * table.vectors[(id * N + head) * D + i];
      }
    }
    float& score = before[static_cast<std::size_t>(at)];
    score = static_cast<float>(score + sum * sparse::score_scale(read));
  }
  return before;
}

void set_visible(const GoldenMasks& masks, std::int64_t heads, const std::string& type,
                 const std::vector<float>& carried, std::vector<float>& scores) {
  const std::vector<float> values = scores_as(ScoreForm::file, carried, type, masks.batch, heads);
  const std::int64_t columns = masks.columns(type), queries = masks.queries(type);
  scores.resize(values.size());
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    if (!masks.allowed(type, i / columns / queries / heads, i / columns % queries, i % columns)) continue;
    scores[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(i)];
  }
}

void require_zero_outside(const GoldenFile& file, const GoldenMasks& masks, const std::string& type,
                          const std::string& data_set) {
  const std::vector<double> values = file.read<double>(data_set).values;
  const std::int64_t columns = masks.columns(type), queries = masks.queries(type);
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    if (value == 0 || masks.key(type, i / columns % queries, i % columns) >= 0) continue;
    fail(file.path().string(), "{}[{}]: expected 0 outside the sequence, got {}", data_set, i, value);
  }
}

GoldenRun golden_run(const GoldenCase& golden, const EtcConfig& config, bool gradients,
                     std::optional<std::int64_t> only, Device device) {
  if (device == Device::cpu) register_cpu_backend();
  ParameterSet parameters;
  EtcEncoder encoder(config, parameters);
  load_golden_weights(golden.file, "weights", parameters);
  parameters.to(device);
  GoldenRun result;
  ForwardOptions options;
  const GoldenMasks masks = only ? golden.masks.example(*only) : golden.masks;
  result.has_masked_scores = device == Device::cpu && config.use_residual_attention;
  if (result.has_masked_scores) {
    options.attention_watch = [&](const WatchedAttention& watched) {
      for (int set = 0; set < sparse::kKeySets; ++set) {
        const std::string type = watched.inputs.tiles->op->types[set].name;
        std::vector<float> before;
        if (watched.layer > 0) before = result.scores.at(watched.layer - 1).at(type);
        result.scores[watched.layer][type] = running_scores(masks, watched.inputs, set, std::move(before));
      }
    };
  }
  options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global,
                      const ExternalScores& scores) {
    result.states[layer] = {of_long, of_global};
    for (const auto& [type, values] : scores) {
      if (!values) continue;
      set_visible(masks, config.num_attention_heads, type, values_of(values), result.scores[layer][type]);
    }
  };
  Tape tape(gradients ? Recording::on : Recording::off);
  {
    const EncoderInput input = golden.input(only);
    const EncoderStates output = encoder.forward(tape, input, options);
    Var of_long = on_device(tape, output.long_states, Device::cpu),
        of_global = on_device(tape, output.global_states, Device::cpu);
    result.long_states = of_long.value();
    result.global_states = of_global.value();
    if (gradients) result.loss = seed_loss(golden, "W_long", of_long) + seed_loss(golden, "W_global", of_global);
  }
  if (gradients) tape.backward();
  for (const auto& parameter : parameters.all()) {
    if (parameter->grad) result.gradients[parameter->name] = parameter->grad.to(Device::cpu);
  }
  return result;
}

LayerStates attention_states(const GoldenCase& golden) {
  register_cpu_backend();
  LayerStates states;
  if (!has_attention_states(golden)) return states;
  const EncoderInput input = golden.input();
  for (std::int64_t layer = 0; layer < golden.config.num_hidden_layers; ++layer) {
    for (const bool global : {false, true}) {
      ParameterSet parameters;
      EtcEncoder encoder(golden.config, parameters);
      load_golden_weights(golden.file, "weights", parameters);
      stop_after_attention(parameters, golden.config, layer, global);
      ForwardOptions options;
      options.watch = [&](std::int64_t seen, const Tensor& of_long, const Tensor& of_global, const ExternalScores&) {
        if (seen != layer) return;
        (global ? states[layer].second : states[layer].first) = global ? of_global : of_long;
      };
      Tape tape(Recording::off);
      encoder.forward(tape, input, options);
    }
  }
  return states;
}

std::function<bool(std::int64_t)> counted_scores(const GoldenCase& golden, std::int64_t layer, const std::string& type,
                                                 const GoldenRun& run) {
  // Of the states that the layer reads.
  const auto rows = golden.masks.defined_rows(layer);
  return
      [&golden, &run, type, of_queries = rows[type[0] == 'g'], of_keys = rows[type[2] == 'g']](std::int64_t i) -> bool {
        const GoldenMasks& masks = golden.masks;
        const std::int64_t queries = masks.queries(type), columns = masks.columns(type);
        const std::int64_t column = i % columns, query = i / columns % queries,
                           b = i / columns / queries / golden.config.num_attention_heads;
        const std::int64_t key = masks.key(type, query, column);
        if (key < 0 || !(run.has_masked_scores || masks.allowed(type, b, query, column))) return false;
        return of_queries[static_cast<std::size_t>(b * queries + query)] &&
               of_keys[static_cast<std::size_t>(b * masks.keys(type) + key)];
      };
}

void GoldenDifference::compare(const GoldenCase& golden, const GoldenRun& run) {
  const GoldenFile& file = golden.file;
  for (const char* name : {"outputs64/long", "outputs64/global"}) {
    if (!file.has(name)) fail(file.path().string(), "{} is absent", name);
  }
  if (file.has("loss") != file.has("grads")) fail(file.path().string(), "expected both loss and grads, or neither");
  // A file may omit the states inside the encoder, but only all of them.
  const bool has_layers = file.has("outputs/layer_0");
  compare_states(outputs, golden, "long", run.long_states);
  compare_states(outputs, golden, "global", run.global_states);
  for (const auto& [layer, states] : run.states) {
    if (layer >= 0 && !has_layers) continue;
    const std::string prefix = layer < 0 ? "embedding_" : "layer_" + std::to_string(layer) + "/";
    compare_states(outputs, golden, prefix + "long", states.first);
    compare_states(outputs, golden, prefix + "global", states.second);
    if (layer < 0 || !golden.config.use_residual_attention) continue;
    REQUIRE(run.scores.at(layer).size() == 4);
    for (const auto& [type, values] : run.scores.at(layer)) compare_scores(scores, golden, layer, type, run);
  }
}

void GoldenDifference::compare_attention(const GoldenCase& golden, const LayerStates& states) {
  for (const auto& [layer, of_layer] : states) {
    const std::string prefix = "layer_" + std::to_string(layer) + "/att_";
    compare_states(outputs, golden, prefix + "long", of_layer.first);
    compare_states(outputs, golden, prefix + "global", of_layer.second);
  }
}

void GoldenDifference::compare_backward(const GoldenCase& golden, const GoldenRun& run) {
  compare_loss(golden.file, run.loss);
  NamedNumbers actual;
  for (const auto& [name, gradient] : run.gradients) {
    actual[name] = {gradient.data(), gradient.data() + gradient.size()};
  }
  compare_gradients(golden.file, actual);
}

std::vector<std::optional<double>> GoldenDifference::figures(const GoldenCase& golden) const {
  return ModelDifference::figures(golden.config.use_residual_attention, golden.file.has("grads"));
}

}  // namespace etc::test
