// Encoders with carried scores in 16 bits: accuracy of states, and memory.
#include <tuple>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/dense_encoder.h"
#include "etc_core/nn/random_input.h"
#include "tests/core/nn/small_dense.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/support/catch.h"
#include "tests/support/small_config.h"

using namespace etc;
using Catch::Contains;

namespace {

EtcConfig with_scores(bool mean) {
  EtcConfig config = test::small_config({.vocabulary = 500,
                                         .hidden = 64,
                                         .layers = 4,
                                         .heads = 4,
                                         .inner = 128,
                                         .radius = 20,
                                         .distance = 12,
                                         .labels = 32});
  config.use_residual_attention = true;
  config.use_running_mean = mean;
  return config;
}

// States of an encoder released with this type of scores, and the bytes of scores at the ledger's peak.
std::tuple<EncoderStates, std::int64_t> run(const EtcConfig& config, const EncoderInput& input, ScoreType type,
                                            const ForwardOptions& options = {}) {
  test::TinyModel model(config);
  model.encoder.release_kernels({ComputeType::fp32, type});
  memory_ledger::reset_peak();
  Tape tape(Recording::off);
  EncoderStates states = model.encoder.forward(tape, input, options);
  return {states, memory_ledger::report().at_peak[static_cast<int>(Purpose::scores)]};
}

}  // namespace

TEST_CASE("states with 16-bit scores are near the exact ones, their scores take half the memory", "[nn]") {
  for (const bool mean : {false, true}) {
    CAPTURE(mean);
    const EtcConfig config = with_scores(mean);
    const EncoderInput input = random_input(config, 400, 16);
    const auto [exact, exact_bytes] = run(config, input, ScoreType::int32);
    const auto [half, half_bytes] = run(config, input, ScoreType::fp16);
    for (const auto& [a, b] :
         {std::pair(half.long_states, exact.long_states), {half.global_states, exact.global_states}}) {
      const double off = test::relative_difference(a.value(), b.value());
      CHECK(off > 1e-8);
      CHECK(off < 1e-3);
    }
    CHECK(2 * half_bytes == exact_bytes);
  }
}

TEST_CASE("a model that carries no scores has the same bits with 16-bit scores", "[nn]") {
  EtcConfig config = with_scores(false);
  config.use_residual_attention = false;
  const EncoderInput input = random_input(config, 100, 16);
  const auto exact = std::get<0>(run(config, input, ScoreType::int32));
  const auto half = std::get<0>(run(config, input, ScoreType::fp16));
  CHECK(test::equal_bits(exact.long_states.value(), half.long_states.value()));
}

TEST_CASE("a watch of the layers is told of 16-bit scores, a watch of attention reads exact ones", "[nn]") {
  const EtcConfig config = with_scores(false);
  const EncoderInput input = random_input(config, 100, 16);
  std::vector<Tensor> exact, half;
  for (auto [type, seen] : {std::pair(ScoreType::int32, &exact), {ScoreType::fp16, &half}}) {
    ForwardOptions options;
    options.watch = [seen = seen](std::int64_t layer, const Tensor&, const Tensor&, const ExternalScores& scores) {
      if (layer >= 0) seen->push_back(scores.of("l2l"));
    };
    run(config, input, type, options);
  }
  REQUIRE(exact.size() == 4);
  REQUIRE(half.size() == 4);
  for (std::size_t l = 0; l < 4; ++l) {
    const double off = test::relative_difference(half[l], exact[l]);
    CHECK(off > 1e-6);
    CHECK(off < 0x1p-9);
  }
  std::int64_t bytes[2];
  for (const ScoreType type : {ScoreType::int32, ScoreType::fp16}) {
    ForwardOptions options;
    options.attention_watch = [](const WatchedAttention&) {};
    bytes[static_cast<int>(type)] = std::get<1>(run(config, input, type, options));
  }
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("number types that nobody offers are named with those that somebody does", "[nn]") {
  register_cpu_backend();
  CHECK(chosen_types("fp32", "fp16", Device::cpu).scores == ScoreType::fp16);
  CHECK_THROWS_WITH(chosen_types("fp32", "fp8", Device::cpu), Contains("expected int32 or fp16, got \"fp8\""));
  CHECK_THROWS_WITH(chosen_types("fp8", "fp16", Device::cpu), Contains("expected fp32, bf16, int8 or auto"));
  CHECK_THROWS_WITH(chosen_types("fp32", "fp16", Device::cuda), Contains("fp16 is offered on the CPU"));
}
