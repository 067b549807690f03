// Behaviour of the complete encoder: the invariants of etc-core 13 that concern the model.
#include <cmath>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/reference/dense_realformer.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;
namespace realformer = etc::reference::realformer;

namespace {

realformer::Matrix matrix(const Parameter& parameter) {
  const std::int64_t rows = parameter.shape[0], cols = parameter.size() / rows;
  realformer::Matrix result;
  for (std::int64_t i = 0; i < rows; ++i) {
    result.emplace_back(parameter.value.data() + i * cols, parameter.value.data() + (i + 1) * cols);
  }
  return result;
}

std::vector<double> vector(const Parameter& parameter) {
  return {parameter.value.data(), parameter.value.data() + parameter.size()};
}

realformer::DenseLayer dense_layer(ParameterSet& parameters, std::int64_t index) {
  const std::string layers = "etc_document_bert/global_local_transformer_layers/", i = std::to_string(index);
  const std::string block = layers + "fused_att_layer_" + i + "/", fused = block + "fused_global_local_att/";
  const std::string inner = layers + "feed_forward_layer_" + i + "/";
  const auto kernel = [&](const std::string& name) { return matrix(parameters.at(name + "/kernel")); };
  const auto bias = [&](const std::string& name) { return vector(parameters.at(name + "/bias")); };
  realformer::DenseLayer layer;
  const std::string q = fused + "long_query_projection/linear", k = fused + "l2l_key_projection/linear",
                    v = fused + "l2l_value_projection/linear", o = fused + "long_output_projection",
                    f0 = inner + "dense_layers/layer_0", f1 = inner + "dense_layers/layer_1";
  layer.query = kernel(q), layer.query_bias = bias(q);
  layer.key = kernel(k), layer.key_bias = bias(k);
  layer.value = kernel(v), layer.value_bias = bias(v);
  layer.output = kernel(o), layer.output_bias = bias(o);
  layer.inner = kernel(f0), layer.inner_bias = bias(f0);
  layer.outer = kernel(f1), layer.outer_bias = bias(f1);
  layer.gamma = vector(parameters.at(block + "layer_norm_0/gamma"));
  layer.beta = vector(parameters.at(block + "layer_norm_0/beta"));
  layer.outer_gamma = vector(parameters.at(inner + "layer_norm/gamma"));
  layer.outer_beta = vector(parameters.at(inner + "layer_norm/beta"));
  return layer;
}

double row_distance(const Tensor& a, std::int64_t row_a, const Tensor& b, std::int64_t row_b) {
  double distance = 0;
  for (std::int64_t j = 0; j < a.cols(); ++j) {
    test::keep_worst(distance, std::abs(1.0 * a.data()[row_a * a.cols() + j] - b.data()[row_b * b.cols() + j]));
  }
  return distance;
}

}  // namespace

TEST_CASE("a window that covers everything, all shared, is a transformer on the concatenation", "[nn]") {
  for (const bool residual : {false, true}) {
    for (const bool mean : {false, true}) {
      for (const bool pre : {false, true}) {
        CAPTURE(residual, mean, pre);
        EtcConfig config = tiny_config();
        config.local_radius = 15;  // L = 12
        config.share_qkv_projections = true;
        config.share_att_output_projection = true;
        config.relative_pos_max_distance = 0;
        config.relative_vocab_size.reset();
        config.use_residual_attention = residual;
        config.use_running_mean = mean;
        config.use_pre_activation_order = pre;
        TinyModel model(config);
        for (const auto& parameter : model.parameters.all()) {  // long and global norms must agree
          const auto place = parameter->name.find("layer_norm_1");
          if (place == std::string::npos) continue;
          std::string twin = parameter->name;
          twin.replace(place, 12, "layer_norm_0");
          parameter->value = model.parameters.at(twin).value;
        }
        EncoderInput input = tiny_input(config, {12}, {6});
        input.labels = {};
        realformer::Matrix x;
        Tape tape(Recording::off);
        ForwardOptions options;
        options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global, const ExternalScores&) {
          if (layer >= 0) return;
          for (const Tensor* states : {&of_long, &of_global}) {
            for (std::int64_t i = 0; i < states->rows(); ++i) {
              x.emplace_back(states->data() + i * states->cols(), states->data() + (i + 1) * states->cols());
            }
          }
        };
        const EncoderStates output = model.encoder.forward(tape, input, options);
        std::vector<realformer::DenseLayer> layers;
        for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layers.push_back(dense_layer(model.parameters, i));
        realformer::DenseOptions dense;
        dense.heads = 2;
        dense.residual = residual;
        dense.mean = mean;
        dense.pre_activation_order = pre;
        dense.activation = [](double v) {
          return 0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
        };
        const realformer::Matrix expected = realformer::encode(x, layers, dense);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const Tensor& states = i < 12 ? output.long_states.value() : output.global_states.value();
          const auto row = static_cast<std::int64_t>(i < 12 ? i : i - 12);
          for (std::int64_t j = 0; j < 12; ++j) {
            REQUIRE(states.data()[row * 12 + j] == Approx(expected[i][static_cast<std::size_t>(j)]).margin(2e-5));
          }
        }
      }
    }
  }
}

TEST_CASE("residual scores change two layers and not one", "[nn]") {
  for (const std::int64_t layers : {1, 2}) {
    EtcConfig config = tiny_config();
    config.num_hidden_layers = layers;
    const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
    const EncoderStates without = TinyModel(config).infer(input);
    for (const bool mean : {false, true}) {
      config.use_residual_attention = true;
      config.use_running_mean = mean;
      const EncoderStates with = TinyModel(config).infer(input);
      const double difference = relative_difference(with.long_states.value(), without.long_states.value());
      if (layers == 1) REQUIRE(difference < 3e-6);  // scores are rounded to steps of 2^-20
      if (layers == 2) REQUIRE(difference > 1e-3);
    }
    config.residual_attention_types.clear();
    REQUIRE(equal_bits(TinyModel(config).infer(input).long_states.value(), without.long_states.value()));
  }
}

TEST_CASE("a long token further away than the radius acts through globals only", "[nn]") {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 1;
  TinyModel model(config);
  EncoderInput input = tiny_input(config, {20}, {3});
  const EncoderStates before = model.infer(input);
  input.token_ids[10] = (input.token_ids[10] + 1) % 20;
  const EncoderStates after = model.infer(input);
  for (std::int64_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    REQUIRE(equal_rows(before.long_states.value(), i, after.long_states.value(), i) == (std::abs(i - 10) > 3));
  }
  for (std::int64_t i = 0; i < 3; ++i) {
    REQUIRE(!equal_rows(before.global_states.value(), i, after.global_states.value(), i));
  }
}

TEST_CASE("inference is deterministic and dropout acts in training only", "[nn]") {
  for (const auto& [hidden, attention] : {std::pair(0.3, 0.0), std::pair(0.0, 0.3), std::pair(0.3, 0.3)}) {
    EtcConfig config = tiny_config();
    const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
    const EncoderStates plain = TinyModel(config).infer(input);
    config.hidden_dropout_prob = hidden;
    config.attention_probs_dropout_prob = attention;
    TinyModel model(config);
    const auto forward = [&](bool training, std::uint64_t seed) {
      Tape tape(Recording::on);
      ForwardOptions options;
      options.training = training;
      options.seed = seed;
      return model.encoder.forward(tape, input, options).global_states.value();
    };
    REQUIRE(equal_bits(model.infer(input).long_states.value(), plain.long_states.value()));
    REQUIRE(relative_difference(forward(false, 1), plain.global_states.value()) < 1e-6);
    REQUIRE(equal_bits(forward(true, 1), forward(true, 1)));
    REQUIRE(relative_difference(forward(true, 1), forward(true, 2)) > 1e-2);
    REQUIRE(relative_difference(forward(true, 1), plain.global_states.value()) > 1e-2);
  }
}

TEST_CASE("an example has the same bits alone and between others, with dropout too", "[nn]") {
  EtcConfig config = tiny_config();
  config.hidden_dropout_prob = 0.1;
  config.attention_probs_dropout_prob = 0.1;
  config.use_residual_attention = true;
  config.max_absolute_position_embeddings = 50;
  TinyModel model(config);
  const std::vector<std::int64_t> lengths = {1, 37, 0, 8}, globals = {2, 5, 1, 0};
  const auto forward = [&](const EncoderInput& input, bool training) {
    Tape tape(training ? Recording::on : Recording::off);
    ForwardOptions options;
    options.training = training;
    return model.encoder.forward(tape, input, options);
  };
  for (const bool training : {false, true}) {
    const EncoderInput all = tiny_input(config, lengths, globals);
    const EncoderStates together = forward(all, training);
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      CAPTURE(b, training);
      const EncoderStates alone =
          forward(tiny_input(config, {lengths[b]}, {globals[b]}, static_cast<std::int64_t>(b)), training);
      for (std::int64_t i = 0; i < lengths[b]; ++i) {
        REQUIRE(equal_rows(alone.long_states.value(), i, together.long_states.value(), all.long_offsets[b] + i));
      }
      for (std::int64_t i = 0; i < globals[b]; ++i) {
        REQUIRE(equal_rows(alone.global_states.value(), i, together.global_states.value(), all.global_offsets[b] + i));
      }
    }
  }
}

TEST_CASE("a short text has the same bits with its sides multiplied together and, in a large batch, apart", "[nn]") {
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    EtcConfig config = tiny_config();
    config.share_qkv_projections = shared;
    TinyModel model(config);
    const EncoderStates alone = model.infer(tiny_input(config, {9}, {3}));
    const EncoderStates large = model.infer(tiny_input(config, {9, 600}, {3, 5}));
    for (std::int64_t i = 0; i < 9; ++i) {
      REQUIRE(equal_rows(alone.long_states.value(), i, large.long_states.value(), i));
    }
    for (std::int64_t i = 0; i < 3; ++i) {
      REQUIRE(equal_rows(alone.global_states.value(), i, large.global_states.value(), i));
    }
  }
}

TEST_CASE("batches without tokens, without globals and without examples go through, forward and backward", "[nn]") {
  for (const bool residual : {false, true}) {
    EtcConfig config = tiny_config();
    config.use_residual_attention = residual;
    TinyModel model(config);
    REQUIRE(model.infer(tiny_input(config, {}, {})).long_states.value().shape() == std::vector<std::int64_t>{0, 12});
    REQUIRE(model.infer(tiny_input(config, {0, 0}, {3, 0})).global_states.value().rows() == 3);
    REQUIRE(model.infer(tiny_input(config, {5}, {0})).long_states.value().rows() == 5);
    for (const auto& input_of : {std::pair(0, 3), std::pair(5, 0), std::pair(1, 1), std::pair(0, 0)}) {
      CAPTURE(input_of.first, input_of.second);
      const Gradients gradients = model.fresh_gradients(tiny_input(config, {input_of.first}, {input_of.second}));
      for (const auto& [name, gradient] : gradients) {
        CAPTURE(name);
        for (std::int64_t i = 0; i < gradient.size(); ++i) REQUIRE(std::isfinite(gradient.data()[i]));
      }
    }
  }
}

TEST_CASE("absent segment ids are 1 for long and 0 for global tokens", "[nn]") {
  const EtcConfig config = tiny_config();
  TinyModel model(config);
  EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
  input.segment_ids.clear();
  const EncoderStates absent = model.infer(input);
  input.segment_ids.assign(15, 1);
  input.global_segment_ids.assign(5, 0);
  const EncoderStates given = model.infer(input);
  REQUIRE(equal_bits(absent.long_states.value(), given.long_states.value()));
  REQUIRE(equal_bits(absent.global_states.value(), given.global_states.value()));
  input.segment_ids.assign(15, 0);
  input.global_segment_ids.assign(5, 1);
  REQUIRE(!equal_bits(model.infer(input).long_states.value(), given.long_states.value()));
}

TEST_CASE("long and global lookups of one token are the same embedding", "[nn]") {
  const EtcConfig config = tiny_config();
  TinyModel model(config);
  const std::string prefix = "etc_document_bert/";
  for (const char* what : {"gamma", "beta"}) {
    model.parameters.at(prefix + "global_emb_layer_norm/" + what).value =
        model.parameters.at(prefix + "long_emb_layer_norm/" + what).value;
  }
  EncoderInput input = tiny_input(config, {3}, {3});
  input.global_token_ids = input.token_ids;
  input.segment_ids = input.global_segment_ids = {2, 0, 1};
  ForwardOptions options;
  bool seen = false;
  options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global, const ExternalScores&) {
    if (layer == -1) seen = equal_bits(of_long, of_global);
  };
  Tape tape(Recording::off);
  model.encoder.forward(tape, input, options);
  REQUIRE(seen);
}

namespace {

// A multihop document: paragraphs of sentences of tokens; per paragraph one global token, then one per sentence.
struct Paragraph {
  std::vector<std::vector<std::int32_t>> sentences;
  std::int32_t title;
};

EncoderInput multihop_input(const EtcConfig& config, const std::vector<Paragraph>& paragraphs) {
  EncoderInput input;
  std::vector<std::int32_t> long_breaks, global_breaks, paragraph_ids, sentence_ids;
  for (const Paragraph& paragraph : paragraphs) {
    const auto own = static_cast<std::int32_t>(input.global_token_ids.size());
    input.global_token_ids.push_back(paragraph.title);
    for (const auto& sentence : paragraph.sentences) {
      for (const std::int32_t token : sentence) {
        input.token_ids.push_back(token);
        paragraph_ids.push_back(own);
        sentence_ids.push_back(static_cast<std::int32_t>(input.global_token_ids.size()));
        long_breaks.push_back(0);
      }
      input.global_token_ids.push_back(1);
    }
    long_breaks.back() = 1;
    global_breaks.resize(input.global_token_ids.size(), 0);
    global_breaks.back() = 1;
  }
  input.long_offsets = {0, static_cast<std::int64_t>(input.token_ids.size())};
  input.global_offsets = {0, static_cast<std::int64_t>(input.global_token_ids.size())};
  sparse::MultihopArrays arrays;
  arrays.long_paragraph_breakpoints = long_breaks;
  arrays.global_paragraph_breakpoints = global_breaks;
  arrays.long_paragraph_ids = paragraph_ids;
  arrays.long_sentence_ids = sentence_ids;
  const std::vector<sparse::AttentionStructure> structures = {sparse::multihop_structure(arrays)};
  input.labels = sparse::build_labels(structures, {config.local_radius, config.relative_pos_max_distance,
                                                   config.use_hard_g2l_mask, config.use_hard_l2g_mask});
  return input;
}

}  // namespace

TEST_CASE("permuting whole paragraphs of a multihop input permutes the outputs", "[nn]") {
  const Paragraph a{{{3, 4, 5}, {6, 7}}, 8}, b{{{9, 10, 11, 12}}, 13}, c{{{14}, {15, 16}, {17, 18, 19}}, 2};
  for (const bool hard : {false, true}) {
    for (const bool residual : {false, true}) {
      CAPTURE(hard, residual);
      EtcConfig config = tiny_config();
      config.use_hard_g2l_mask = hard;
      config.use_residual_attention = residual;
      TinyModel model(config);
      const EncoderStates abc = model.infer(multihop_input(config, {a, b, c}));
      const EncoderStates cab = model.infer(multihop_input(config, {c, a, b}));
      // Long tokens: a 0-4, b 5-8, c 9-14 | c 0-5, a 6-10, b 11-14. Globals: a 0-2, b 3-4, c 5-8 | c 0-3, a 4-6, b 7-8.
      // Sums over keys run in another order: a few roundings through four layers.
      for (std::int64_t i = 0; i < 15; ++i) {
        REQUIRE(row_distance(abc.long_states.value(), i, cab.long_states.value(), (i + 6) % 15) < 2e-5);
      }
      for (std::int64_t i = 0; i < 9; ++i) {
        REQUIRE(row_distance(abc.global_states.value(), i, cab.global_states.value(), (i + 4) % 9) < 2e-5);
      }
    }
  }
}

TEST_CASE("padding of its own example id does not change the outputs of real tokens", "[nn]") {
  for (const bool residual : {false, true}) {
    EtcConfig config = tiny_config();
    config.use_residual_attention = residual;
    TinyModel model(config);
    EncoderInput input = tiny_input(config, {11}, {4});
    const EncoderStates real = model.infer(input);
    const std::int64_t pads = 9, global_pads = 3;
    input.token_ids.resize(11 + pads, 0);
    input.segment_ids.resize(11 + pads, 0);
    input.global_token_ids.resize(4 + global_pads, 0);
    input.long_offsets.back() += pads;
    input.global_offsets.back() += global_pads;
    std::vector<std::int32_t> ids(11, 1), global_ids(4, 1), sentences;
    for (std::int32_t i = 0; i < 11 + pads; ++i) sentences.push_back(i < 11 ? i / 3 : 0);
    ids.resize(11 + pads, 0);
    global_ids.resize(4 + global_pads, 0);
    const std::vector<sparse::AttentionStructure> structures = {
        sparse::structure_from_example_ids(ids, global_ids, sentences)};
    input.labels =
        sparse::build_labels(structures, {config.local_radius, config.relative_pos_max_distance, false, false});
    const EncoderStates padded = model.infer(input);
    for (std::int64_t i = 0; i < 11; ++i) {
      REQUIRE(row_distance(real.long_states.value(), i, padded.long_states.value(), i) < 1e-5);
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      REQUIRE(row_distance(real.global_states.value(), i, padded.global_states.value(), i) < 1e-5);
    }
  }
}

TEST_CASE("released kernels keep the numbers and give memory back", "[nn]") {
  for (const bool share : {false, true}) {
    EtcConfig config = tiny_config();
    config.hidden_size = 48;
    config.intermediate_size = 192;
    config.share_kv_projections = share;
    TinyModel model(config);
    const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
    const auto weights = [] { return memory_ledger::report().current[static_cast<int>(Purpose::weights)]; };
    const EncoderStates before = model.infer(input);
    const std::int64_t packed = weights();
    model.encoder.release_kernels();
    REQUIRE(weights() < packed * 3 / 4);
    REQUIRE(equal_bits(model.infer(input).long_states.value(), before.long_states.value()));
    REQUIRE_THROWS_WITH(model.backward(input), Catch::Contains("the kernels were released"));
  }
}

TEST_CASE("kernels packed as bf16 or int8 take less memory and give nearly the same states", "[nn]") {
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!cpu_offers(compute)) {
      WARN("skipped: this processor has no " << compute_type_name(compute) << " products");
      continue;
    }
    for (const bool shared : {false, true}) {
      EtcConfig config = tiny_config();
      config.hidden_size = shared ? 64 : 48;  // heads of 32, whose rows attention reads in bf16, and of 24
      config.intermediate_size = 192;
      config.use_residual_attention = true;
      config.share_qkv_projections = config.share_att_output_projection = shared;
      TinyModel model(config);
      const EncoderInput input = tiny_input(config, {40, 4}, {5, 2});
      const auto weights = [] { return memory_ledger::report().current[static_cast<int>(Purpose::weights)]; };
      const Tensor exact = model.infer(input).long_states.value();
      const std::int64_t bare = weights();
      model.encoder.release_kernels(compute);
      REQUIRE(weights() < bare);
      const Tensor reduced = model.infer(input).long_states.value();
      double error = 0, size = 0;
      for (std::int64_t i = 0; i < exact.size(); ++i) {
        error += std::pow(static_cast<double>(exact.data()[i]) - reduced.data()[i], 2);
        size += std::pow(static_cast<double>(exact.data()[i]), 2);
      }
      const double relative = std::sqrt(error / size);
      INFO(compute_type_name(compute) << ": relative error of the states " << relative);
      CHECK(relative > 0);  // something was rounded
      // Rounding errors of operands: in bf16 2^-9/sqrt(3) of each number; in int8 1/(127·sqrt(12)) of the largest number
      // of a row, which is 2.3 standard deviations for 48 numbers. That is five times as much.
      CHECK(relative < (compute == ComputeType::bf16 ? 0.05 : 0.25));
      CHECK(equal_bits(model.infer(input).long_states.value(), reduced));
    }
  }
}

TEST_CASE("inference sees changed weights and training drops packed copies", "[nn]") {
  const EtcConfig config = tiny_config();
  TinyModel model(config);
  const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
  const auto weights = [] { return memory_ledger::report().current[static_cast<int>(Purpose::weights)]; };
  const std::int64_t bare = weights();
  const Tensor before = model.infer(input).long_states.value();
  REQUIRE(weights() > bare);
  Parameter& query = model.parameters.at(
      "etc_document_bert/global_local_transformer_layers/fused_att_layer_0/fused_global_local_att/"
      "long_query_projection/linear/kernel");
  query.value.data()[5] += 0.5f;
  ++query.version;
  REQUIRE(!equal_bits(model.infer(input).long_states.value(), before));
  model.backward(input);
  model.parameters.drop_gradients();
  REQUIRE(weights() == bare);
}

TEST_CASE("inference keeps nothing of the layers before", "[nn]") {
  EtcConfig config = tiny_config();
  const auto peak = [&](std::int64_t layers) {
    config.num_hidden_layers = layers;
    TinyModel model(config);
    const EncoderInput input = tiny_input(config, {300}, {20});
    model.infer(input);
    const std::int64_t before = memory_ledger::report().total;
    memory_ledger::reset_peak();
    model.infer(input);
    return memory_ledger::report().peak - before;
  };
  const std::int64_t of_two = peak(2), of_eight = peak(8);
  REQUIRE(of_eight == of_two);
}
