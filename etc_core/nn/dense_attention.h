// How the tokens of a dense encoder attend: in the pattern its configuration names, or linearly.
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

// Throws UsageError on a kind of attention that the rest of the configuration does not fit, naming the key: a window
// without radius or a radius without window; carried scores of blocks that every layer draws, or of linear attention,
// which has no pairs; relative positions or dropout of it; causal blocks; memory of an encoder that is not causal, has
// absolute positions or no pairs; keys of a kind that is not chosen.
void check_attention(const DenseConfig& config);

class DenseAttention {
 public:
  // Both must outlive this.
  DenseAttention(const DenseConfig& config, const Positions& positions) : config_(config), positions_(positions) {}

  // What the attention of one pass shares over its layers; closures hold it.
  struct Shared {
    std::shared_ptr<AttentionBatch> pairs;                   // of linear attention without operators
    std::vector<std::shared_ptr<AttentionBatch>> of_layers;  // where every layer has its own; else empty
    std::shared_ptr<const PerformerBatch> linear;            // null: pairs
    std::vector<Tensor> projections;                         // of linear attention, by layer
    std::shared_ptr<SegmentMemory> memory;                   // null: the encoder keeps none
  };
  // Throws Error on labels for attention that takes none, or that are not those of the batch, and on memory that does
  // not fit (check_memory).
  Shared share(const EncoderInput& input, const std::vector<std::int64_t>& ordinals, const PassSetting& setting);

  // The type in which attend() best takes q, k and v.
  ElementType row_type(const Shared& shared, std::int64_t layer, const RelativeParameters& tables, Device device) const;

  // q, k, v [T, A] → [T, A]
  Var attend(Tape& tape, const Shared& shared, std::int64_t layer, Pass pass, const AttentionInputs& inputs) const;

 private:
  const std::shared_ptr<AttentionBatch>& pairs_of(const Shared& shared, std::int64_t layer) const;
  OperatorBatch tiles(const EncoderInput& input, std::int64_t layer, const SegmentMemory* memory) const;
  OperatorBatch causal_tiles(const EncoderInput& input, const SegmentMemory* memory) const;
  const sparse::AttentionOperator& op() const;
  void draw_projections(std::int64_t redraw);

  const DenseConfig& config_;
  const Positions& positions_;
  std::vector<Tensor> projections_;  // of draw number drawn_
  std::int64_t drawn_ = -1;
};

}  // namespace etc
