// The configuration of a dense encoder: one sequence, BERT and its relatives (dense-transformer 1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/nn/positions.h"
#include "etc_core/ops/layer_norm.h"
#include "sparse/performer_projection.h"

namespace etc {

struct DenseConfig final : EncoderConfig, PositionConfig {
  // Placement of layer norms (blocks/residual_placement.h). rezero and rezero_post_ln have a trained scale of the
  // branches, initially 0; rezero_post_ln keeps the norms of post_ln.
  enum class Norm { post_ln, pre_ln, rezero, rezero_post_ln };
  // The divisor of every layer norm: the standard deviation or the root mean square (ops/layer_norm.h).
  enum class Normalization { layer_norm, rms_norm };
  enum class Choice { by_norm, on, off };  // by_norm: the usual choice with this norm
  // Initial values of kernels and tables (dense-transformer 2) for N layers; the deviation is initializer_range, except
  // for sparse_transformer.
  //   none                truncated normal, as BERT's
  //   gpt2                normal; output projections times 1/sqrt(2N) (Radford et al. 2019)
  //   sparse_transformer  normal: tables 0.125/sqrt(H), kernels 0.125/sqrt(fan in), output projections times
  //                       1/sqrt(2N) (Child et al. 2019)
  enum class ResidualInit { by_norm, none, gpt2, sparse_transformer };
  // Which tokens attend to which (sparse/patterns); performer: linear attention (sparse/performer.h). by_radius: full,
  // or a window of local_radius.
  enum class Attention { by_radius, full, window, bigbird, performer };

  // Positions added to the token embeddings: learned rows, or fixed ones (position_tables.h), which are not stored in
  // checkpoints. For fixed rows max_absolute_position_embeddings only limits the length of an input.
  enum class AbsolutePositions { learned, interleaved, halves_t2t, halves_xl };

  AbsolutePositions absolute_positions = AbsolutePositions::learned;
  Norm norm = Norm::post_ln;
  Normalization normalization = Normalization::layer_norm;
  double layer_norm_epsilon = 1e-12;
  bool rezero_per_branch = false;  // one scale per sub-layer; else one for both of a layer
  // Sub-layers from bottom to top, s: attention, f: feed-forward, as many of each as there are layers; the j-th s and
  // the j-th f belong to layer j. Empty: sfsf….
  std::string sublayer_order;
  bool embedding_layer_norm = true;
  Choice final_layer_norm = Choice::by_norm;                 // by_norm: with pre_ln
  ResidualInit residual_init_scale = ResidualInit::by_norm;  // by_norm: gpt2 with pre_ln, else none
  std::int64_t local_radius = 0;  // maximal distance of tokens that see each other; 0: all of an example
  // Number of tokens of earlier segments that a causal encoder still sees (segment_memory.h); 0: none.
  std::int64_t memory_length = 0;

  Attention attention = Attention::by_radius;
  std::int64_t attention_seed = 0;  // for random blocks and for directions of features
  std::int64_t bigbird_block_size = 64;
  std::int64_t bigbird_random_blocks = 3;
  bool bigbird_per_head = true, bigbird_per_layer = false;  // separate random blocks
  std::int64_t performer_features = 256;
  sparse::PerformerDraw::Norms performer_norms = sparse::PerformerDraw::Norms::chi;
  std::int64_t performer_redraw = 0;  // training steps after which directions are redrawn; 0: never

  DenseConfig();

  std::string order() const;  // sublayer_order, or sfsf…
  bool has_final_norm() const;
  ops::NormStatistics norm_statistics() const;
  bool scales_branches() const { return norm == Norm::rezero || norm == Norm::rezero_post_ln; }
  // Initialisers of a table, of the kernel of a dense layer, and of a kernel whose result goes into a residual sum.
  Initializer table_init() const;
  Initializer kernel_init(std::int64_t fan_in) const;
  Initializer output_init(std::int64_t fan_in) const;

  const std::vector<std::string>& attention_types() const override;  // self
  void validate() const override;
  std::vector<std::string> unread_keys() const override { return unread_position_keys(); }
  const Fields& fields() const override;
  Json to_json() const override;  // with "kind": "dense"
  std::unique_ptr<EncoderConfig> clone() const override { return std::make_unique<DenseConfig>(*this); }
  std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const override;
  void keep_layers(std::int64_t layers) override;  // an order with more sub-layers is replaced by sfsf…
  bool has_global_tokens() const override { return false; }
  std::optional<sparse::LabelOptions> label_options() const override { return {}; }

 private:
  ResidualInit init() const;  // with by_norm resolved
};

// s^k (sf)^(layers-k) f^k: the sandwich orders (Press et al. 2020). Throws UsageError unless 0 <= k <= layers.
std::string sandwich_order(std::int64_t layers, std::int64_t k);

// As etc_config_from_json, without a key "kind".
DenseConfig dense_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown);

// "small", "base", "large", "xlarge" of RealFormer (pretraining 1.7) with two segments and 512 positions; throws
// UsageError with a suggestion on another name. vocab_size stays 0.
const std::vector<std::string>& dense_preset_names();
DenseConfig dense_config_preset(const std::string& name);

}  // namespace etc
