// The dense encoder beyond its golden numbers (tests/golden/dense_golden_test.cpp): sizes, orders, neighbours, errors.
#include "etc_core/nn/dense_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using test::sequences;
using test::small_dense;
using test::SmallDense;

Tensor whole_states_of(const DenseConfig& config, const EncoderInput& input, bool packed) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  if (packed) encoder.release_kernels();
  Tape tape(Recording::off);
  return encoder.forward(tape, input, {}).long_states.value();
}

TEST_CASE("dense presets have the published parameter counts", "[nn]") {
  // With 2 token types, and with 16.
  const std::tuple<const char*, std::int64_t, std::int64_t> kPublished[] = {{"small", 28'763'648, 28'770'816},
                                                                            {"base", 109'482'240, 109'492'992},
                                                                            {"large", 335'141'888, 335'156'224},
                                                                            {"xlarge", 1'069'969'920, 1'069'991'424}};
  for (const auto& [name, published, with_16_types] : kPublished) {
    CAPTURE(name);
    DenseConfig config = dense_config_preset(name);
    config.vocab_size = 30522;
    ParameterSet parameters;
    const DenseEncoder encoder(config, parameters);
    const std::int64_t pooler = config.hidden_size * config.hidden_size + config.hidden_size;
    CHECK(parameters.count() + pooler == published);
    DenseConfig of_16_types = config;
    of_16_types.segment_vocab_size = 16;
    ParameterSet more;
    const DenseEncoder wider(of_16_types, more);
    CHECK(more.count() + pooler == with_16_types);
    config.norm = DenseConfig::Norm::pre_ln;
    ParameterSet with_final_norm;
    const DenseEncoder pre_ln(config, with_final_norm);
    CHECK(with_final_norm.count() == parameters.count() + 2 * config.hidden_size);
  }
  CHECK_THROWS_WITH(dense_config_preset("smal"), Contains("did you mean small?"));
}

TEST_CASE("sandwich orders are those of the paper", "[nn]") {
  CHECK(sandwich_order(3, 0) == "sfsfsf");
  CHECK(sandwich_order(16, 6) == "sssssssfsfsfsfsfsfsfsfsfsfffffff");
  CHECK(sandwich_order(2, 2) == "ssff");
  CHECK_THROWS_WITH(sandwich_order(3, 4), Contains("expected 0 … 3"));
}

TEST_CASE("a sequence has the same bits alone and beside others, packed or not, in every order", "[nn]") {
  for (const char* order : {"", "ssfsff", "fsfsfs"}) {
    for (const auto norm : {DenseConfig::Norm::post_ln, DenseConfig::Norm::pre_ln, DenseConfig::Norm::rezero_post_ln}) {
      for (const std::int64_t radius : {0, 5}) {
        DenseConfig config = small_dense();
        config.sublayer_order = order;
        config.norm = norm;
        config.local_radius = radius;
        CAPTURE(order, radius);
        const Tensor batch = whole_states_of(config, sequences({17, 40, 3}), true);
        const Tensor alone = whole_states_of(config, sequences({40}), false);
        CHECK(std::memcmp(batch.data() + 17 * 24, alone.data(), 40 * 24 * 4) == 0);
      }
    }
  }
}

// The gradient of every scale, by name, from an upstream gradient of ones; the sub-layers read `x` itself.
std::map<std::string, float> scale_gradients(const DenseConfig& config, const EncoderInput& input, Tensor& x,
                                             Tensor& y) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  x = whole_states_of(config, input, false);  // any numbers
  Tape tape(Recording::on);
  {
    Var result = encoder.forward_layers(tape, Var(x, true), input, {});
    y = result.value();
    std::fill_n(result.grad().data(), y.size(), 1.0f);
  }
  tape.backward();
  std::map<std::string, float> gradients;
  for (const auto& parameter : parameters.all()) {
    if (parameter->name.ends_with("rezero_alpha")) gradients[parameter->name] = parameter->grad.data()[0];
  }
  return gradients;
}

// The deviation of a parameter's initial values, and the fraction of them beyond two deviations.
std::pair<double, double> spread_of(const DenseConfig& config, const std::string& name) {
  ParameterSet parameters;
  const DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  const Tensor& values = parameters.at(name).value;
  double squares = 0, beyond = 0;
  for (std::int64_t i = 0; i < values.size(); ++i) squares += static_cast<double>(values.data()[i]) * values.data()[i];
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  for (std::int64_t i = 0; i < values.size(); ++i) beyond += std::abs(values.data()[i]) > 2 * deviation;
  return {deviation, beyond / static_cast<double>(values.size())};
}

TEST_CASE("fresh weights have the deviations of BERT, GPT-2 and the sparse transformer", "[nn]") {
  using Init = DenseConfig::ResidualInit;
  DenseConfig config =
      test::with_sizes(DenseConfig(), {.vocabulary = 200, .hidden = 96, .layers = 8, .heads = 4, .feed_forward = 160});
  config.initializer_range = 0.02;
  const std::string tables = "bert/embeddings/word_embeddings", layer = "bert/encoder/layer_3/";
  struct Expected {
    Init init;
    DenseConfig::Norm norm;
    double table, query, attention_output, inner, outer;
    bool truncated;
  };
  const double cut = 0.879626;  // deviation of a standard normal truncated at ±2
  const double residual = 1 / std::sqrt(16.0), by_96 = 0.125 / std::sqrt(96.0), by_160 = 0.125 / std::sqrt(160.0);
  const double bert = 0.02 * cut, out = 0.02 * residual;
  using Norm = DenseConfig::Norm;
  for (const Expected& e : {Expected{Init::by_norm, Norm::post_ln, bert, bert, bert, bert, bert, true},
                            Expected{Init::none, Norm::pre_ln, bert, bert, bert, bert, bert, true},
                            Expected{Init::by_norm, Norm::rezero, bert, bert, bert, bert, bert, true},
                            Expected{Init::by_norm, Norm::pre_ln, 0.02, 0.02, out, 0.02, out, false},
                            Expected{Init::gpt2, Norm::post_ln, 0.02, 0.02, out, 0.02, out, false},
                            Expected{Init::sparse_transformer, Norm::pre_ln, by_96, by_96, by_96 * residual, by_96,
                                     by_160 * residual, false}}) {
    config.residual_init_scale = e.init;
    config.norm = e.norm;
    const std::pair<std::string, double> kExpected[] = {{tables, e.table},
                                                        {layer + "attention/self/query/kernel", e.query},
                                                        {layer + "attention/output/dense/kernel", e.attention_output},
                                                        {layer + "intermediate/dense/kernel", e.inner},
                                                        {layer + "output/dense/kernel", e.outer}};
    for (const auto& [name, expected] : kExpected) {
      CAPTURE(name, e.init, e.norm);
      const auto [deviation, beyond] = spread_of(config, name);
      CHECK(deviation == Approx(expected).epsilon(0.03));  // 9,216 samples or more: four standard errors
      // 4.55 % of a normal distribution; for one truncated at ±2, the fraction beyond twice its own, smaller deviation.
      CHECK(beyond == Approx(e.truncated ? 0.0347 : 0.0455).margin(0.008));
    }
  }
}

TEST_CASE("ReZero begins as the identity, and its scales have gradients then", "[nn]") {
  for (const bool per_branch : {false, true}) {
    for (const char* order : {"", "ssfsff"}) {
      DenseConfig config = small_dense();
      config.norm = DenseConfig::Norm::rezero;
      config.rezero_per_branch = per_branch;
      config.sublayer_order = order;
      CAPTURE(per_branch, order);
      Tensor x, y;
      const auto gradients = scale_gradients(config, sequences({17, 3}), x, y);
      CHECK(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * 4) == 0);
      CHECK(gradients.size() == (per_branch ? 6 : 3));
      for (const auto& [name, gradient] : gradients) {
        CAPTURE(name);
        CHECK(gradient != 0);
      }
    }
  }
}

TEST_CASE("ReZero has a scale for each layer or branch in place of its norms, or beside them", "[nn]") {
  const auto count = [](DenseConfig::Norm norm, bool per_branch) {
    DenseConfig config = small_dense();
    config.norm = norm;
    config.rezero_per_branch = per_branch;
    ParameterSet parameters;
    const DenseEncoder encoder(config, parameters);
    return parameters.count();
  };
  using Norm = DenseConfig::Norm;
  const std::int64_t post_ln = count(Norm::post_ln, false), layers = 3, norms = 4 * 24 * layers;
  CHECK(count(Norm::rezero, false) == post_ln - norms + layers);
  CHECK(count(Norm::rezero, true) == post_ln - norms + 2 * layers);
  CHECK(count(Norm::rezero_post_ln, false) == post_ln + layers);
  CHECK(count(Norm::rezero_post_ln, true) == post_ln + 2 * layers);
  CHECK_THROWS_WITH(count(Norm::pre_ln, true), Contains("rezero_per_branch: expected norm rezero or rezero_post_ln"));
}

TEST_CASE("with Post-LN norms and a scale of 1 ReZero is Post-LN", "[nn]") {
  register_cpu_backend();
  const auto states = [](DenseConfig::Norm norm) {
    DenseConfig config = small_dense();
    config.norm = norm;
    ParameterSet parameters;
    DenseEncoder encoder(config, parameters);
    parameters.initialize(5);
    for (const auto& parameter : parameters.all()) {
      if (parameter->name.ends_with("rezero_alpha")) parameter->value.data()[0] = 1;
    }
    Tape tape(Recording::off);
    return encoder.forward(tape, sequences({17, 40}), {}).long_states.value();
  };
  const Tensor post_ln = states(DenseConfig::Norm::post_ln), scaled = states(DenseConfig::Norm::rezero_post_ln);
  CHECK(std::memcmp(post_ln.data(), scaled.data(), static_cast<std::size_t>(post_ln.size()) * 4) == 0);
}

TEST_CASE("a radius below the length changes what a token sees, one beyond it does not", "[nn]") {
  DenseConfig config = small_dense();
  const EncoderInput input = sequences({40});
  const Tensor full = whole_states_of(config, input, false);
  config.local_radius = 39;
  const Tensor reaching = whole_states_of(config, input, false);
  CHECK(std::memcmp(full.data(), reaching.data(), 40 * 24 * 4) == 0);
  config.local_radius = 5;
  const Tensor window = whole_states_of(config, input, false);
  CHECK(std::memcmp(full.data(), window.data(), 40 * 24 * 4) != 0);
}

// The largest difference of two results.
double difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) test::keep_worst(worst, std::abs(1.0 * a.data()[i] - b.data()[i]));
  return worst;
}

TEST_CASE("running scores change nothing with one layer and something with two, in every placement of norms", "[nn]") {
  for (DenseConfig config : test::dense_variants()) {
    if (!config.use_residual_attention) continue;
    const EncoderInput input = sequences({17, 6});
    for (const std::int64_t layers : {1, 2}) {
      config.num_hidden_layers = layers;
      config.sublayer_order = "";
      config.use_residual_attention = true;
      const Tensor on = SmallDense(config).states(input);
      config.use_residual_attention = config.use_running_mean = false;
      const Tensor off = SmallDense(config).states(input);
      CAPTURE(layers, config.norm);
      if (layers == 1) CHECK(difference(on, off) < 1e-5);  // the same numbers in another order of operations
      if (layers == 2) CHECK(difference(on, off) > 1e-3);
    }
  }
}

TEST_CASE("the standard order written out is the standard order, bit for bit", "[nn]") {
  for (DenseConfig config : test::dense_variants()) {
    const EncoderInput input = sequences({17, 6});
    config.sublayer_order = "";
    const Tensor standard = SmallDense(config).states(input);
    config.sublayer_order = sandwich_order(config.num_hidden_layers, 0);
    const Tensor written = SmallDense(config).states(input);
    CHECK(std::memcmp(standard.data(), written.data(), static_cast<std::size_t>(standard.size()) * 4) == 0);
  }
}

TEST_CASE("the watch is told of each attention once, with scores behind it, in orders that begin with a feed-forward",
          "[nn]") {
  for (const std::string order : {"fsfsfs", "ffsfss", "sfsfsf"}) {
    CAPTURE(order);
    DenseConfig config = small_dense();
    config.sublayer_order = order;
    SmallDense model(config);
    std::vector<std::int64_t> layers;
    std::vector<Tensor> scores;
    ForwardOptions options;
    options.watch = [&](std::int64_t layer, const Tensor&, const Tensor&, const ExternalScores& running) {
      layers.push_back(layer);
      if (layer >= 0) scores.push_back(running.of("self"));
    };
    Tape tape(Recording::off);
    model.encoder.forward(tape, sequences({9}), options);
    CHECK(layers == std::vector<std::int64_t>{-1, 0, 1, 2});
    REQUIRE(scores.size() == 3);
    // 9 tokens see each other; the other columns of the window of 17 are 0.
    CHECK(std::count(scores[0].data(), scores[0].data() + scores[0].size(), 0.0f) == 2 * 9 * 8);
    CHECK(difference(scores[0], scores[1]) > 1e-3);
    CHECK(difference(scores[1], scores[2]) > 1e-3);
  }
}

// Swaps the two heads of a layer in all its tensors: columns of the projections, rows of the output kernel.
void swap_heads(SmallDense& model, std::int64_t layer) {
  const std::string names = "bert/encoder/layer_" + std::to_string(layer) + "/attention/";
  const auto halves = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    float* x = model.parameters.at(names + name).value.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      std::swap_ranges(x + row * cols, x + row * cols + cols / 2, x + row * cols + cols / 2);
    }
  };
  for (const char* name : {"query", "key", "value"}) {
    halves("self/" + std::string(name) + "/kernel", 24, 24);
    halves("self/" + std::string(name) + "/bias", 1, 24);
  }
  halves("output/dense/kernel", 1, 24 * 24);
}

TEST_CASE("heads are interchangeable in a layer, with running scores only in all layers alike", "[nn]") {
  for (DenseConfig config : test::dense_variants()) {
    const EncoderInput input = sequences({17, 6});
    const Tensor plain = SmallDense(config).states(input);
    SmallDense one(config), all(config);
    swap_heads(one, 1);
    for (std::int64_t layer = 0; layer < 3; ++layer) swap_heads(all, layer);
    CAPTURE(config.norm, config.use_residual_attention);
    CHECK((difference(one.states(input), plain) > 1e-3) == config.use_residual_attention);
    CHECK(difference(all.states(input), plain) < 2e-5);
  }
}

TEST_CASE("a constant added to all scores of a query in a layer changes nothing, in later layers neither", "[nn]") {
  for (const DenseConfig& config : test::dense_variants()) {
    const EncoderInput input = sequences({17, 6});
    const Tensor plain = SmallDense(config).states(input);
    SmallDense shifted(config);  // q·(k + c) = q·k + q·c: the same for every key
    Tensor& bias = shifted.parameters.at("bert/encoder/layer_0/attention/self/key/bias").value;
    for (std::int64_t i = 0; i < bias.size(); ++i) bias.data()[i] += 0.5f - 0.1f * static_cast<float>(i % 9);
    CAPTURE(config.norm, config.use_residual_attention);
    CHECK(difference(shifted.states(input), plain) < 2e-5);
  }
}

TEST_CASE("dense inputs and configurations that cannot be meant are refused", "[nn]") {
  EncoderInput input = sequences({8});
  input.global_offsets.back() = 1;
  input.global_token_ids = {1};
  CHECK_THROWS_WITH(whole_states_of(small_dense(), input, false), Contains("expected no global tokens"));
  input = sequences({65});
  CHECK_THROWS_WITH(
      whole_states_of(small_dense(), input, false),
      Contains("long length: example 0: expected at most max_absolute_position_embeddings=64, got 65 (positions") &&
          Contains("relative positions"));
  input = sequences({8});
  input.position_ids.assign(8, 63);
  CHECK(whole_states_of(small_dense(), input, false).rows() == 8);
  input.position_ids[5] = 64;
  CHECK_THROWS_WITH(whole_states_of(small_dense(), input, false),
                    Contains("encoder: position_ids: example 0, position 5: expected an id from 0 to 63, since "
                             "max_absolute_position_embeddings=64, got 64 (positions") &&
                        Contains("relative positions"));
  input = sequences({8});
  input.labels.l2l = Buffer<std::uint8_t>(7, Purpose::labels);
  CHECK_THROWS_WITH(whole_states_of(small_dense(), input, false), Contains("labels.l2l: expected 120 labels, got 7"));
  input = sequences({8});
  input.token_ids[3] = 30;
  CHECK_THROWS_WITH(whole_states_of(small_dense(), input, false), Contains("token_ids"));

  DenseConfig config = small_dense();
  for (const auto& [order, found] : {std::pair("sfsf", "the end after 2 times s and 2 times f at position 5"),
                                     {"sfsfss", "'s' number 4 at position 6"},
                                     {"sfxfsf", "'x' at position 3"},
                                     {"sf\u00e9fsf", "'\u00e9' at position 3"},
                                     {"sf\u2026fsf", "'\u2026' at position 3"},
                                     {"sf\xc3", "'\\xC3' at position 3"},
                                     {"sf\xa9\xa9", "'\\xA9' at position 3"},
                                     {"sfsfsff", "'f' number 4 at position 7"}}) {
    config.sublayer_order = order;
    CHECK_THROWS_WITH(config.validate(), Contains("sublayer_order: expected 3 times s and 3 times f") &&
                                             Contains(std::string("got ") + found + " of \"" + order + "\""));
  }
  config = small_dense();
  config.use_residual_attention = false;
  config.use_running_mean = true;
  CHECK_THROWS_WITH(config.validate(), Contains("use_running_mean: true: expected use_residual_attention beside it"));
  config = small_dense();
  config.num_attention_heads = 5;
  CHECK_THROWS_WITH(config.validate(), Contains("multiple of num_attention_heads=5"));
  config = small_dense();
  config.num_attention_heads = config.att_size_per_head.emplace(1 << 24);
  CHECK_THROWS_WITH(config.validate(), Contains("num_attention_heads * att_size_per_head: expected at most 16777216"));
  config = small_dense();
  config.residual_attention_types = {"l2l"};
  CHECK_THROWS_WITH(config.validate(), Contains(R"(expected ["self"] or [])"));
}

TEST_CASE("a dense configuration survives writing and reading by its kind", "[nn]") {
  DenseConfig config = small_dense();
  config.norm = DenseConfig::Norm::pre_ln;
  config.sublayer_order = "ssfsff";
  const ModelConfig read = model_config_from_json(config.to_json(), "test", UnknownKeys::refuse);
  CHECK(read->to_json() == config.to_json());
  CHECK(read->to_json().at("kind") == "dense");
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dens"}}, "test", UnknownKeys::refuse),
                    Contains("did you mean dense?"));
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dense"}, {"nrom", "pre_ln"}}, "test", UnknownKeys::refuse),
                    Contains("unknown key nrom (did you mean norm?)"));
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dense"}, {"norm", "preln"}}, "test", UnknownKeys::refuse),
                    Contains("norm"));
}

}  // namespace
}  // namespace etc
