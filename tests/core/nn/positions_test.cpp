// Position methods in the dense encoder: their dependence on positions, gradients, neighbours, errors.
// tests/golden/attention_golden_test.cpp checks the formulas.
#include "etc_core/nn/positions.h"

#include <cmath>
#include <cstring>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "sparse/labels/relative_ids.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/worst.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using Method = PositionConfig::Method;

const std::vector<Method> kMethods = {Method::shaw,        Method::shaw_values,  Method::t5,     Method::transformer_xl,
                                      Method::huang1,      Method::huang2,       Method::huang3, Method::huang4,
                                      Method::nezha_index, Method::nezha_signed, Method::etc};

DenseConfig with_method(Method method) {
  DenseConfig config;
  config.vocab_size = 30;
  config.hidden_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 16;
  config.max_absolute_position_embeddings = 0;
  config.initializer_range = 0.4;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.use_residual_attention = true;
  config.relative_positions = method;
  config.relative_clip = 6;
  config.relative_buckets = 8;
  config.relative_max_distance = 12;
  config.relative_init = PositionConfig::TableInit::normal;
  return config;
}

EncoderInput tokens(const std::vector<std::vector<std::int32_t>>& examples) {
  EncoderInput input;
  for (const std::vector<std::int32_t>& ids : examples) {
    input.token_ids.insert(input.token_ids.end(), ids.begin(), ids.end());
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(0);
  }
  input.segment_ids.assign(input.token_ids.size(), 0);
  return input;
}

std::vector<std::int32_t> some_ids(std::int32_t count) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back((7 * i + 3) % 30);
  return ids;
}

// An encoder with its parameters.
struct Model {
  explicit Model(const DenseConfig& config) : encoder(config, parameters) {
    register_cpu_backend();
    parameters.initialize(5);
  }
  ParameterSet parameters;
  DenseEncoder encoder;

  std::vector<float> states(const EncoderInput& input) {
    Tape tape(Recording::off);
    const Tensor values = encoder.forward(tape, input, {}).long_states.value();
    return {values.data(), values.data() + values.size()};
  }
  // Gradients of the sum of states times fixed weights, in `grad` of every parameter.
  void backward(const EncoderInput& input) {
    for (const auto& parameter : parameters.all()) parameter->grad = Tensor();
    Tape tape(Recording::on);
    {
      Var y = encoder.forward(tape, input, {}).long_states;
      for (std::int64_t i = 0; i < y.value().size(); ++i) y.grad().data()[i] = weight(i);
    }
    tape.backward();
  }
  double loss(const EncoderInput& input) {
    const std::vector<float> all = states(input);
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      sum += static_cast<double>(all[i]) * weight(static_cast<std::int64_t>(i));
    return sum;
  }
  static float weight(std::int64_t i) { return static_cast<float>(i * 37 % 11) / 5.5f - 1; }
};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) test::keep_worst(worst, std::fabs(a[i] - b[i]));
  return worst;
}

std::vector<float> rows(const std::vector<float>& states, std::int64_t first, std::int64_t count) {
  return {states.begin() + first * 12, states.begin() + (first + count) * 12};
}

TEST_CASE("every position method sees the order of tokens, and nothing else does", "[nn]") {
  std::vector<std::int32_t> ids = some_ids(14), swapped = ids;
  std::swap(swapped[3], swapped[9]);
  const auto change = [&](Method method) {
    Model model(with_method(method));
    // The compared token keeps its position and sees the same tokens in both sequences.
    return difference(rows(model.states(tokens({ids})), 5, 1), rows(model.states(tokens({swapped})), 5, 1));
  };
  CHECK(change(Method::none) < 1e-5);
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    CHECK(change(method) > 1e-3);
  }
}

TEST_CASE("factors begin at one: Huang's methods 1 to 3 start as attention without positions", "[nn]") {
  const EncoderInput input = tokens({some_ids(14)});
  const std::vector<float> plain = Model(with_method(Method::none)).states(input);
  for (const Method method : {Method::huang1, Method::huang2, Method::huang3, Method::huang4}) {
    DenseConfig config = with_method(method);
    config.relative_init = PositionConfig::TableInit::by_method;
    Model model(config);
    Model other(with_method(Method::none));
    for (const auto& parameter : model.parameters.all()) {
      if (Parameter* const same = other.parameters.find(parameter->name)) parameter->value = same->value;
    }
    const double moved = difference(model.states(input), plain);
    CHECK((method == Method::huang4 ? moved > 1e-3 : moved < 1e-5));
  }
}

TEST_CASE("gradients of every method's parameters equal central differences, shared or not", "[nn]") {
  const EncoderInput input = tokens({some_ids(9), some_ids(4)});
  using Sharing = PositionConfig::Sharing;
  for (const Method method : kMethods) {
    for (const Sharing sharing : {Sharing::layer_head, Sharing::layer, Sharing::model}) {
      DenseConfig config = with_method(method);
      config.relative_sharing = sharing;
      Model model(config);
      model.backward(input);
      std::size_t checked = 0;
      for (const auto& parameter : model.parameters.all()) {
        const bool relative = parameter->name.find("relative_") != std::string::npos;
        if (!relative && parameter->name.find("query/") == std::string::npos) continue;
        CAPTURE(static_cast<int>(method), static_cast<int>(sharing), parameter->name);
        REQUIRE(parameter->grad);
        checked += relative ? 1 : 0;
        double largest = 0;
        for (std::int64_t i = 0; i < parameter->size(); ++i) {
          largest = std::max(largest, static_cast<double>(std::fabs(parameter->grad.data()[i])));
        }
        for (std::int64_t i = 0; i < parameter->size(); i += 1 + parameter->size() / 5) {
          const float before = parameter->value.data()[i], step = 1e-2f;
          const auto loss_at = [&](float x) {
            parameter->value.data()[i] = x;
            ++parameter->version;  // packed copies
            return model.loss(input);
          };
          const double numeric = (loss_at(before + step) - loss_at(before - step)) / (2.0 * static_cast<double>(step));
          loss_at(before);
          CHECK(std::fabs(numeric - static_cast<double>(parameter->grad.data()[i])) <= 2e-2 * largest + 2e-3);
        }
      }
      const bool nezha = method == Method::nezha_index || method == Method::nezha_signed;
      CHECK((checked > 0) == !nezha);
    }
  }
}

TEST_CASE("with every method an example has the same bits alone and in a batch, kept or recomputed", "[nn]") {
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    DenseConfig config = with_method(method);
    Model model(config);
    const std::vector<float> batch = model.states(tokens({some_ids(5), some_ids(21)}));
    const std::vector<float> alone = model.states(tokens({some_ids(21)}));
    CHECK(difference(rows(batch, 5, 21), alone) == 0.0);
    model.backward(tokens({some_ids(21)}));
    config.grad_checkpointing_period = 1;
    Model recomputed(config);
    recomputed.backward(tokens({some_ids(21)}));
    for (const auto& parameter : model.parameters.all()) {
      if (!parameter->grad) continue;
      const Tensor other = recomputed.parameters.find(parameter->name)->grad;
      REQUIRE(other);
      CHECK(std::memcmp(parameter->grad.data(), other.data(), static_cast<std::size_t>(other.size()) * 4) == 0);
    }
  }
}

TEST_CASE(
    "every method runs in bf16 and int8 where the processor offers them, near fp32 and with the bits of one alone",
    "[nn]") {
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!cpu_offers(compute)) continue;
    for (const Method method : kMethods) {
      CAPTURE(static_cast<int>(method), compute_type_name(compute));
      Model model(with_method(method)), reduced(with_method(method));
      reduced.encoder.release_kernels(compute);
      const std::vector<float> exact = model.states(tokens({some_ids(14), some_ids(33)}));
      const std::vector<float> both = reduced.states(tokens({some_ids(14), some_ids(33)}));
      // Rows are normalised: of size 1. Products of some ten rounded numbers, in two layers.
      CHECK(difference(exact, both) < 0.1);
      CHECK(difference(exact, both) > 0);
      CHECK(difference(rows(both, 14, 33), reduced.states(tokens({some_ids(33)}))) == 0);
    }
  }
}

TEST_CASE("settings of positions that cannot be meant are refused", "[nn]") {
  const auto refuses = [](DenseConfig config, const std::string& message) {
    CHECK_THROWS_WITH(config.validate(), Contains(message));
  };
  DenseConfig config = with_method(Method::shaw);
  config.max_absolute_position_embeddings = 64;
  refuses(config, "max_absolute_position_embeddings: expected 0 beside relative_positions");
  config = with_method(Method::shaw);
  config.relative_clip = -1;
  refuses(config, "relative_clip: expected an integer from 0 to 16777216 or null, got -1");
  config.relative_clip = 40000;
  refuses(config, "relative_clip: expected at most 32767 distances, got 40000");
  config = with_method(Method::huang2);
  config.relative_init = PositionConfig::TableInit::zeros;
  refuses(config, "relative_init: expected another than zeros");
  config = with_method(Method::t5);
  config.relative_buckets = 7;
  refuses(config, "relative_buckets: expected an even number from 4 on, got 7");
  config.relative_buckets = 2;
  refuses(config, "relative_buckets: expected an even number from 4 on, got 2");
  config.causal = true;
  config.relative_buckets = 3;
  refuses(config, "relative_buckets: expected a number from 4 on, got 3");
  config.relative_buckets = 100000;
  config.relative_max_distance = 1000000;
  refuses(config, "relative_buckets: expected at most 65536, got 100000");
  config.relative_buckets = 7;
  CHECK_NOTHROW(config.validate());
  config.causal = false;
  config.relative_buckets = 32;
  config.relative_max_distance = 8;
  refuses(config, "relative_max_distance: expected more than the 8 exact buckets of relative_buckets=32, got 8");
}

TEST_CASE("position methods have as many parameters as the specification counts, the head's size included", "[nn]") {
  using Sharing = PositionConfig::Sharing;
  const auto count = [](Method method, std::optional<std::int64_t> clip, Sharing sharing = Sharing::layer_head) {
    DenseConfig config = dense_config_preset("base");
    config.relative_sharing = sharing;
    config.vocab_size = 30522;
    config.max_absolute_position_embeddings = 0;
    config.relative_positions = method;
    config.relative_clip = clip;
    ParameterSet parameters;
    const DenseEncoder encoder(config, parameters);
    return parameters.count();
  };
  const std::int64_t none = count(Method::none, 511), layers = 12, heads = 12, hidden = 768;
  const auto added = [&](Method method, std::int64_t clip = 511) { return count(method, clip) - none; };
  CHECK(added(Method::shaw) == 9'427'968);  // 2n-1 rows of n = 512
  CHECK(added(Method::shaw, 64) == 1'188'864);
  CHECK(added(Method::shaw_values, 64) == 2 * 1'188'864);
  CHECK(added(Method::t5) == 384);
  CHECK(added(Method::huang1) == 73'728);
  CHECK(added(Method::huang2) == 147'312);
  CHECK(added(Method::huang3) == 9'427'968);
  CHECK(added(Method::huang4) == 9'427'968);
  // What the papers do not clip is not clipped unless the configuration says so: the same counts without relative_clip.
  const auto usual = [&](Method method) { return count(method, {}) - none; };
  CHECK(usual(Method::shaw) == 1'188'864);
  CHECK(usual(Method::huang1) == 73'728);
  CHECK(usual(Method::huang2) == 147'312);
  CHECK(usual(Method::huang3) == 9'427'968);
  CHECK(usual(Method::huang4) == 9'427'968);
  CHECK(added(Method::nezha_index) == 0);
  CHECK(added(Method::nezha_signed) == 0);
  CHECK(added(Method::etc, 64) == layers * 129 * (hidden + heads));
  // u is the query projection's bias, which every method has.
  CHECK(added(Method::transformer_xl) == 7'096'320 - layers * hidden);
  // One u and one v instead of one per layer.
  CHECK(count(Method::transformer_xl, 511) - count(Method::transformer_xl, 511, Sharing::model) ==
        2 * (layers - 1) * hidden);
}

TEST_CASE("without a relative_clip Transformer-XL tells all distances of 512 tokens apart", "[nn]") {
  const EncoderInput text = tokens({some_ids(90)});
  const auto states = [&](std::optional<std::int64_t> clip) {
    DenseConfig config = with_method(Method::transformer_xl);
    config.relative_clip = clip;
    return Model(config).states(text);
  };
  CHECK(difference(states({}), states(511)) == 0);
  CHECK(difference(states({}), states(64)) > 1e-5);
}

TEST_CASE("fresh queries of T5 are smaller by the root of the head size, which its scores are not divided by", "[nn]") {
  const auto deviation = [](Method method) {
    DenseConfig config = with_method(method);
    config.hidden_size = 64;
    config.initializer_range = 0.02;
    Model model(config);
    const Tensor& kernel = model.parameters.find("bert/encoder/layer_1/attention/self/query/kernel")->value;
    double squares = 0;
    for (std::int64_t i = 0; i < kernel.size(); ++i) squares += std::pow(static_cast<double>(kernel.data()[i]), 2);
    return std::sqrt(squares / static_cast<double>(kernel.size()));
  };
  CHECK(deviation(Method::t5) / deviation(Method::shaw) == Approx(1 / std::sqrt(32.0)).epsilon(1e-4));
}

TEST_CASE("odd widths of sinusoids are allowed, and warned of", "[nn]") {
  const test::TemporaryFolder folder;
  log::also_to_file(folder / "log.txt");
  DenseConfig odd = with_method(Method::nezha_signed);
  odd.att_size_per_head = 5;
  CHECK(Model(odd).states(tokens({some_ids(9)})).size() == 9 * 12);
  odd = with_method(Method::transformer_xl);
  odd.hidden_size = 13;
  odd.att_size_per_head = 6;
  CHECK(Model(odd).states(tokens({some_ids(9)})).size() == 9 * 13);
  const std::string said = read_file(folder / "log.txt");
  CHECK_THAT(said, Contains("nezha: a head size of D=5 leaves a sine without cosine") &&
                       Contains("transformer_xl: a width of H=13 leaves a last column of zeros"));
}

TEST_CASE("labels of an input select rows of ETC's tables, as many as a byte can tell apart", "[nn]") {
  DenseConfig config = with_method(Method::etc);
  const EncoderInput plain = tokens({some_ids(9)});
  EncoderInput labelled = tokens({some_ids(9)});
  labelled.labels.l2l = Buffer<std::uint8_t>(9 * 17, Purpose::labels);
  const auto label_all = [&](std::int64_t clip) {
    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t j = 0; j < 9; ++j) {
        labelled.labels.l2l[i * 17 + j - i + 8] = static_cast<std::uint8_t>(sparse::relative_id(j - i, clip));
      }
    }
  };
  std::fill(labelled.labels.l2l.begin(), labelled.labels.l2l.end(), sparse::kMasked);
  label_all(6);
  Model model(config);
  CHECK(difference(model.states(labelled), model.states(plain)) < 1e-5);
  label_all(1);  // different from the labels of the distances
  CHECK(difference(model.states(labelled), model.states(plain)) > 1e-3);
  config.relative_clip = 127;  // 255 rows: labels fit a byte, whose value 255 means masked
  CHECK(Model(config).states(labelled).size() == 9 * 12);
  config.relative_clip = 128;
  CHECK_THROWS_WITH(
      Model(config).states(labelled),
      Contains("relative labels: expected R from 0 to 255, got 257 (relative_clip at most 127, or no listed labels)"));
}

TEST_CASE("settings of positions survive writing and reading", "[nn]") {
  for (const Method method : kMethods) {
    DenseConfig config = with_method(method);
    config.relative_sharing = PositionConfig::Sharing::model;
    config.xl_position_bias = false;
    const ModelConfig read = model_config_from_json(config.to_json(), "test", UnknownKeys::refuse);
    CHECK(read->to_json() == config.to_json());
  }
}

}  // namespace
}  // namespace etc
