// The configuration of an encoder-decoder for translation (translation 1 to 3).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/ops/layer_norm.h"

namespace etc {

struct Seq2SeqConfig final : EncoderConfig {
  // Placement of layer norms and scaling (blocks/residual_placement.h). admin: post_ln with trained factors on the
  // skips; admin_folded: only on the first skip of each stack (admin_fold.h); rezero, rezero_post_ln: one trained
  // scale for all branches of a layer; deepnet: post_ln with fixed factors on the skips, and smaller initial kernels of
  // values, outputs and feed-forwards.
  enum class Norm { post_ln, pre_ln, admin, admin_folded, rezero, rezero_post_ln, deepnet };

  std::int64_t num_decoder_layers = 6;  // N_d; num_hidden_layers: N_e
  Norm norm = Norm::post_ln;
  double layer_norm_epsilon = 1e-5;
  double inner_dropout_prob = 0.1;  // after the activation of the feed-forward layers
  // One table for source, target and output; otherwise the source has a separate table. The output layer always uses
  // the target's table.
  bool share_embeddings = true;
  std::int64_t target_vocab_size = 0;  // of a separate target table; 0: vocab_size

  // The reference's base size: 6 and 6 layers, 512/2048, 8 heads, ReLU, running mean.
  Seq2SeqConfig();

  // Ids in the vocabularies that are learned here; a SentencePiece model has its own.
  static constexpr std::int64_t kPad = 1, kEndOfSentence = 2, kUnknown = 3;

  std::int64_t target_vocabulary() const { return target_vocab_size > 0 ? target_vocab_size : vocab_size; }
  bool scales_branches() const { return norm == Norm::rezero || norm == Norm::rezero_post_ln; }
  ops::NormStatistics norm_statistics() const { return {static_cast<float>(layer_norm_epsilon), true}; }

  // The factor on a stack's skips: with deepnet 0.81·(N_e⁴·N_d)^(1/16) in the encoder and (3·N_d)^(1/4) in the decoder,
  // otherwise 1.
  double skip_factor(bool decoder) const;
  // Initial values. Tables: normal(0, H^-0.5), the row of padding is zero. Kernels: Xavier uniform, ±sqrt(6/(in +
  // out)), with queries, keys and values treated as one matrix, ±sqrt(6/(4·in)). With deepnet Xavier normal, multiplied
  // for values, outputs and feed-forwards by 0.87·(N_e⁴·N_d)^(-1/16) in the encoder and (12·N_d)^(-1/4) in the decoder.
  Initializer table_init() const;
  enum class Kernel { query_or_key, value, output, feed_forward };
  Initializer kernel_init(Kernel kernel, bool decoder, std::int64_t in, std::int64_t out) const;

  const std::vector<std::string>& attention_types() const override;  // encoder_self, decoder_self, cross
  void validate() const override;
  const Fields& fields() const override;
  Json to_json() const override;  // with "kind": "seq2seq"
  std::unique_ptr<EncoderConfig> clone() const override { return std::make_unique<Seq2SeqConfig>(*this); }
  std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const override;
  void keep_layers(std::int64_t layers) override;
  bool has_global_tokens() const override { return false; }
  std::optional<sparse::LabelOptions> label_options() const override { return {}; }
};

// As etc_config_from_json, without a key "kind".
Seq2SeqConfig seq2seq_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown);

}  // namespace etc
