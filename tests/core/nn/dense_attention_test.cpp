// A dense encoder's kinds of attention: agreement with references, permitted dependencies, rejected configurations.
#include "etc_core/nn/dense_attention.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using Attention = DenseConfig::Attention;
using test::sequences;

DenseConfig config_of(Attention attention) {
  DenseConfig config = test::small_dense();
  config.use_residual_attention = false;
  config.max_absolute_position_embeddings = 128;
  config.hidden_dropout_prob = 0;
  config.attention = attention;
  if (attention == Attention::window) config.local_radius = 5;
  if (attention == Attention::bigbird) config.bigbird_block_size = 4;
  if (attention == Attention::performer) {
    config.performer_features = 20;
    config.attention_probs_dropout_prob = 0;
  }
  return config;
}

const std::vector<Attention>& kinds() {
  static const std::vector<Attention> all = {Attention::full, Attention::window, Attention::bigbird,
                                             Attention::performer};
  return all;
}

Tensor states_of(const DenseConfig& config, const EncoderInput& input, bool packed = false) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  if (packed) encoder.release_kernels();
  Tape tape(Recording::off);
  return encoder.forward(tape, input, {}).long_states.value();
}

bool same_rows(const Tensor& all, std::int64_t first, const Tensor& part) {
  const auto bytes = static_cast<std::size_t>(part.size()) * sizeof(float);
  return std::memcmp(all.data() + first * all.cols(), part.data(), bytes) == 0;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    test::keep_worst(largest, std::fabs(static_cast<double>(a.data()[i]) - b.data()[i]));
  }
  return largest;
}

// All gradients of one training step in one array.
std::vector<float> gradients_of(const DenseConfig& config, const EncoderInput& input, std::int64_t step = 0) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(5);
  ForwardOptions options;
  options.training = true;
  options.seed = 9;
  options.step = step;
  Tape tape(Recording::on);
  {
    Var y = encoder.forward(tape, input, options).long_states;
    for (std::int64_t i = 0; i < y.value().size(); ++i) y.grad().data()[i] = static_cast<float>(i % 7) - 3.0f;
  }
  tape.backward();
  std::vector<float> all;
  for (const auto& parameter : parameters.all()) {
    CAPTURE(parameter->name);
    REQUIRE(parameter->grad);
    all.insert(all.end(), parameter->grad.data(), parameter->grad.data() + parameter->grad.size());
  }
  return all;
}

TEST_CASE("a sequence has the same bits alone and beside others in every kind of attention, packed or not", "[nn]") {
  const std::vector<std::int64_t> lengths = {70, 1, 33};
  for (const Attention kind : kinds()) {
    const DenseConfig config = config_of(kind);
    CAPTURE(static_cast<int>(kind));
    const Tensor all = states_of(config, sequences(lengths));
    CHECK(same_rows(states_of(config, sequences(lengths), true), 0, all));
    std::int64_t first = 0;
    for (const std::int64_t length : lengths) {
      CHECK(same_rows(all, first, states_of(config, sequences({length}))));
      first += length;
    }
  }
}

TEST_CASE("a step of training has the same gradients with layers computed again, in every kind of attention", "[nn]") {
  for (const Attention kind : kinds()) {
    for (const bool scores : {false, true}) {
      DenseConfig config = config_of(kind);
      config.use_residual_attention = scores;
      CAPTURE(static_cast<int>(kind), scores);
      const std::vector<float> kept = gradients_of(config, sequences({40, 9}));
      config.grad_checkpointing_period = 1;
      CHECK(kept == gradients_of(config, sequences({40, 9})));
    }
  }
}

TEST_CASE("relative positions act in blocks of each head as they do in full attention", "[nn]") {
  for (const auto method : {DenseConfig::Method::shaw_values, DenseConfig::Method::t5, DenseConfig::Method::huang4}) {
    DenseConfig full = config_of(Attention::full), blocks = config_of(Attention::bigbird);
    for (DenseConfig* config : {&full, &blocks}) {
      config->relative_positions = method;
      config->max_absolute_position_embeddings = 0;
      config->relative_clip = 6;
    }
    // With 7 blocks every block is seen; with 30 not.
    CHECK(largest_difference(states_of(full, sequences({28})), states_of(blocks, sequences({28}))) < 1e-3);
    CHECK(largest_difference(states_of(full, sequences({120})), states_of(blocks, sequences({120}))) > 1e-3);
    CHECK(gradients_of(blocks, sequences({120})).size() == gradients_of(full, sequences({120})).size());
  }
}

TEST_CASE("few blocks are full attention, and many features nearly", "[nn]") {
  const Tensor full = states_of(config_of(Attention::full), sequences({28}));
  CHECK(same_rows(states_of(config_of(Attention::by_radius), sequences({28})), 0, full));
  CHECK(largest_difference(states_of(config_of(Attention::bigbird), sequences({28})), full) < 1e-4);
  CHECK(largest_difference(states_of(config_of(Attention::window), sequences({28})), full) > 0.01);
  // Small weights, so that queries and keys are short, because the variance of the features grows with the exponential
  // of their squares.
  DenseConfig exact = config_of(Attention::full), features = config_of(Attention::performer);
  exact.initializer_range = features.initializer_range = 0.1;
  const Tensor estimated = states_of(exact, sequences({28}));
  const double few = largest_difference(states_of(features, sequences({28})), estimated);
  features.performer_features = 20000;
  CHECK(largest_difference(states_of(features, sequences({28})), estimated) < few / 4);
}

TEST_CASE("linear attention sums scores over the layers as full attention does", "[nn]") {
  const EncoderInput input = sequences({28, 5});
  const auto with_scores = [](Attention kind, bool causal, bool mean) {
    DenseConfig config = config_of(kind);
    config.initializer_range = 0.1;  // as above
    config.causal = causal;
    config.use_residual_attention = true;
    config.use_running_mean = mean;
    return config;
  };
  for (const bool causal : {false, true}) {
    for (const bool mean : {false, true}) {
      CAPTURE(causal, mean);
      DenseConfig linear = with_scores(Attention::performer, causal, mean);
      const Tensor exact = states_of(with_scores(Attention::full, causal, mean), input);
      const double few = largest_difference(states_of(linear, input), exact);
      linear.performer_features = 8000;
      const Tensor estimated = states_of(linear, input);
      const double many = largest_difference(estimated, exact);
      CHECK(many < few / 4);
      CHECK(largest_difference(states_of(linear, input, true), estimated) < 1e-5);
      // Other rules for the scores are farther away.
      DenseConfig other = with_scores(Attention::full, causal, !mean);
      CHECK(largest_difference(estimated, states_of(other, input)) > 2 * many);
      other.use_residual_attention = other.use_running_mean = false;
      CHECK(largest_difference(estimated, states_of(other, input)) > 2 * many);
    }
  }
}

TEST_CASE("random blocks and features follow their seed, and what may differ per head, layer and step does", "[nn]") {
  const EncoderInput input = sequences({120});
  const auto differ = [&](const DenseConfig& a, const DenseConfig& b) {
    return largest_difference(states_of(a, input), states_of(b, input)) > 1e-4;
  };
  for (const Attention kind : {Attention::bigbird, Attention::performer}) {
    DenseConfig seeded = config_of(kind);
    seeded.attention_seed = 1;
    CHECK(differ(seeded, config_of(kind)));
  }
  const DenseConfig heads = config_of(Attention::bigbird);  // by default every head draws its own blocks
  DenseConfig none = heads, layers = heads, both = heads;
  none.bigbird_per_head = layers.bigbird_per_head = false;
  layers.bigbird_per_layer = both.bigbird_per_layer = true;
  CHECK(differ(heads, none));
  CHECK(differ(layers, none));
  CHECK(differ(both, heads));
  CHECK(gradients_of(both, input).size() == gradients_of(none, input).size());

  DenseConfig redrawn = config_of(Attention::performer);
  CHECK(gradients_of(redrawn, input, 0) == gradients_of(redrawn, input, 100));
  redrawn.performer_redraw = 50;
  CHECK(gradients_of(redrawn, input, 0) == gradients_of(redrawn, input, 49));
  CHECK(gradients_of(redrawn, input, 0) != gradients_of(redrawn, input, 50));
  DenseConfig root = config_of(Attention::performer);
  root.performer_norms = sparse::PerformerDraw::Norms::root;
  CHECK(differ(root, config_of(Attention::performer)));
}

TEST_CASE("kinds of attention that do not fit the rest of a configuration are refused", "[nn]") {
  const auto refused = [](Attention kind, const std::function<void(DenseConfig&)>& change) -> std::string {
    DenseConfig config = config_of(kind);
    change(config);
    try {
      config.validate();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK_THAT(refused(Attention::window, [](auto& c) { c.local_radius = 0; }),
             Contains("attention: window: expected a local_radius of at least 1, got 0"));
  CHECK_THAT(refused(Attention::full, [](auto& c) { c.local_radius = 3; }), Contains("local_radius: expected 0"));
  CHECK_THAT(refused(Attention::bigbird, [](auto& c) { c.local_radius = 3; }), Contains("local_radius: expected 0"));
  CHECK_THAT(refused(Attention::bigbird, [](auto& c) { c.bigbird_block_size = 0; }), Contains("bigbird_block_size"));
  CHECK_THAT(refused(Attention::bigbird, [](auto& c) { c.bigbird_per_layer = c.use_residual_attention = true; }),
             Contains("bigbird_per_layer: expected false with use_residual_attention, got true"));
  CHECK_THAT(refused(Attention::performer, [](auto& c) { c.attention_probs_dropout_prob = 0.1; }),
             Contains("attention_probs_dropout_prob: expected 0 with attention performer"));
  CHECK_THAT(refused(Attention::performer,
                     [](auto& c) {
                       c.relative_positions = DenseConfig::Method::shaw;
                       c.max_absolute_position_embeddings = 0;
                     }),
             Contains("relative_positions: expected none with attention performer, got shaw"));
  CHECK_THAT(refused(Attention::performer, [](auto& c) { c.local_radius = 3; }),
             Contains("local_radius: expected 0 with this kind of attention, got 3"));
  CHECK_THAT(refused(Attention::full, [](auto& c) { c.bigbird_per_layer = true; }),
             Contains("bigbird_per_layer: expected attention bigbird beside it"));
  // Every file has it, those of older programs with another default.
  CHECK(refused(Attention::full, [](auto& c) { c.bigbird_per_head = false; }) == "nothing");
  CHECK_THAT(refused(Attention::full, [](auto& c) { c.performer_redraw = 10; }),
             Contains("performer_redraw: expected attention performer beside it"));
  CHECK_THAT(refused(Attention::window, [](auto& c) { c.attention_seed = 1; }),
             Contains("attention_seed: expected attention bigbird or performer beside it"));
  for (const auto& [kind, message] : {std::pair(Attention::bigbird, "bigbird, whose blocks say who sees whom, got 153"),
                                      {Attention::performer, "performer, which has no pairs, got 153"}}) {
    for (const std::uint8_t label : {std::uint8_t{0}, sparse::kMasked}) {  // selecting rows, or hard masks
      EncoderInput input = sequences({9});
      input.labels.l2l = Buffer<std::uint8_t>(9 * 17, Purpose::labels);
      std::fill(input.labels.l2l.begin(), input.labels.l2l.end(), label);
      CHECK_THROWS_WITH(states_of(config_of(kind), input),
                        Contains(std::string("labels.l2l: expected none with attention ") + message));
    }
  }
}

// The ledger at the peak of a second training step.
MemoryReport peak_of(const DenseConfig& config, const EncoderInput& input) {
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  if (counting()) {
    for (const auto& parameter : parameters.all()) parameter->allocate();
  } else {
    parameters.initialize(1);
  }
  ForwardOptions options;
  options.training = true;
  for (int step = 0; step < 2; ++step) {
    parameters.drop_gradients();
    memory_ledger::reset_peak();
    Tape tape(Recording::on);
    {
      Var y = encoder.forward(tape, input, options).long_states;
      std::fill_n(y.grad().data(), counting() ? 0 : y.grad().size(), 1e-3f);
    }
    tape.backward();
  }
  return memory_ledger::report();
}

TEST_CASE("the forecast of memory is what the ledger measures in every kind of attention", "[nn]") {
  register_cpu_backend();
  // The last is linear attention with scores, whose joined heads count.
  std::vector<Attention> all = kinds();
  all.push_back(Attention::performer);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Attention kind = all[i];
    DenseConfig config = config_of(kind);
    config.use_residual_attention = i == kinds().size();
    config.max_absolute_position_embeddings = 1200;
    const EncoderInput input = sequences({1200, 300});
    CAPTURE(static_cast<int>(kind));
    const MemoryReport expected = count_memory([&] { peak_of(config, input); });
    const MemoryReport measured = peak_of(config, input);
    for (int p = 0; p < kPurposeCount; ++p) {
      CAPTURE(purpose_name(static_cast<Purpose>(p)), expected.at_peak[p], measured.at_peak[p]);
      // Padded tiles of products in worker threads are not counted (count_memory.h).
      const std::int64_t left_out = p == static_cast<int>(Purpose::scratch) ? 2 * 64 * 5000 * 4 * thread_count() : 0;
      CHECK(std::abs(measured.at_peak[p] - expected.at_peak[p]) <= left_out);
    }
    CHECK(measured.peak > 1'000'000);
  }
}

TEST_CASE("a kind of attention survives writing and reading", "[nn]") {
  DenseConfig config = config_of(Attention::performer);
  config.performer_norms = sparse::PerformerDraw::Norms::root;
  config.performer_redraw = 7;
  config.attention_seed = 12;
  const Json json = config.to_json();
  CHECK(json.at("attention") == "performer");
  Json without_kind = json;
  without_kind.erase("kind");
  CHECK(dense_config_from_json(without_kind, "config", UnknownKeys::refuse).to_json() == json);
}

}  // namespace
}  // namespace etc
