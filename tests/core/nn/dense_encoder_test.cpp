// The dense encoder beyond its golden numbers (tests/golden/dense_golden_test.cpp): sizes, orders, neighbours, errors.
#include "etc_core/nn/dense_encoder.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "tests/core/encoder_sizes.h"
#include "tests/support/catch.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;

DenseConfig small_dense() {
  DenseConfig config =
      test::with_sizes(DenseConfig(), {.vocabulary = 30, .hidden = 24, .layers = 3, .heads = 2, .feed_forward = 40});
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
  Tape tape(Recording::off);
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
    for (const DenseConfig::Norm norm : {DenseConfig::Norm::post_ln, DenseConfig::Norm::pre_ln}) {
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
