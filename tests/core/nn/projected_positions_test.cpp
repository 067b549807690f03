// Transformer-XL's tables cached between passes of inference: the same bits as tables computed in every pass, also
// after weights change, and the forecast memory.
#include "etc_core/nn/projected_positions.h"

#include <thread>

#include "etc_core/base/counting.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/profiler.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/positions.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using test::sequences;
using test::SmallDense;

constexpr std::int64_t kLayers = 3;

DenseConfig xl_config(std::int64_t clip = 20) {
  DenseConfig config = test::small_dense();
  config.max_absolute_position_embeddings = 0;
  config.relative_positions = PositionConfig::Method::transformer_xl;
  config.relative_clip = clip;
  return config;
}

std::vector<float> values(const Tensor& of) {
  return {of.data(), of.data() + of.size()};
}

// Position biases are initially 0, so a missing bias would go unnoticed.
void fill(Parameter& parameter, std::uint64_t seed) {
  const std::vector<float> numbers = test::random_floats(parameter.size(), seed);
  std::copy(numbers.begin(), numbers.end(), parameter.value.data());
  ++parameter.version;
}

void fill_biases(ParameterSet& parameters) {
  for (const auto& parameter : parameters.all()) {
    if (parameter->name.ends_with("relative_position_bias") || parameter->name.ends_with("query/bias")) {
      fill(*parameter, 7);
    }
  }
}

// An encoder whose biases are not 0.
struct ProjectedModel : SmallDense {
  explicit ProjectedModel(const DenseConfig& config) : SmallDense(config) { fill_biases(parameters); }
  std::vector<float> states_of(const EncoderInput& input) { return values(states(input)); }
};

// States of a new encoder with the same weights.
std::vector<float> states_of_fresh(ParameterSet& weights, const DenseConfig& config, const EncoderInput& input) {
  ProjectedModel fresh(config);
  for (const auto& parameter : fresh.parameters.all()) {
    parameter->value = weights.find(parameter->name)->value.clone();
    ++parameter->version;
  }
  return fresh.states_of(input);
}

// Number of layers whose tables are computed during the call.
template <typename Body>
std::int64_t tables_made(const Body& body) {
  profiler::start();
  body();
  profiler::stop();
  std::int64_t calls = 0;
  for (const profiler::Row& row : profiler::rows()) calls += row.name == "position_bias" ? row.calls : 0;
  return calls;
}

TEST_CASE("kept tables of Transformer-XL have the bits of computed ones, and follow every weight's changes", "[nn]") {
  register_cpu_backend();
  constexpr std::int64_t kHidden = 20, kHeads = 2, kSize = 6, kClip = 9;
  for (const bool causal : {false, true}) {
    for (const bool position_bias : {false, true}) {
      CAPTURE(causal, position_bias);
      ParameterSet set;
      std::vector<Parameter*> query_biases;
      for (std::int64_t i = 0; i < kLayers; ++i) {
        query_biases.push_back(&set.add("query_bias_" + std::to_string(i), {kHeads * kSize}, kOnes));
      }
      PositionConfig config;
      config.causal = causal;
      config.relative_positions = PositionConfig::Method::transformer_xl;
      config.relative_clip = kClip;
      config.xl_position_bias = position_bias;
      const PositionSizes sizes{kLayers, kHeads, kSize, kHidden, kOnes, truncated_normal(0.5)};
      const Positions positions(set, "", config, sizes, query_biases);
      set.initialize(3);

      ProjectedPositions kept;
      const auto check_all = [&] {
        for (std::int64_t i = 0; i < kLayers; ++i) {
          CAPTURE(i);
          Tape tape(Recording::off);
          const RelativeParameters expected = positions.tables(tape, i, nullptr);
          const RelativeParameters got = positions.tables(tape, i, &kept), again = positions.tables(tape, i, &kept);
          CHECK(got.vectors.value().shape() == std::vector<std::int64_t>{(causal ? 1 : 2) * kClip + 1, kHeads * kSize});
          CHECK(test::same_bits(values(got.vectors.value()), values(expected.vectors.value())));
          CHECK(test::same_bits(values(got.biases.value()), values(expected.biases.value())));
          for (const auto& [once, twice] : {std::pair(got.vectors, again.vectors), {got.biases, again.biases}}) {
            CHECK(once.value().purpose() == Purpose::weights);
            CHECK(twice.value().shares_memory_with(once.value()));
          }
        }
      };
      check_all();
      for (const auto& parameter : set.all()) {
        CAPTURE(parameter->name);
        fill(*parameter, 11);
        check_all();
      }
      kept.clear();
      check_all();
    }
  }
}

TEST_CASE("Transformer-XL's tables are made in the first pass of inference only, for texts of all lengths", "[nn]") {
  const DenseConfig config = xl_config();
  ProjectedModel model(config);
  const EncoderInput text = sequences({9}), longer = sequences({50, 3});  // beyond the clip
  std::vector<float> first, again, of_longer;
  CHECK(tables_made([&] { first = model.states_of(text); }) == kLayers);
  CHECK(tables_made([&] { again = model.states_of(text); }) == 0);
  CHECK(tables_made([&] { of_longer = model.states_of(longer); }) == 0);
  CHECK(test::same_bits(again, first));
  CHECK(test::same_bits(of_longer, states_of_fresh(model.parameters, config, longer)));
  CHECK(test::same_bits(model.states_of(text), first));
}

TEST_CASE("training steps between passes empty what is kept of positions, and new weights are used", "[nn]") {
  for (const std::int64_t period : {0, 1}) {
    CAPTURE(period);
    DenseConfig config = xl_config();
    config.grad_checkpointing_period = period;  // 1: layers first run on a tape that does not record
    ProjectedModel model(config);
    const EncoderInput text = sequences({9, 24});
    const auto held = [] { return memory_ledger::report().current[static_cast<int>(Purpose::weights)]; };
    const std::int64_t before = held();
    for (int step = 0; step < 2; ++step) {
      const std::vector<float> old = model.states_of(text);
      const std::int64_t rows = 2 * config.clip() + 1;
      CHECK(held() - before >= kLayers * rows * (config.attention_size() + config.num_attention_heads) * 4);
      CHECK(tables_made([&] { model.gradients(text, {}); }) == (period == 0 ? kLayers : 2 * kLayers - 1));
      CHECK(held() == before);
      for (const auto& parameter : model.parameters.all()) {
        for (std::int64_t i = 0; parameter->grad && i < parameter->size(); ++i) {
          parameter->value.data()[i] -= 0.01f * parameter->grad.data()[i];
        }
        ++parameter->version;
      }
      const std::vector<float> trained = model.states_of(text);
      CHECK(!test::same_bits(trained, old));
      CHECK(test::same_bits(trained, states_of_fresh(model.parameters, config, text)));
    }
  }
}

TEST_CASE("a released encoder has its tables of Transformer-XL in place of the projections", "[nn]") {
  const DenseConfig config = xl_config();
  const EncoderInput text = sequences({9}), longer = sequences({50, 3});
  ProjectedModel kept(config), released(config);
  CHECK(tables_made([&] { released.encoder.release_kernels(); }) == kLayers);
  CHECK(!released.parameters.find("bert/encoder/layer_1/attention/self/relative_projection")->value);
  const std::vector<float> expected = kept.states_of(longer);
  const auto check_states = [&] {
    CHECK(tables_made([&] { CHECK(test::same_bits(released.states_of(longer), expected)); }) == 0);
    CHECK(test::same_bits(released.states_of(text), kept.states_of(text)));
  };
  check_states();
  CHECK_THROWS_WITH(released.gradients(text, {}), Contains("the kernels were released"));
  check_states();
  released.encoder.release_kernels();  // again: there is nothing left to do
  check_states();

  std::vector<std::vector<float>> results(2);
  std::vector<std::thread> threads;
  for (std::vector<float>& result : results) {
    threads.emplace_back([&] {
      for (int pass = 0; pass < 5; ++pass) result = released.states_of(longer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) CHECK(test::same_bits(result, expected));
}

TEST_CASE("kept tables of Transformer-XL serve products of every number type with the same bits", "[nn]") {
  const EncoderInput text = sequences({9, 33});
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!cpu_offers(compute)) continue;
    CAPTURE(compute_type_name(compute));
    ProjectedModel model(xl_config());
    const std::vector<float> exact = model.states_of(text);
    model.encoder.release_kernels(compute);
    const std::vector<float> first = model.states_of(text);
    CHECK(!test::same_bits(first, exact));
    CHECK(test::same_bits(model.states_of(text), first));
  }
}

// Peak of a second inference pass.
MemoryReport peak_of(const DenseConfig& config, const EncoderInput& input, bool release) {
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  if (counting()) {
    for (const auto& parameter : parameters.all()) parameter->allocate();
  } else {
    parameters.initialize(1);
  }
  if (release) encoder.release_kernels();
  for (int call = 0; call < 2; ++call) {
    memory_ledger::reset_peak();
    Tape tape(Recording::off);
    encoder.forward(tape, input, {});
  }
  return memory_ledger::report();
}

TEST_CASE("the forecast of memory has the kept tables of Transformer-XL", "[nn][plain]") {
  register_cpu_backend();
  const auto at = [](const MemoryReport& report, Purpose purpose) {
    return report.at_peak[static_cast<std::size_t>(purpose)];
  };
  const EncoderInput input = sequences({150, 40});
  std::int64_t weights[2] = {};
  for (const bool release : {false, true}) {
    for (const bool clipped : {false, true}) {
      CAPTURE(release, clipped);
      const DenseConfig config = xl_config(clipped ? 32 : 160);
      const MemoryReport expected = count_memory([&] { peak_of(config, input, release); });
      const MemoryReport measured = peak_of(config, input, release);
      for (int p = 0; p < kPurposeCount; ++p) {
        const auto purpose = static_cast<Purpose>(p);
        CAPTURE(purpose_name(purpose));
        // Working memory of threads is not counted in full (count_memory_test.cpp).
        if (purpose != Purpose::scratch) CHECK(at(measured, purpose) == at(expected, purpose));
      }
      weights[clipped ? 1 : 0] = at(measured, Purpose::weights);
    }
    // 256 rows of sinusoids [H], and in each layer of the projected ones [A] and of biases [N].
    const DenseConfig config = xl_config();
    const std::int64_t row = config.hidden_size + kLayers * (config.attention_size() + config.num_attention_heads);
    CHECK(weights[0] - weights[1] == Approx(256 * row * 4).margin(2 * 64 * (1 + 2 * kLayers)));  // whole lines
  }
}

}  // namespace
}  // namespace etc
