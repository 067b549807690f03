// Gradients of the whole encoder: against finite differences, and equal for any checkpointing period or split of the
// batch.
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;
using Catch::Contains;

namespace {

const std::vector<std::string> kTypes = {"l2l", "l2g", "g2g", "g2l"};

std::vector<std::string> subset(int bits) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < 4; ++i) {
    if ((bits >> i & 1) != 0) types.push_back(kTypes[i]);
  }
  return types;
}

Gradients gradients_of(const EtcConfig& config, const EncoderInput& input, const ForwardOptions& options = {},
                       bool of_long = true, bool of_global = true) {
  return TinyModel(config).fresh_gradients(input, options, of_long, of_global);
}

}  // namespace

TEST_CASE("every checkpointing period gives the same gradient bits, sum and mean, every subset of types", "[nn]") {
  EtcConfig config = tiny_config();
  config.use_residual_attention = true;
  const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
  for (int bits = 0; bits < 16; ++bits) {
    for (const bool mean : {false, true}) {
      config.residual_attention_types = subset(bits);
      config.use_running_mean = mean;
      config.grad_checkpointing_period = 0;
      const Gradients plain = gradients_of(config, input);
      for (const std::int64_t period : {1, 2, 3}) {
        CAPTURE(bits, mean, period);
        config.grad_checkpointing_period = period;
        require_equal_bits(gradients_of(config, input), plain);
      }
    }
  }
}

TEST_CASE("with dropout, checkpointing changes no bit of the gradients, in fp32 and in bf16", "[nn]") {
  for (const auto& [residual, compute] :
       {std::pair(false, ComputeType::fp32), std::pair(true, ComputeType::fp32), std::pair(true, ComputeType::bf16)}) {
    if (!cpu_offers(compute)) continue;
    EtcConfig config = tiny_config();
    config.hidden_dropout_prob = 0.2;
    config.attention_probs_dropout_prob = 0.3;
    config.use_residual_attention = residual;
    const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
    ForwardOptions options;
    options.training = true;
    options.seed = 17;
    options.compute = compute;
    const Gradients plain = gradients_of(config, input, options);
    for (const std::int64_t period : {1, 2, 3, 9}) {
      CAPTURE(residual, period);
      config.grad_checkpointing_period = period;
      require_equal_bits(gradients_of(config, input, options), plain);
    }
    options.seed = 18;
    REQUIRE(!equal_bits(gradients_of(config, input, options).begin()->second, plain.begin()->second));
  }
}

TEST_CASE("two forwards before one backward, and a backward of each, do not disturb one another", "[nn]") {
  EtcConfig config = tiny_config();
  config.use_residual_attention = true;
  for (const std::int64_t period : {0, 1}) {
    config.grad_checkpointing_period = period;
    TinyModel model(config);
    const EncoderInput first = tiny_input(config, {11, 4}, {3, 2}), second = tiny_input(config, {7}, {4}, 5);
    const Gradients alone = model.fresh_gradients(first);
    model.parameters.drop_gradients();
    Tape tape(Recording::on), other(Recording::on);
    EncoderStates output = model.encoder.forward(tape, first, {});
    const EncoderStates unused = model.encoder.forward(other, second, {});
    TinyModel::seed(output.long_states, first.long_offsets, first.sample_ordinals, true, 100);
    TinyModel::seed(output.global_states, first.global_offsets, first.sample_ordinals, true, 200);
    tape.backward();
    require_equal_bits(model.gradients(), alone);
    TinyModel::seed(unused.long_states, second.long_offsets, second.sample_ordinals, true, 100);
    TinyModel::seed(unused.global_states, second.global_offsets, second.sample_ordinals, true, 200);
    model.parameters.drop_gradients();
    other.backward();
    require_equal_bits(model.gradients(), model.fresh_gradients(second));
    REQUIRE_THROWS_WITH(tape.backward(), Contains("called twice"));
  }
}

TEST_CASE("three micro-batches give the gradients of one batch, with dropout and residual scores", "[nn]") {
  for (const bool residual : {false, true}) {
    EtcConfig config = tiny_config();
    config.use_residual_attention = residual;
    config.hidden_dropout_prob = 0.1;
    config.attention_probs_dropout_prob = 0.1;
    config.grad_checkpointing_period = residual ? 1 : 2;
    TinyModel model(config);
    ForwardOptions options;
    options.training = true;
    const Gradients whole = model.fresh_gradients(tiny_input(config, {11, 4, 8}, {3, 2, 1}), options);
    model.parameters.drop_gradients();
    const std::int64_t lengths[] = {11, 4, 8}, globals[] = {3, 2, 1};
    for (std::int64_t b = 0; b < 3; ++b) {
      model.backward(tiny_input(config, {lengths[b]}, {globals[b]}, b), options);
    }
    const Gradients parts = model.gradients();
    REQUIRE(parts.size() == whole.size());
    double largest = 0;
    for (const auto& [name, gradient] : whole) {
      for (std::int64_t i = 0; i < gradient.size(); ++i)
        largest = std::max(largest, std::abs(1.0 * gradient.data()[i]));
    }
    for (const auto& [name, gradient] : whole) {
      CAPTURE(name, residual);
      // Sums of about 20 tokens in another order: a few roundings of 6e-8 each.
      for (std::int64_t i = 0; i < gradient.size(); ++i) {
        REQUIRE(std::abs(gradient.data()[i] - parts.at(name).data()[i]) <= 2e-6 * largest);
      }
    }
  }
}

TEST_CASE("the encoder's gradients are those of finite differences, in every parameter", "[nn]") {
  // Each variant enables features that the others lack.
  std::vector<EtcConfig> variants;
  {
    EtcConfig config = tiny_config();
    config.num_hidden_layers = 2;
    config.use_residual_attention = true;
    config.max_absolute_position_embeddings = 16;
    config.embedding_size = 5;
    config.att_size_per_head = 3;
    config.share_feed_forward_params = false;
    variants.push_back(config);
    config.use_running_mean = true;
    config.use_pre_activation_order = true;
    config.share_kv_projections = true;
    config.residual_attention_types = {"l2g", "g2g"};
    variants.push_back(config);
    config = tiny_config();
    config.num_hidden_layers = 2;
    config.share_qkv_projections = true;
    config.share_att_output_projection = true;
    config.hidden_dropout_prob = 0.2;
    config.attention_probs_dropout_prob = 0.2;
    config.hidden_act = "tanh";
    variants.push_back(config);
  }
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    const EtcConfig& config = variants[variant];
    TinyModel model(config);
    const EncoderInput input = tiny_input(config, {6, 3}, {2, 1});
    ForwardOptions options;
    options.training = true;  // the same masks in every call: they depend only on seed and position
    const Gradients gradients = model.fresh_gradients(input, options);
    const auto loss = [&] {
      Tape tape(Recording::on);
      const EncoderStates output = model.encoder.forward(tape, input, options);
      double sum = 0;
      for (const auto& [states, key] : {std::pair(output.long_states, 100), std::pair(output.global_states, 200)}) {
        Var weights(states.value(), true);
        const auto& offsets = key == 100 ? input.long_offsets : input.global_offsets;
        TinyModel::seed(weights, offsets, input.sample_ordinals, true, static_cast<std::uint64_t>(key));
        for (std::int64_t i = 0; i < states.value().size(); ++i) {
          sum += static_cast<double>(weights.grad().data()[i]) * states.value().data()[i];
        }
      }
      return sum;
    };
    double largest = 0;
    for (const auto& [name, gradient] : gradients) {
      for (std::int64_t i = 0; i < gradient.size(); ++i)
        largest = std::max(largest, std::abs(1.0 * gradient.data()[i]));
    }
    for (const auto& parameter : model.parameters.all()) {
      CAPTURE(variant, parameter->name);
      REQUIRE(gradients.count(parameter->name) == 1);
      const Tensor& gradient = gradients.at(parameter->name);
      // A few elements each, among them the largest gradient.
      std::vector<std::int64_t> elements = {0, gradient.size() / 2, gradient.size() - 1, 0};
      for (std::int64_t i = 0; i < gradient.size(); ++i) {
        if (std::abs(gradient.data()[i]) > std::abs(gradient.data()[elements[3]])) elements[3] = i;
      }
      for (const std::int64_t i : elements) {
        // Rounding of the loss (about 30 terms of size 1, 2e-6) over 2h = 0.01, and h² times third derivatives.
        const double numeric = numeric_derivative(loss, parameter->value.data()[i], 5e-3f);
        CAPTURE(i, numeric, gradient.data()[i], largest);
        REQUIRE(std::abs(numeric - gradient.data()[i]) <= 2e-3 * largest);
      }
    }
  }
}

TEST_CASE("a loss on one side leaves the parameters alone that only the other side's last states use", "[nn]") {
  for (const bool residual : {false, true}) {
    for (const std::int64_t period : {0, 1}) {
      CAPTURE(residual, period);
      EtcConfig config = tiny_config();
      config.use_residual_attention = residual;
      config.grad_checkpointing_period = period;
      const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
      const Gradients of_long = gradients_of(config, input, {}, true, false);
      const std::string last =
          "etc_document_bert/global_local_transformer_layers/fused_att_layer_3/fused_global_local_att/";
      for (const char* unused : {"global_query_projection/linear/kernel", "g2g_key_projection/linear/bias",
                                 "g2l_value_projection/linear/kernel", "global_output_projection/bias",
                                 "global_qkv_attention/relative_emb_table"}) {
        CAPTURE(unused);
        REQUIRE(of_long.count(last + unused) == 0);
      }
      for (const char* used : {"long_query_projection/linear/kernel", "l2g_key_projection/linear/bias",
                               "long_qkv_attention/qkv_relative_attention/relative_emb_table"}) {
        REQUIRE(of_long.count(last + used) == 1);
      }
      // The gradient is linear in the upstream gradient, so the gradient of both sides' losses is the sum of the
      // separate ones.
      const Gradients of_global = gradients_of(config, input, {}, false, true), both = gradients_of(config, input);
      for (const auto& [name, gradient] : both) {
        CAPTURE(name);
        for (std::int64_t i = 0; i < gradient.size(); ++i) {
          const float a = of_long.count(name) != 0 ? of_long.at(name).data()[i] : 0;
          const float b = of_global.count(name) != 0 ? of_global.at(name).data()[i] : 0;
          REQUIRE(std::abs(gradient.data()[i] - (a + b)) < 2e-4);
        }
      }
    }
  }
}

TEST_CASE("a training in bf16 rounds the operands of its products: gradients are near those of fp32", "[nn]") {
  if (!cpu_offers(ComputeType::bf16)) {
    WARN("skipped: this processor has no bf16 products");
    return;
  }
  EtcConfig config = tiny_config();
  config.use_residual_attention = true;
  const EncoderInput input = tiny_input(config, {40, 4, 19}, {5, 2, 7});
  ForwardOptions options;
  options.training = true;
  const Gradients exact = gradients_of(config, input, options);
  options.compute = ComputeType::bf16;
  const Gradients rounded = gradients_of(config, input, options);
  REQUIRE(rounded.size() == exact.size());
  double largest = 0, worst = 0;
  for (const auto& [name, gradient] : exact) {
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const double a = gradient.data()[i], b = rounded.at(name).data()[i];
      largest = std::max(largest, std::abs(a));
      test::keep_worst(worst, std::abs(a - b));
    }
  }
  // A factor has a relative error of up to 2^-9, and each layer chains a few of them.
  CHECK(worst < 0.05 * largest);
  CHECK(worst > 1e-4 * largest);
}

TEST_CASE("gradients have the same bits for 1, 2 and 4 threads, with dropout, in fp32 and in bf16", "[nn]") {
  EtcConfig config = tiny_config();
  config.use_residual_attention = true;
  config.hidden_dropout_prob = 0.1;
  config.attention_probs_dropout_prob = 0.1;
  const EncoderInput input = tiny_input(config, {40, 4, 19}, {5, 2, 7});
  ForwardOptions options;
  options.training = true;
  const int before = thread_count();
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16}) {
    if (!cpu_offers(compute)) continue;
    options.compute = compute;
    set_thread_count(1);
    const Gradients first = gradients_of(config, input, options);
    for (const int threads : {2, 4}) {
      set_thread_count(threads);
      require_equal_bits(gradients_of(config, input, options), first);
    }
  }
  set_thread_count(before);
}

TEST_CASE("checkpointing saves activations and everything is given back", "[nn]") {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 8;
  const EncoderInput input = tiny_input(config, {200}, {20});
  const auto activations = [] { return memory_ledger::report().current[static_cast<int>(Purpose::activations)]; };
  std::int64_t saved[2];
  for (const std::int64_t period : {0, 1}) {
    config.grad_checkpointing_period = period;
    TinyModel model(config);
    const std::int64_t before = activations();
    {
      Tape tape(Recording::on);
      EncoderStates output = model.encoder.forward(tape, input, {});
      saved[period] = activations() - before;
      output.long_states.grad();
      output = {};
      tape.backward();
      REQUIRE(activations() == before);
    }
    REQUIRE(memory_ledger::report().current[static_cast<int>(Purpose::scores)] == 0);
  }
  REQUIRE(saved[1] < saved[0] / 4);
}
