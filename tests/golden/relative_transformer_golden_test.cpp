// A dense encoder with ETC's relative positions against the reference's ordinary encoder with relative attention: files
// of kind `relative_transformer`, whose pairs have masks and labels of their own.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"

namespace etc::test {
namespace {

// The file's name of an encoder's parameter, below a group of weights; empty for the embedding stage, which it omits.
std::string name_in_file(const std::string& name) {
  const std::string prefix = "bert/encoder/layer_";
  if (!name.starts_with(prefix)) return "";
  static const std::map<std::string, std::string> kNames = {
      {"attention/self/query/", "attention_layer_*/relative_attention/query_projection/linear/"},
      {"attention/self/key/", "attention_layer_*/relative_attention/key_projection/linear/"},
      {"attention/self/value/", "attention_layer_*/relative_attention/value_projection/linear/"},
      {"attention/self/relative_table",
       "attention_layer_*/relative_attention/qkv_relative_attention/relative_emb_table"},
      {"attention/self/relative_bias_table",
       "attention_layer_*/relative_attention/qkv_relative_attention/relative_bias_table"},
      {"attention/output/dense/", "attention_layer_*/relative_attention/output_projection/"},
      {"attention/output/LayerNorm/", "attention_layer_*/layer_norm/"},
      {"intermediate/dense/", "feed_forward_layer_*/dense_layers/layer_0/"},
      {"output/dense/", "feed_forward_layer_*/dense_layers/layer_1/"},
      {"output/LayerNorm/", "feed_forward_layer_*/layer_norm/"},
  };
  const std::size_t slash = name.find('/', prefix.size());
  const std::string layer = name.substr(prefix.size(), slash - prefix.size()), rest = name.substr(slash + 1);
  for (const auto& [own, other] : kNames) {
    if (!rest.starts_with(own)) continue;
    std::string found = "relative_transformer_layers/" + other + rest.substr(own.size());
    return found.replace(found.find('*'), 1, layer);
  }
  return "";
}

DenseConfig config_of(const GoldenFile& file, const std::string& group) {
  const auto setting = [&](const char* name) { return file.int_attribute(group, name); };
  DenseConfig config;
  config.vocab_size = 2;
  config.max_absolute_position_embeddings = 0;
  config.embedding_layer_norm = false;
  config.final_layer_norm = DenseConfig::Choice::off;
  config.hidden_size = setting("hidden_size");
  config.num_hidden_layers = setting("num_layers");
  config.num_attention_heads = setting("num_heads");
  config.intermediate_size = setting("intermediate_size");
  config.hidden_act = file.string_attribute(group, "hidden_act");
  config.norm = setting("use_pre_activation_order") != 0 ? DenseConfig::Norm::pre_ln : DenseConfig::Norm::post_ln;
  config.relative_positions = DenseConfig::Method::etc;
  config.relative_clip = (setting("relative_vocab_size") - 1) / 2;
  REQUIRE(2 * config.relative_clip + 1 == setting("relative_vocab_size"));
  return config;
}

// One batch of full rows; every pair has the file's label, or is masked.
EncoderInput input_of(const GoldenFile& file, const std::string& group) {
  const auto mask = file.read<std::int32_t>(group + "/inputs/att_mask");
  const auto ids = file.read<std::uint8_t>(group + "/inputs/relative_att_ids").values;
  const std::int64_t B = mask.shape.at(0), L = mask.shape.at(1), W = 2 * L - 1;
  EncoderInput input;
  for (std::int64_t b = 1; b <= B; ++b) input.long_offsets.push_back(b * L);
  input.global_offsets.assign(input.long_offsets.size(), 0);
  input.labels.l2l = Buffer<std::uint8_t>(B * L * W, Purpose::labels);
  std::fill(input.labels.l2l.begin(), input.labels.l2l.end(), sparse::kMasked);
  for (std::int64_t i = 0; i < B * L * L; ++i) {
    const std::int64_t key = i % L, query = i / L % L, row = i / L;
    const auto at = static_cast<std::size_t>(i);
    if (mask.values[at] != 0) input.labels.l2l[row * W + key - query + L - 1] = ids[at];
  }
  return input;
}

struct Figures {
  double outputs = 0, gradients = 0;
};

Figures compare(const GoldenFile& file, const std::string& group) {
  const DenseConfig config = config_of(file, group);
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(1);  // the embedding stage, which is not run
  std::size_t named = 0;
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (name.empty()) continue;
    const auto values = file.read<float>(group + "/weights/" + name);
    REQUIRE(values.shape == parameter->shape);
    std::copy(values.values.begin(), values.values.end(), parameter->value.data());
    ++named;
  }
  REQUIRE(named == data_sets_below(file, group + "/weights").size());

  Worst outputs;
  ForwardOptions options;
  options.watch = [&](std::int64_t layer, const Tensor& states, const Tensor&, const ExternalScores&) {
    if (layer < 0) return;
    const std::string name = "layer_" + std::to_string(layer);
    outputs.compare(name, file.read<double>(group + "/outputs/" + name).values, states.data());
  };
  Tape tape(Recording::on);
  const auto x = file.read<float>(group + "/inputs/x").values;
  const Var in(Tensor::from(x, {std::ssize(x) / config.hidden_size, config.hidden_size}, Purpose::activations), true);
  {
    Var y = encoder.forward_layers(tape, in, input_of(file, group), options);
    outputs.compare("y", best_reference(file, group + "/", "outputs", "y").values, y.value().data());
    const auto weights = file.read<float>(group + "/loss/W").values;
    std::copy(weights.begin(), weights.end(), y.grad().data());
  }
  tape.backward();

  std::map<std::string, std::vector<double>> expected;
  double largest_of_all = 0;
  expected["inputs_x"] = file.read<double>(group + "/grads/inputs_x").values;
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (!name.empty()) expected[parameter->name] = file.read<double>(group + "/grads/weights/" + name).values;
  }
  for (const auto& [name, values] : expected) {
    for (const double value : values) largest_of_all = std::max(largest_of_all, std::fabs(value));
  }
  Worst gradients;
  for (const auto& [name, values] : expected) {
    double largest = 0.01 * largest_of_all;
    for (const double value : values) largest = std::max(largest, std::fabs(value));
    Var of_input = in;
    const Tensor own = name == "inputs_x" ? of_input.grad() : parameters.find(name)->grad;
    REQUIRE(own);
    gradients.compare(name, values, own.data(), largest);
  }
  INFO(outputs.where << " " << gradients.where);
  CHECK(outputs.value <= 1e-5);
  CHECK(gradients.value <= 1e-5);
  return {outputs.value, gradients.value};
}

TEST_CASE("a dense encoder with ETC's labels has the outputs and gradients of the published relative transformer",
          "[golden]") {
  register_cpu_backend();
  GoldenReport report("relative transformer", {"outputs", "gradients"});
  for (const std::filesystem::path& path : model_files("relative_transformer")) {
    const GoldenFile file(path);
    const std::vector<std::string> groups = file.groups();
    CHECK(!groups.empty());
    for (const std::string& group : groups) {
      CAPTURE(path.filename().string(), group);
      const Figures figures = compare(file, group);
      report.row(group, {figures.outputs, figures.gradients});
    }
  }
}

}  // namespace
}  // namespace etc::test
