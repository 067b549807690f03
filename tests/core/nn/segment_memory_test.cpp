// Causal encoders and their memory of earlier segments: visible tokens, equality with one pass over the whole text,
// gradients, neighbours, rejected inputs.
#include "etc_core/nn/segment_memory.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "etc_core/base/json.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using Attention = DenseConfig::Attention;
using Method = DenseConfig::Method;
using test::sequences;
using test::SmallDense;

DenseConfig causal_config(Method method = Method::transformer_xl) {
  DenseConfig config = test::small_dense();
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.max_absolute_position_embeddings = 0;
  config.causal = true;
  config.memory_length = 32;
  config.relative_positions = method;
  config.relative_clip = 6;
  config.relative_buckets = 8;
  config.relative_max_distance = 12;
  return config;
}

// Texts of these lengths, and tokens [first, first + count) of each, as far as they exist.
const std::vector<std::int64_t> kTexts = {14, 9};
EncoderInput segment_of(const EncoderInput& texts, std::int64_t first, std::int64_t count) {
  EncoderInput input;
  for (std::size_t b = 0; b + 1 < texts.long_offsets.size(); ++b) {
    const std::int64_t begin = std::min(texts.long_offsets[b] + first, texts.long_offsets[b + 1]);
    const std::int64_t end = std::min(begin + count, texts.long_offsets[b + 1]);
    input.token_ids.insert(input.token_ids.end(), texts.token_ids.begin() + begin, texts.token_ids.begin() + end);
    input.segment_ids.insert(input.segment_ids.end(), texts.segment_ids.begin() + begin,
                             texts.segment_ids.begin() + end);
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(0);
  }
  return input;
}

EncoderStates run(SmallDense& model, const EncoderInput& input) {
  Tape tape(Recording::off);
  return model.encoder.forward(tape, input, {});
}

// States of the texts read in segments, each with the memory of the previous segments; rows in the order of one pass
// over the texts.
std::vector<float> in_segments(SmallDense& model, const EncoderInput& texts, std::int64_t length) {
  const std::int64_t H = model.encoder.config().hidden_size;
  std::vector<float> all(static_cast<std::size_t>(texts.long_tokens() * H));
  LayerMemory memory;
  for (std::int64_t first = 0; first < 14; first += length) {
    EncoderInput input = segment_of(texts, first, length);
    input.memory = memory;
    const EncoderStates states = run(model, input);
    for (std::size_t b = 0; b + 1 < input.long_offsets.size(); ++b) {
      const float* const from = states.long_states.value().data() + input.long_offsets[b] * H;
      const std::int64_t count = (input.long_offsets[b + 1] - input.long_offsets[b]) * H;
      std::copy(from, from + count, all.begin() + (texts.long_offsets[b] + first) * H);
    }
    memory = states.memory;
  }
  return all;
}

double largest_difference(const std::vector<float>& a, const Tensor& b) {
  REQUIRE(std::ssize(a) == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double off = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b.data()[i]));
    if (!(off <= largest)) largest = off;
  }
  return largest;
}

TEST_CASE("tokens of a causal encoder see nothing that is after them, in every kind of attention", "[nn]") {
  for (const Attention kind : {Attention::full, Attention::window, Attention::performer}) {
    DenseConfig config = causal_config(kind == Attention::performer ? Method::none : Method::shaw);
    config.attention = kind;
    config.memory_length = 0;
    config.use_residual_attention = kind != Attention::performer;
    if (kind == Attention::window) config.local_radius = 4;
    SmallDense model(config);
    EncoderInput input = sequences({40});
    const Tensor before = run(model, input).long_states.value();
    input.token_ids[25] = (input.token_ids[25] + 1) % 30;
    const Tensor after = run(model, input).long_states.value();
    CAPTURE(static_cast<int>(kind));
    const auto row = static_cast<std::size_t>(config.hidden_size) * sizeof(float);
    CHECK(std::memcmp(before.data(), after.data(), 25 * row) == 0);
    CHECK(std::memcmp(before.data() + 26 * 24, after.data() + 26 * 24, row) != 0);
  }
}

TEST_CASE("segments with the memory of all before them are one pass over the text, with every position method",
          "[nn]") {
  const EncoderInput texts = sequences(kTexts);
  for (const Method method : {Method::none, Method::shaw_values, Method::t5, Method::transformer_xl, Method::huang3,
                              Method::huang4, Method::nezha_index, Method::etc}) {
    for (const auto norm : {DenseConfig::Norm::post_ln, DenseConfig::Norm::pre_ln}) {
      DenseConfig config = causal_config(method);
      config.norm = norm;
      config.use_residual_attention = norm == DenseConfig::Norm::post_ln;  // scores belong to pairs
      SmallDense model(config);
      const Tensor whole = run(model, texts).long_states.value();
      CAPTURE(static_cast<int>(method), static_cast<int>(norm));
      CHECK(largest_difference(in_segments(model, texts, 5), whole) < 2e-4);
      CHECK(largest_difference(in_segments(model, texts, 1), whole) < 2e-4);
    }
  }
}

TEST_CASE("a window no longer than the memory sees the same keys however the text is cut", "[nn]") {
  // `same_length` of Transformer-XL: every query sees itself and memory_length keys.
  const EncoderInput texts = sequences(kTexts);
  DenseConfig config = causal_config();
  config.memory_length = config.local_radius = 4;
  SmallDense model(config);
  const Tensor whole = run(model, texts).long_states.value();
  CHECK(largest_difference(in_segments(model, texts, 5), whole) < 2e-4);
  CHECK(largest_difference(in_segments(model, texts, 2), whole) < 2e-4);
  // A shorter memory changes the result.
  config.memory_length = 2;
  SmallDense forgetful(config);
  CHECK(largest_difference(in_segments(forgetful, texts, 5), whole) > 1e-2);
}

TEST_CASE("the memory afterwards is the last inputs of every layer's attention", "[nn]") {
  DenseConfig config = causal_config();
  config.memory_length = 6;
  SmallDense model(config);
  const EncoderInput texts = sequences(kTexts);
  EncoderInput input = segment_of(texts, 0, 4);
  std::vector<Tensor> inputs;  // of the layers, for the first segment
  Tape tape(Recording::off);
  ForwardOptions options;
  options.watch = [&](std::int64_t, const Tensor& states, const Tensor&, const ExternalScores&) {
    inputs.push_back(states.clone());
  };
  const LayerMemory first = model.encoder.forward(tape, input, options).memory;
  CHECK(first.offsets == std::vector<std::int64_t>{0, 4, 8});
  REQUIRE(first.states.size() == 3);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const Tensor& kept = first.states[layer];
    CHECK(std::memcmp(kept.data(), inputs[layer].data(), static_cast<std::size_t>(kept.size()) * 4) == 0);
  }
  input = segment_of(texts, 4, 4);
  input.memory = first;
  const LayerMemory second = run(model, input).memory;
  CHECK(second.offsets == std::vector<std::int64_t>{0, 6, 12});
  // Rows 2 and 3 of the first segment, then four new ones.
  CHECK(std::memcmp(second.states[1].data(), first.states[1].data() + 2 * 24, 2 * 24 * 4) == 0);
}

// A second segment with the memory of a first one.
EncoderInput second_segment(SmallDense& model, const EncoderInput& texts) {
  EncoderInput input = segment_of(texts, 5, 4);
  input.memory = run(model, segment_of(texts, 0, 5)).memory;
  return input;
}

TEST_CASE("gradients with memory equal central differences in which the memory stays, kept or computed again", "[nn]") {
  for (const auto norm : {DenseConfig::Norm::post_ln, DenseConfig::Norm::pre_ln}) {
    DenseConfig config = causal_config();
    config.norm = norm;
    config.num_hidden_layers = 2;
    SmallDense model(config);
    const EncoderInput input = second_segment(model, sequences(kTexts));
    const test::DenseGradients gradients = model.gradients(input, {});
    const auto loss = [&] {
      const Tensor states = model.states(input);
      double sum = 0;
      for (std::int64_t i = 0; i < states.size(); ++i) {
        sum += static_cast<double>(states.data()[i]) * (0.5 - static_cast<double>(i % 13) / 12);
      }
      return sum;
    };
    for (const auto& parameter : model.parameters.all()) {
      if (parameter->name.find("layer_") == std::string::npos) continue;
      CAPTURE(parameter->name);
      const std::vector<float>& own = gradients.at(parameter->name);
      double largest = 0;
      for (const float g : own) largest = std::max(largest, static_cast<double>(std::fabs(g)));
      for (std::int64_t i = 0; i < parameter->size(); i += 1 + parameter->size() / 3) {
        float& value = parameter->value.data()[i];
        const float before = value, step = 1e-2f;
        const auto at = [&](float x) {
          value = x;
          ++parameter->version;  // packed copies
          return loss();
        };
        const double numeric = (at(before + step) - at(before - step)) / (2.0 * static_cast<double>(step));
        at(before);
        CHECK(std::fabs(numeric - static_cast<double>(own[static_cast<std::size_t>(i)])) <= 2e-2 * largest + 4e-3);
      }
    }
    config.grad_checkpointing_period = 1;
    SmallDense again(config);
    CHECK(again.gradients(input, {}) == gradients);
  }
}

TEST_CASE("an example with memory has the same bits alone and in a batch, packed or not", "[nn]") {
  SmallDense model(causal_config());
  const EncoderInput texts = sequences(kTexts);
  const EncoderInput batch = second_segment(model, texts);
  const Tensor all = run(model, batch).long_states.value();
  EncoderInput alone = segment_of(batch, 0, 0);
  alone.long_offsets = {0, batch.long_offsets[2] - batch.long_offsets[1]};
  alone.global_offsets = {0, 0};
  alone.token_ids.assign(batch.token_ids.begin() + batch.long_offsets[1], batch.token_ids.end());
  alone.segment_ids.assign(batch.segment_ids.begin() + batch.long_offsets[1], batch.segment_ids.end());
  alone.sample_ordinals = {1};
  alone.memory.offsets = {0, batch.memory.offsets[2] - batch.memory.offsets[1]};
  for (const Tensor& states : batch.memory.states) {
    float* const from = states.data() + batch.memory.offsets[1] * 24;
    alone.memory.states.push_back(Tensor::from(std::vector<float>(from, states.data() + states.size()),
                                               {alone.memory.offsets[1], 24}, Purpose::activations));
  }
  const Tensor one = run(model, alone).long_states.value();
  const auto bytes = static_cast<std::size_t>(one.size()) * 4;
  CHECK(std::memcmp(all.data() + batch.long_offsets[1] * 24, one.data(), bytes) == 0);
  model.encoder.release_kernels();
  const Tensor packed = run(model, batch).long_states.value();
  CHECK(std::memcmp(all.data(), packed.data(), static_cast<std::size_t>(all.size()) * 4) == 0);
}

TEST_CASE("causal settings and memory that cannot be meant are refused", "[nn]") {
  const auto refused = [](const std::function<void(DenseConfig&)>& change, const std::string& message) {
    DenseConfig config = causal_config();
    change(config);
    CHECK_THROWS_WITH(config.validate(), Contains(message));
  };
  refused([](DenseConfig& c) { c.causal = false; }, "memory_length: expected causal beside it, got 32");
  refused(
      [](DenseConfig& c) {
        c.relative_positions = Method::none;
        c.max_absolute_position_embeddings = 64;
      },
      "memory_length: expected max_absolute_position_embeddings 0 beside it");
  refused(
      [](DenseConfig& c) {
        c.attention = Attention::performer;
        c.relative_positions = Method::none;
        c.use_residual_attention = false;
      },
      "memory_length: expected 0 with attention performer");
  refused([](DenseConfig& c) { c.attention = Attention::bigbird; }, "causal: expected false with attention bigbird");
  refused(
      [](DenseConfig& c) {
        c.relative_positions = Method::t5;
        c.relative_max_distance = 4;
      },
      "relative_max_distance: expected more than the 4 exact buckets");

  const EncoderInput texts = sequences(kTexts);
  SmallDense model(causal_config());
  const auto refuses = [&](const DenseConfig& config, const std::function<void(EncoderInput&)>& change,
                           const std::string& message) {
    EncoderInput input = second_segment(model, texts);
    change(input);
    SmallDense other(config);
    CHECK_THROWS_WITH(run(other, input), Contains(message));
  };
  DenseConfig both = causal_config(), none = causal_config(), little = causal_config();
  both.causal = false;
  both.memory_length = none.memory_length = 0;
  little.memory_length = 4;
  const auto same = [](EncoderInput&) {};
  refuses(both, same, "memory: expected none, since the encoder is not causal: it sees both directions, got 10 rows");
  refuses(none, same, "memory: expected none, since memory_length is 0, got 10 rows");
  refuses(little, same, "memory.offsets: example 0: expected 0 … memory_length=4 rows, got 5");
  refuses(
      causal_config(), [](EncoderInput& i) { i.memory.offsets.pop_back(); }, "memory.offsets: expected [B+1=3]");
  refuses(
      causal_config(), [](EncoderInput& i) { i.memory.states.pop_back(); },
      "memory.states: expected one of each of 3 layers, got 2");
  refuses(
      causal_config(),
      [](EncoderInput& i) {
        i.memory.states[1] = Tensor::zeros({3, 24}, Purpose::activations);
      },
      "memory.states: layer 1: expected");
  refuses(
      causal_config(), [](EncoderInput& i) { i.labels.l2l = Buffer<std::uint8_t>(8, Purpose::labels); },
      "labels.l2l: expected none with causal, which says who sees whom, got 8");
}

TEST_CASE("norms by the root mean square and exact gelu have gradients that equal central differences", "[nn]") {
  DenseConfig config = test::small_dense();
  config.num_hidden_layers = 2;
  config.norm = DenseConfig::Norm::pre_ln;
  config.normalization = DenseConfig::Normalization::rms_norm;
  config.layer_norm_epsilon = 1e-3;
  config.hidden_act = "gelu_erf";
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  SmallDense model(config);
  const EncoderInput input = sequences({9, 4});
  const test::DenseGradients gradients = model.gradients(input, {});
  DenseConfig usual = config;
  usual.normalization = DenseConfig::Normalization::layer_norm;
  const Tensor states = model.states(input), others = SmallDense(usual).states(input);
  CHECK(largest_difference({others.data(), others.data() + others.size()}, states) > 1e-2);
  const auto loss = [&] {
    const Tensor y = model.states(input);
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
      sum += static_cast<double>(y.data()[i]) * (0.5 - static_cast<double>(i % 13) / 12);
    }
    return sum;
  };
  for (const char* name : {"bert/embeddings/LayerNorm/gamma", "bert/encoder/layer_0/attention/output/LayerNorm/gamma",
                           "bert/encoder/layer_1/intermediate/dense/kernel", "bert/encoder/final/LayerNorm/gamma"}) {
    CAPTURE(name);
    Parameter& parameter = *model.parameters.find(name);
    for (std::int64_t i = 0; i < parameter.size(); i += 1 + parameter.size() / 6) {
      float& value = parameter.value.data()[i];
      const float before = value, step = 1e-2f;
      const auto at = [&](float x) {
        value = x;
        ++parameter.version;
        return loss();
      };
      const double numeric = (at(before + step) - at(before - step)) / (2.0 * static_cast<double>(step));
      at(before);
      CHECK(numeric == Approx(gradients.at(name)[static_cast<std::size_t>(i)]).epsilon(2e-2).margin(5e-3));
    }
  }
}

}  // namespace
}  // namespace etc
