// Dense encoders against dense_reference.h5, group `encoder`.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/nn/carried_attention.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/support/worst.h"

namespace etc::test {
namespace {

// The file's README: float32, outputs of several layers and gradients.
constexpr double kAbsolute = 1e-4, kRelative = 1e-4;

struct Difference {
  double worst = 0;  // in units of the tolerance
  std::string where;

  void compare(const std::string& name, const std::vector<double>& expected, const std::vector<float>& actual) {
    const double of_name = worst_difference(expected, actual, kAbsolute, kRelative);
    if (of_name <= worst) return;
    worst = of_name;
    where = name;
  }
};

// Labels by distance of one sequence from its mask [n, n].
Buffer<std::uint8_t> labels_of(const std::vector<std::int32_t>& mask, std::int64_t n) {
  const std::int64_t window = 2 * n - 1;
  Buffer<std::uint8_t> labels(n * window, Purpose::labels);
  std::fill(labels.begin(), labels.end(), sparse::kMasked);
  for (std::int64_t i = 0; i < n * n; ++i) {
    if (mask[static_cast<std::size_t>(i)] != 0) labels[i / n * window + i % n - i / n + n - 1] = 0;
  }
  return labels;
}

// The file's name of a parameter: "l0.Wq", "final.gamma"; empty for the embedding stage, which the file omits.
std::string name_in_file(const std::string& name) {
  if (name == "bert/encoder/final/LayerNorm/gamma") return "final.gamma";
  if (name == "bert/encoder/final/LayerNorm/beta") return "final.beta";
  const std::string prefix = "bert/encoder/layer_";
  if (!name.starts_with(prefix)) return "";
  static const std::map<std::string, std::string> kNames = {{"attention/self/query/kernel", "Wq"},
                                                            {"attention/self/query/bias", "bq"},
                                                            {"attention/self/key/kernel", "Wk"},
                                                            {"attention/self/key/bias", "bk"},
                                                            {"attention/self/value/kernel", "Wv"},
                                                            {"attention/self/value/bias", "bv"},
                                                            {"attention/output/dense/kernel", "Wo"},
                                                            {"attention/output/dense/bias", "bo"},
                                                            {"attention/output/LayerNorm/gamma", "ln1.gamma"},
                                                            {"attention/output/LayerNorm/beta", "ln1.beta"},
                                                            {"rezero_alpha", "alpha"},
                                                            {"intermediate/dense/kernel", "W1"},
                                                            {"intermediate/dense/bias", "b1"},
                                                            {"output/dense/kernel", "W2"},
                                                            {"output/dense/bias", "b2"},
                                                            {"output/LayerNorm/gamma", "ln2.gamma"},
                                                            {"output/LayerNorm/beta", "ln2.beta"}};
  const std::size_t slash = name.find('/', prefix.size());
  return "l" + name.substr(prefix.size(), slash - prefix.size()) + "." + kNames.at(name.substr(slash + 1));
}

struct EncoderGroup {
  const GoldenFile& file;
  std::string variant;

  std::string text(const char* attribute) const { return file.string_attribute("encoder/" + variant, attribute); }
  std::vector<double> numbers(const std::string& name) const { return file.read<double>("encoder/" + name).values; }
};

DenseConfig config_of(const EncoderGroup& group) {
  const auto setting = [&](const char* name) { return group.file.int_attribute("encoder", name); };
  DenseConfig config;
  config.vocab_size = 2;
  config.max_absolute_position_embeddings = 0;
  config.embedding_layer_norm = false;
  config.hidden_size = setting("hidden");
  config.num_hidden_layers = setting("layers");
  config.num_attention_heads = setting("heads");
  config.intermediate_size = setting("inner");
  static const std::map<std::string, std::string> kActivations = {
      {"gelu_tanh", "gelu"}, {"gelu_erf", "gelu_erf"}, {"relu", "relu"}, {"tanh", "tanh"}, {"linear", "linear"}};
  config.hidden_act = kActivations.at(group.file.string_attribute("encoder", "activation"));
  config.layer_norm_epsilon = group.file.real_attribute("encoder", "layer_norm_eps");
  static const std::map<std::string, DenseConfig::Norm> kNorms = {
      {"post", DenseConfig::Norm::post_ln}, {"pre", DenseConfig::Norm::pre_ln}, {"rezero", DenseConfig::Norm::rezero}};
  config.norm = kNorms.at(group.text("norm"));
  config.sublayer_order = group.text("order");
  config.use_residual_attention = group.text("residual") != "none";
  config.use_running_mean = group.text("residual") == "mean";
  if (!config.use_running_mean) REQUIRE((group.text("residual") == "sum" || !config.use_residual_attention));
  return config;
}

// The last running scores [N, n, n], from those by distance [N, n, 2n-1]: the encoder's at visible pairs; the others, which
// it does not compute, from attention to all keys.
std::vector<float> last_scores(const Tensor& of_encoder, const Tensor& of_all, const std::vector<std::int32_t>& mask,
                               std::int64_t n) {
  std::vector<float> scores;
  for (std::int64_t i = 0; i < of_encoder.dim(0) * n * n; ++i) {
    const std::int64_t key = i % n, row = i / n;
    const bool visible = mask[static_cast<std::size_t>(i % (n * n))] != 0;
    scores.push_back((visible ? of_encoder : of_all).data()[row * (2 * n - 1) + key - row % n + n - 1]);
  }
  return scores;
}

// Queries, keys or values [N, n, d] of the attention that reads x [n, H].
std::vector<float> projected(const EncoderGroup& group, const std::string& layer, const char* name, const Reals& x,
                             const DenseConfig& config) {
  const std::int64_t H = config.hidden_size, n = std::ssize(x) / H, d = config.head_size();
  const Reals kernel = group.numbers("param/" + layer + "W" + name),
              bias = group.numbers("param/" + layer + "b" + name);
  const Reals product = matrix_product(x, kernel, n, H, H);
  std::vector<float> heads;
  for (std::int64_t i = 0; i < n * H; ++i) {
    const std::int64_t column = i / d / n * d + i % d, token = i / d % n;
    heads.push_back(static_cast<float>(product[static_cast<std::size_t>(token * H + column)] +
                                       bias[static_cast<std::size_t>(column)]));
  }
  return heads;
}

// Queries, keys and values of every attention, computed from its input states: states[j] [n, H] before the j-th.
std::vector<LayerHeads> heads_of_layers(const EncoderGroup& group, const DenseConfig& config,
                                        const std::vector<Tensor>& states) {
  std::vector<LayerHeads> layers;
  const std::int64_t n = states.at(0).rows(), H = config.hidden_size;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = "l" + std::to_string(i) + ".";
    Reals x = to_double(values_of(states.at(static_cast<std::size_t>(i))));
    if (config.norm == DenseConfig::Norm::pre_ln) {
      x = reference_layer_norm(x, group.numbers("param/" + layer + "ln1.gamma"),
                               group.numbers("param/" + layer + "ln1.beta"), n, H, {config.layer_norm_epsilon});
    }
    const auto heads = [&](const char* name) { return projected(group, layer, name, x, config); };
    layers.push_back({heads("q"), heads("k"), heads("v")});
  }
  return layers;
}

// Compares the probabilities of all layers and the last running scores, which `carry` has of visible pairs.
void compare_attention(Difference& difference, const EncoderGroup& group, const DenseConfig& config,
                       const std::vector<LayerHeads>& layers, const Tensor& carry) {
  const std::vector<std::int32_t> mask = group.file.read_mask("encoder/mask");
  const std::int64_t n = group.file.read<float>("encoder/input").shape.at(0);
  const Buffer<std::uint8_t> labels = labels_of(mask, n);
  const Carry kind = !config.use_residual_attention ? Carry::none : config.use_running_mean ? Carry::mean : Carry::sum;
  AttentionSizes sizes{config.num_attention_heads, config.head_size(), {0, n}, labels.data()};
  std::vector<float> all;
  for (const auto& layer : probabilities(layers, sizes, kind)) all.insert(all.end(), layer.begin(), layer.end());
  difference.compare("probs", group.numbers(group.variant + "/probs"), all);
  if (!config.use_residual_attention) return;
  sizes.labels = nullptr;
  REQUIRE(carry);
  difference.compare("final_carry", group.numbers(group.variant + "/final_carry"),
                     last_scores(carry, carried(layers, sizes, kind).scores.back(), mask, n));
}

Difference compare_variant(const EncoderGroup& group, std::int64_t period) {
  DenseConfig config = config_of(group);
  config.grad_checkpointing_period = period;
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(1);
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (name.empty()) continue;
    const auto values = group.file.read<float>("encoder/param/" + name);
    parameter->value = Tensor::from(values.values, parameter->shape, Purpose::weights);
  }
  const auto input = group.file.read<float>("encoder/input");
  const std::int64_t n = input.shape.at(0);
  EncoderInput batch;
  batch.long_offsets = {0, n};
  batch.global_offsets = {0, 0};
  batch.labels.l2l = labels_of(group.file.read_mask("encoder/mask"), n);
  Difference difference;
  ForwardOptions options;
  Tensor carry;
  std::vector<Tensor> states;  // before each attention, and the final ones
  options.watch = [&](std::int64_t, const Tensor& of_long, const Tensor&, const ExternalScores& scores) {
    states.push_back(of_long.clone());
    carry = scores.of("self");
  };
  Tape tape(Recording::on);
  Var x(Tensor::from(input.values, {n, config.hidden_size}, Purpose::activations), true);
  {
    Var y = encoder.forward_layers(tape, x, batch, options);
    difference.compare("output", group.numbers(group.variant + "/output"), values_of(y.value()));
    const auto upstream = group.file.read<float>("encoder/upstream").values;
    std::copy(upstream.begin(), upstream.end(), y.grad().data());
  }
  compare_attention(difference, group, config, heads_of_layers(group, config, states), carry);
  tape.backward();
  std::size_t compared = 1;
  difference.compare("grad/X", group.numbers(group.variant + "/grad/X"), values_of(x.grad()));
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (name.empty()) continue;
    INFO(parameter->name);
    REQUIRE(parameter->grad);
    difference.compare("grad/" + name, group.numbers(group.variant + "/grad/" + name), values_of(parameter->grad));
    ++compared;
  }
  REQUIRE(group.file.data_sets("encoder/" + group.variant + "/grad").size() == compared);
  return difference;
}

// Compares every variant of the file's group `encoder`; returns their number.
std::size_t compare_encoders(const GoldenFile& file) {
  std::size_t variants = 0;
  for (const std::string& variant : file.groups("encoder")) {
    if (variant == "param") continue;
    const EncoderGroup group{file, variant};
    CAPTURE(variant);
    for (const std::int64_t period : {0, 1}) {
      const Difference difference = compare_variant(group, period);
      CAPTURE(period, difference.where);
      CHECK(difference.worst <= 1);
      std::printf("encoder/%-24s period %d: %.3f of what is tolerated (%s)\n", variant.c_str(),
                  static_cast<int>(period), difference.worst, difference.where.c_str());
    }
    ++variants;
  }
  return variants;
}

TEST_CASE("dense encoders of every order have the outputs, carried scores and gradients of the formulas", "[golden]") {
  register_cpu_backend();
  for_each_file_with("encoder/upstream", [](const GoldenFile& file) {
    CHECK(compare_encoders(file) > 0);
    file.require_all_read("encoder");
  });
}

// The places to change in a data set: the largest number, and of running scores also the largest at a masked pair.
std::vector<std::int64_t> places_of(const GoldenFile& file, const std::string& name,
                                    const std::vector<double>& values) {
  std::vector<std::int64_t> places{largest_place(values, [](std::size_t) { return true; })};
  if (!name.ends_with("final_carry")) return places;
  const std::vector<std::int32_t> mask = file.read_mask("encoder/mask");
  const std::int64_t masked = largest_place(values, [&](std::size_t i) { return mask.at(i % mask.size()) == 0; });
  if (masked >= 0) places.push_back(masked);
  return places;
}

void require_changed_encoders_noticed(Sweep sweep) {
  register_cpu_backend();
  for_each_file_with("encoder/upstream", [&](const GoldenFile& file) {
    std::set<std::string> seen;
    for (const std::string& variant : file.groups("encoder")) {
      if (variant == "param") continue;
      std::vector<std::string> names = data_sets_below(file, "encoder/" + variant);
      keep_new(sweep, seen, names);
      for (const std::string& name : names) {
        const std::string path = "encoder/" + variant + "/" + name;
        const auto values = file.read<double>(path).values;
        for (const std::int64_t place : places_of(file, name, values)) {
          // Key biases, whose gradient is a rounding error.
          if (std::abs(values[static_cast<std::size_t>(place)]) < 0.03) continue;
          CAPTURE(path, place);
          const Falsified copy(file.path());
          H5Edit(copy.path).scale_element("/" + path, place, 1.01);
          const GoldenFile changed(copy.path);
          const Difference difference = compare_variant({changed, variant}, 0);
          CHECK(difference.worst > 1);
          CHECK(difference.where == name);
        }
      }
    }
  });
}

TEST_CASE("a changed number of an encoder's golden results is noticed, at masked pairs, too", "[golden]") {
  require_changed_encoders_noticed(Sweep::first_of_kind);
}

TEST_CASE("a changed number of every encoder's golden results is noticed", "[golden][slow]") {
  require_changed_encoders_noticed(Sweep::every_group);
}

}  // namespace
}  // namespace etc::test
