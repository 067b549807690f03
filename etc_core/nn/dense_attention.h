// The attention of a dense encoder: in the pattern that its configuration names, or linear.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/performer.h"
#include "etc_core/nn/blocks/encoder_pass.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/positions.h"
#include "etc_core/nn/segment_memory.h"

namespace etc {

// Throws UsageError naming the key if the kind of attention contradicts the rest of the configuration:
//   a window without radius, or a radius without window; causal blocks; keys of a kind that is not chosen
//   carried scores if every layer draws its own blocks
//   relative positions or dropout with linear attention, which has no pairs
//   memory if the encoder is not causal, has absolute positions or has linear attention
void check_attention(const DenseConfig& config);

class DenseAttention {
 public:
  // Both arguments must outlive this object.
  DenseAttention(const DenseConfig& config, const Positions& positions) : config_(config), positions_(positions) {}

  // Data that the layers of one pass share; owned by the closures of the tape.
  struct Shared {
    std::shared_ptr<AttentionBatch> pairs;                   // for linear attention: without operators
    std::vector<std::shared_ptr<AttentionBatch>> of_layers;  // if every layer has its own; else empty
    std::shared_ptr<const PerformerBatch> linear;            // null: attention over pairs
    std::vector<Tensor> projections;                         // for linear attention, by layer
    std::shared_ptr<SegmentMemory> memory;                   // null if the encoder keeps none
  };
  // Throws Error on labels if the attention takes none or if they do not match the batch, and on memory that does not
  // fit (check_memory).
  Shared share(const EncoderInput& input, const std::vector<std::int64_t>& ordinals, const PassSetting& setting);

  // The best number type of q, k and v for attend().
  ElementType row_type(const Shared& shared, std::int64_t layer, const RelativeParameters& tables, Device device) const;

  // What linear attention with residual scores passes on from layer to layer: queries and keys of all layers so far,
  // head by head (carried_heads.h). Undefined before the first layer, and in every other encoder.
  struct Carried {
    Var q, k;  // [T, N·layers·D]
  };

  // q, k, v [T, A] → [T, A]
  Var attend(Tape& tape, const Shared& shared, std::int64_t layer, Pass pass, const AttentionInputs& inputs,
             Carried& carried) const;

 private:
  const std::shared_ptr<AttentionBatch>& pairs_of(const Shared& shared, std::int64_t layer) const;
  OperatorBatch tiles(const EncoderInput& input, std::int64_t layer, const SegmentMemory* memory) const;
  OperatorBatch causal_tiles(const EncoderInput& input, const SegmentMemory* memory) const;
  const sparse::AttentionOperator& op() const;
  // Linear attention with scores of this layer, and with those of all layers up to it.
  Var linear(Tape& tape, const Shared& shared, std::int64_t layer, const AttentionInputs& inputs) const;
  Var linear(Tape& tape, const Shared& shared, std::int64_t layer, const AttentionInputs& inputs,
             Carried& carried) const;
  void draw_projections(std::int64_t redraw);

  const DenseConfig& config_;
  const Positions& positions_;
  std::vector<Tensor> projections_;  // from draw number drawn_
  std::int64_t drawn_ = -1;
};

}  // namespace etc
