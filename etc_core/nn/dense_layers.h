// The parameters of a dense encoder, under BERT's TensorFlow names (etc-core 12.3).
#pragma once

#include <vector>

#include "etc_core/nn/blocks/attention_block.h"
#include "etc_core/nn/blocks/embedding_block.h"
#include "etc_core/nn/blocks/feed_forward_block.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/positions.h"

namespace etc {

// One layer's parameters; the order of sub-layers determines when each half runs.
struct DenseLayer {
  AttentionBlock attention;
  ResidualPlacement attention_residual;
  FeedForwardBlock feed_forward;
};

struct DenseParameters {
  EmbeddingBlock embedding;
  std::vector<DenseLayer> layers;
  Positions positions;             // of all layers
  LayerNormParameters final_norm;  // after the last sub-layer; null: none
};

// Declares all parameters in a fixed order. The configuration must be valid.
DenseParameters add_dense_parameters(ParameterSet& parameters, const DenseConfig& config);

}  // namespace etc
