#include "tests/golden/golden_run.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"

#include <algorithm>
#include <cmath>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"

namespace etc::test {

namespace {

double seed_loss(const GoldenCase& golden, const char* name, Var& states) {
  const auto weights = golden.file.read<float>(std::string("loss/") + name).values;
  double loss = 0;
  float* gradient = states.grad().data();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    loss += static_cast<double>(weights[i]) * states.value().data()[i];
    gradient[i] = weights[i];
  }
  return loss;
}

// Elements of [B, rows, H] that belong to rows with at least one visible key.
auto counted_rows(const GoldenCase& golden, bool global) {
  const std::int64_t rows = global ? golden.globals : golden.length, hidden = golden.config.hidden_size;
  std::vector<bool> counts;
  for (std::int64_t b = 0; b < golden.batch; ++b) {
    for (std::int64_t i = 0; i < rows; ++i) counts.push_back(!golden.masks.fully_masked(global, b, i));
  }
  return [counts, hidden](std::int64_t i) -> bool { return counts[static_cast<std::size_t>(i / hidden)]; };
}

// In both precisions of the file.
void compare_states(Worst& worst, const GoldenCase& golden, const std::string& name, const Tensor& actual,
                    bool global) {
  const bool embedding = name.find("embedding") != std::string::npos;  // before any mask
  const auto counts = embedding ? std::function<bool(std::int64_t)>() : counted_rows(golden, global);
  compare_output(worst, golden.file, name, actual.data(), actual.size(), counts);
}

// Ours are [N, T, W] and per example [N, queries, keys]; the file has [B, N, queries, columns].
void compare_scores(Worst& worst, const GoldenCase& golden, const std::string& name, const std::string& type,
                    const Tensor& actual) {
  const auto expected = best_reference(golden.file, "", "outputs", name);
  const std::int64_t B = golden.batch, N = golden.config.num_attention_heads;
  const std::int64_t queries = expected.shape.at(2), columns = expected.shape.at(3);
  require_size(golden.file, "outputs/" + name, expected.values.size(), actual.size());
  std::vector<float> arranged(expected.values.size());
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t i = 0; i < queries * columns; ++i) {
        const std::int64_t there = (b * N + n) * queries * columns + i;
        const std::int64_t here = type == "l2l" ? (n * B + b) * queries * columns + i : there;
        arranged[static_cast<std::size_t>(there)] = actual.data()[here];
      }
    }
  }
  worst.compare(name, expected.values, arranged.data(), 1, [&](std::int64_t i) {
    const std::int64_t column = i % columns, query = i / columns % queries, b = i / columns / queries / N;
    return golden.masks.allowed(type, b, query, column);
  });
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

GoldenRun golden_run(const GoldenCase& golden, const EtcConfig& config, bool gradients,
                     std::optional<std::int64_t> only, Device device) {
  if (device == Device::cpu) register_cpu_backend();
  ParameterSet parameters;
  EtcEncoder encoder(config, parameters);
  load_golden_weights(golden.file, "weights", parameters);
  parameters.to(device);
  GoldenRun result;
  ForwardOptions options;
  options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global,
                      const ExternalScores& scores) {
    result.states[layer] = {of_long, of_global};
    for (const auto& [type, values] : scores) {
      if (values) result.scores[layer][type] = values;
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

void GoldenDifference::compare(const GoldenCase& golden, const GoldenRun& run) {
  const GoldenFile& file = golden.file;
  for (const char* name : {"outputs64/long", "outputs64/global"}) {
    if (!file.has(name)) fail(file.path().string(), "{} is absent", name);
  }
  if (file.has("loss") != file.has("grads")) fail(file.path().string(), "expected both loss and grads, or neither");
  // A file may omit the states inside the encoder, but only all of them.
  const bool has_layers = file.has("outputs/layer_0");
  compare_states(outputs, golden, "long", run.long_states, false);
  compare_states(outputs, golden, "global", run.global_states, true);
  for (const auto& [layer, states] : run.states) {
    if (layer >= 0 && !has_layers) continue;
    const std::string prefix = layer < 0 ? "embedding_" : "layer_" + std::to_string(layer) + "/";
    compare_states(outputs, golden, prefix + "long", states.first, false);
    compare_states(outputs, golden, prefix + "global", states.second, true);
    if (layer < 0 || !golden.config.use_residual_attention) continue;
    REQUIRE(run.scores.at(layer).size() == 4);
    for (const auto& [type, values] : run.scores.at(layer)) {
      compare_scores(scores, golden, prefix + "scores_" + type, type, values);
    }
  }
}

void GoldenDifference::compare_attention(const GoldenCase& golden, const LayerStates& states) {
  for (const auto& [layer, of_layer] : states) {
    const std::string prefix = "layer_" + std::to_string(layer) + "/att_";
    compare_states(outputs, golden, prefix + "long", of_layer.first, false);
    compare_states(outputs, golden, prefix + "global", of_layer.second, true);
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
