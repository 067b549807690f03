// The dense encoder beyond its golden numbers (tests/golden/dense_golden_test.cpp): sizes, orders, neighbours, errors.
#include "etc_core/nn/dense_encoder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "tests/support/catch.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;

DenseConfig small_dense() {
  DenseConfig config;
  config.vocab_size = 30;
  config.hidden_size = 24;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.intermediate_size = 40;
  config.max_absolute_position_embeddings = 64;
  config.initializer_range = 0.3;
  config.use_residual_attention = true;
  return config;
}

EncoderInput sequences(const std::vector<std::int64_t>& lengths) {
  EncoderInput input;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) {
      input.token_ids.push_back(static_cast<std::int32_t>((7 * i + 3 * length) % 30));
      input.segment_ids.push_back(i > length / 2);
    }
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(0);
  }
  return input;
}

Tensor states_of(const DenseConfig& config, const EncoderInput& input, bool packed) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  if (packed) encoder.release_kernels();
  Tape tape(false);
  return encoder.forward(tape, input, {}).long_states.value();
}

TEST_CASE("dense presets have the published parameter counts", "[nn]") {
  const std::pair<const char*, std::int64_t> kPublished[] = {
      {"small", 28'763'648}, {"base", 109'482'240}, {"large", 335'141'888}, {"xlarge", 1'069'969'920}};
  for (const auto& [name, published] : kPublished) {
    CAPTURE(name);
    DenseConfig config = dense_config_preset(name);
    config.vocab_size = 30522;
    ParameterSet parameters;
    const DenseEncoder encoder(config, parameters);
    const std::int64_t pooler = config.hidden_size * config.hidden_size + config.hidden_size;
    CHECK(parameters.count() + pooler == published);
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
        const Tensor batch = states_of(config, sequences({17, 40, 3}), true);
        const Tensor alone = states_of(config, sequences({40}), false);
        CHECK(std::memcmp(batch.data() + 17 * 24, alone.data(), 40 * 24 * 4) == 0);
      }
    }
  }
}

// The gradient of every scale, by name, from an upstream of ones; the sub-layers are given `x` itself.
std::map<std::string, float> scale_gradients(const DenseConfig& config, const EncoderInput& input, Tensor& x,
                                             Tensor& y) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  x = states_of(config, input, false);  // any numbers
  Tape tape(true);
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
    Tape tape(false);
    return encoder.forward(tape, sequences({17, 40}), {}).long_states.value();
  };
  const Tensor post_ln = states(DenseConfig::Norm::post_ln), scaled = states(DenseConfig::Norm::rezero_post_ln);
  CHECK(std::memcmp(post_ln.data(), scaled.data(), static_cast<std::size_t>(post_ln.size()) * 4) == 0);
}

TEST_CASE("a radius below the length changes what a token sees, one beyond it does not", "[nn]") {
  DenseConfig config = small_dense();
  const EncoderInput input = sequences({40});
  const Tensor full = states_of(config, input, false);
  config.local_radius = 39;
  const Tensor reaching = states_of(config, input, false);
  CHECK(std::memcmp(full.data(), reaching.data(), 40 * 24 * 4) == 0);
  config.local_radius = 5;
  const Tensor window = states_of(config, input, false);
  CHECK(std::memcmp(full.data(), window.data(), 40 * 24 * 4) != 0);
}

TEST_CASE("dense inputs and configurations that cannot be meant are refused", "[nn]") {
  EncoderInput input = sequences({8});
  input.global_offsets.back() = 1;
  input.global_token_ids = {1};
  CHECK_THROWS_WITH(states_of(small_dense(), input, false), Contains("expected no global tokens"));
  input = sequences({65});
  CHECK_THROWS_WITH(states_of(small_dense(), input, false), Contains("max_absolute_position_embeddings=64"));
  input = sequences({8});
  input.labels.l2l = Buffer<std::uint8_t>(7, Purpose::labels);
  CHECK_THROWS_WITH(states_of(small_dense(), input, false), Contains("labels.l2l: expected 120 labels, got 7"));
  input = sequences({8});
  input.token_ids[3] = 30;
  CHECK_THROWS_WITH(states_of(small_dense(), input, false), Contains("token_ids"));

  DenseConfig config = small_dense();
  for (const char* order : {"sfsf", "sfsfss", "sfsfsx"}) {
    config.sublayer_order = order;
    CHECK_THROWS_WITH(config.validate(), Contains("sublayer_order: expected 3 times s and 3 times f"));
  }
  config = small_dense();
  config.num_attention_heads = 5;
  CHECK_THROWS_WITH(config.validate(), Contains("multiple of num_attention_heads=5"));
  config = small_dense();
  config.residual_attention_types = {"l2l"};
  CHECK_THROWS_WITH(config.validate(), Contains(R"(expected ["self"] or [])"));
}

TEST_CASE("a dense configuration survives writing and reading by its kind", "[nn]") {
  DenseConfig config = small_dense();
  config.norm = DenseConfig::Norm::pre_ln;
  config.sublayer_order = "ssfsff";
  const ModelConfig read = model_config_from_json(config.to_json(), "test", true);
  CHECK(read->to_json() == config.to_json());
  CHECK(read->to_json().at("kind") == "dense");
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dens"}}, "test", true), Contains("did you mean dense?"));
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dense"}, {"nrom", "pre_ln"}}, "test", true),
                    Contains("unknown key nrom (did you mean norm?)"));
  CHECK_THROWS_WITH(model_config_from_json({{"kind", "dense"}, {"norm", "preln"}}, "test", true), Contains("norm"));
}

}  // namespace
}  // namespace etc
