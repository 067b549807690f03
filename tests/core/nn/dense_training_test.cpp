// Dense encoders in training and in reduced number types: gradients, equal bits, memory.
#include <cmath>
#include <cstdio>

#include "etc_core/base/counting.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/random_input.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"

namespace etc {
namespace {

using test::dense_variants;
using test::DenseGradients;
using test::sequences;
using test::SmallDense;

std::string name_of(const DenseConfig& config) {
  return json_line(config.to_json());
}

ForwardOptions training(ComputeType compute = ComputeType::fp32) {
  ForwardOptions options;
  options.training = true;
  options.seed = 17;
  options.compute = compute;
  return options;
}

TEST_CASE("dense encoders of every kind have the gradients of central differences", "[nn]") {
  for (DenseConfig config : dense_variants()) {
    config.hidden_size = 8;
    config.intermediate_size = 5;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
    CAPTURE(name_of(config));
    SmallDense model(config);
    const EncoderInput input = sequences({3, 2});
    std::vector<Parameter*> parameters;
    for (const auto& parameter : model.parameters.all()) {
      if (!parameter->name.starts_with("bert/embeddings/")) parameters.push_back(parameter.get());
    }
    test::check_gradients(
        [&](Tape& tape, const std::vector<Var>& x) {
          for (Parameter* parameter : parameters) ++parameter->version;  // its values may have changed
          return std::vector<Var>{model.encoder.forward_layers(tape, x[0], input, {})};
        },
        {test::noise({5, 8}, 3)}, parameters, 1e-2, 3e-3f);
  }
}

TEST_CASE("gradients of dense encoders have the same bits for any threads and any checkpointing", "[nn]") {
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16}) {
    if (!cpu_offers(compute)) continue;
    for (DenseConfig config : dense_variants()) {
      CAPTURE(name_of(config), compute_type_name(compute));
      const EncoderInput input = sequences({17, 40, 3});
      const DenseGradients expected = SmallDense(config).gradients(input, training(compute));
      for (const int threads : {1, 2, 4}) {
        set_thread_count(threads);
        CHECK(SmallDense(config).gradients(input, training(compute)) == expected);
      }
      set_thread_count(2);
      for (const std::int64_t period : {1, 2, 3}) {
        CAPTURE(period);
        config.grad_checkpointing_period = period;
        CHECK(SmallDense(config).gradients(input, training(compute)) == expected);
      }
    }
  }
}

double relative_difference(const float* a, const float* b, std::size_t size) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < size; ++i) {
    difference += (1.0 * a[i] - b[i]) * (1.0 * a[i] - b[i]);
    norm += 1.0 * b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST_CASE("dense encoders in bf16 and int8 are near those of fp32, states and gradients", "[nn]") {
  for (const DenseConfig& config : dense_variants()) {
    CAPTURE(name_of(config));
    const EncoderInput input = sequences({17, 40, 3});
    SmallDense exact(config);
    const Tensor states = exact.states(input);
    for (const auto& [compute, least, most] :
         {std::tuple(ComputeType::bf16, 1e-4, 0.05), {ComputeType::int8, 1e-4, 0.25}}) {
      if (!cpu_offers(compute)) continue;
      CAPTURE(compute_type_name(compute));
      SmallDense packed(config);
      packed.encoder.release_kernels(compute);
      const Tensor rounded = packed.states(input);
      const double off = relative_difference(rounded.data(), states.data(), static_cast<std::size_t>(states.size()));
      CHECK(off > least);
      CHECK(off < most);
    }
    if (!cpu_offers(ComputeType::bf16)) continue;
    const DenseGradients of_fp32 = exact.gradients(input, training());
    std::vector<float> all, all_rounded;
    for (const auto& [name, gradient] : SmallDense(config).gradients(input, training(ComputeType::bf16))) {
      all_rounded.insert(all_rounded.end(), gradient.begin(), gradient.end());
      all.insert(all.end(), of_fp32.at(name).begin(), of_fp32.at(name).end());
    }
    const double off = relative_difference(all_rounded.data(), all.data(), all.size());
    CHECK(off > 1e-4);
    // Without norms logits are large, so probabilities are nearly one-hot and their gradients are differences of
    // rounded numbers (over eight dropout seeds 0.09 to 0.31 here, 0.10 to 0.35 on the emulated GPU).
    CHECK(off < (config.norm == DenseConfig::Norm::rezero ? 0.4 : 0.1));
  }
}

// Peak of a second call.
MemoryReport peak_of(const DenseConfig& config, const EncoderInput& input, const ForwardOptions& options) {
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  if (counting()) {
    for (const auto& parameter : parameters.all()) parameter->allocate();
  } else {
    parameters.initialize(1);
  }
  if (!options.training) encoder.release_kernels();
  for (int call = 0; call < 2; ++call) {
    parameters.drop_gradients();
    memory_ledger::reset_peak();
    Tape tape(options.training ? Recording::on : Recording::off);
    {
      Var states = encoder.forward(tape, input, options).long_states;
      if (!options.training) continue;
      std::fill_n(states.grad().data(), counting() ? 0 : states.grad().size(), 1e-3f);
    }
    tape.backward();
  }
  return memory_ledger::report();
}

TEST_CASE("the forecast of a dense encoder's memory is what the ledger then measures", "[nn][plain]") {
  register_cpu_backend();
  std::printf("dense, forecast and measured peak, MB:");
  for (DenseConfig config : dense_variants()) {
    config.vocab_size = 1000;
    config.hidden_size = 128;
    config.intermediate_size = 512;
    config.max_absolute_position_embeddings = 512;
    const EncoderInput input = random_batch(config, {250, 60, 150}, 16);
    for (const bool trains : {false, true}) {
      for (const std::int64_t period : {0, 1}) {
        config.grad_checkpointing_period = period;
        CAPTURE(name_of(config), trains);
        ForwardOptions options;
        options.training = trains;
        const MemoryReport expected = count_memory([&] { peak_of(config, input, options); });
        const MemoryReport measured = peak_of(config, input, options);
        if (period == 0)
          std::printf(" %.1f/%.1f", 1e-6 * static_cast<double>(expected.peak),
                      1e-6 * static_cast<double>(measured.peak));
        for (int p = 0; p < kPurposeCount; ++p) {
          if (p == static_cast<int>(Purpose::scratch)) continue;  // threads' scratch differs, below a megabyte each
          CAPTURE(purpose_name(static_cast<Purpose>(p)));
          CHECK(measured.at_peak[p] == expected.at_peak[p]);
        }
        CHECK(std::abs(measured.peak - expected.peak) < 1'000'000 * thread_count());
      }
    }
  }
  std::printf("\n");
}

}  // namespace
}  // namespace etc
