// A small encoder-decoder with its parameters, and pairs of sentences as its input.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/core/encoder_sizes.h"

namespace etc::test {

inline Seq2SeqConfig small_seq2seq() {
  Seq2SeqConfig config =
      with_sizes(Seq2SeqConfig(), {.vocabulary = 13, .hidden = 8, .layers = 2, .heads = 2, .feed_forward = 6});
  config.num_decoder_layers = 3;
  config.use_residual_attention = true;
  return config;
}

// Pairs of sentences; those of batch b do not depend on the others.
struct Pairs {
  // lengths: source, target
  explicit Pairs(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
    for (const auto& [source_length, target_length] : lengths) {
      for (std::int64_t i = 0; i < source_length; ++i) source.token_ids.push_back(id(3 * i + source_length));
      for (std::int64_t i = 0; i < target_length; ++i) {
        target.target_ids.push_back(i == 0 ? 2 : id(5 * i + target_length));
        labels.push_back(id(5 * i + 5 + target_length));
      }
      source.long_offsets.push_back(std::ssize(source.token_ids));
      source.global_offsets.push_back(0);
      target.target_offsets.push_back(std::ssize(target.target_ids));
    }
  }
  Pairs(const Pairs&) = delete;
  static std::int32_t id(std::int64_t number) { return static_cast<std::int32_t>(number % 9 + 4); }

  EncoderInput source;
  DecoderInput target{source.long_offsets};
  std::vector<std::int32_t> labels;
};

struct SmallSeq2Seq {
  // With initial values, except that norms, biases and scales are moved away from 1 and 0, so that each has an effect.
  explicit SmallSeq2Seq(const Seq2SeqConfig& config) : encoder(config, parameters), decoder(config, parameters) {
    register_cpu_backend();
    parameters.initialize(5);
    std::uint64_t key = 0;
    for (const auto& parameter : parameters.all()) {
      if (parameter->shape.size() != 1) continue;
      const Tensor moved = noise(parameter->shape, ++key);
      const bool scale = parameter->name.ends_with("alpha");
      for (std::int64_t i = 0; i < moved.size(); ++i) {
        parameter->value.data()[i] += scale ? 0.6f : 0.2f * moved.data()[i];
      }
    }
  }

  struct States {
    Var encoded, decoded;
  };
  States run(Tape& tape, const Pairs& pairs, const ForwardOptions& options = {}) {
    const Var encoded = encoder.forward(tape, pairs.source, options).long_states;
    return {encoded, decoder.forward(tape, encoded, pairs.target, options)};
  }
  std::vector<float> decoded(const Pairs& pairs) {
    Tape tape(Recording::off);
    const Tensor states = run(tape, pairs).decoded.value();
    return {states.data(), states.data() + states.size()};
  }

  ParameterSet parameters;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

inline std::string name_of(const Seq2SeqConfig& config) {
  return json_line(config.to_json());
}

// Every placement of norms and scales; scores carried by none, all, or one of the types, as sums or means; shared or
// separate tables.
inline std::vector<Seq2SeqConfig> seq2seq_variants() {
  std::vector<Seq2SeqConfig> variants;
  using Norm = Seq2SeqConfig::Norm;
  for (const Norm norm :
       {Norm::post_ln, Norm::pre_ln, Norm::admin, Norm::rezero, Norm::rezero_post_ln, Norm::deepnet}) {
    for (const bool residual : {false, true}) {
      Seq2SeqConfig config = small_seq2seq();
      config.norm = norm;
      config.use_residual_attention = residual;
      config.use_running_mean = variants.size() % 4 == 1;
      config.share_embeddings = variants.size() % 3 != 0;
      if (!config.share_embeddings) config.target_vocab_size = 14;
      variants.push_back(config);
    }
  }
  for (const std::string& type : small_seq2seq().attention_types()) {
    for (const bool mean : {false, true}) {
      Seq2SeqConfig config = small_seq2seq();
      config.residual_attention_types = {type};
      config.use_running_mean = mean;
      variants.push_back(config);
    }
  }
  return variants;
}

}  // namespace etc::test
