// Label tensors of a batch as every task builds them from its examples' structures.
#pragma once

#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "sparse/labels/builders.h"

namespace etc::feed {

// Labels of the examples, with the model's radius, distances and hard masks (sparse/labels/builders.h).
// global_attention false: an ablation. What remains is local attention and its read-out: no long token sees a global
// one (l2g), a global token sees itself alone (g2g) and the long tokens that belong to it (g2l, without exemptions). So
// nothing travels farther than radius tokens a layer.
sparse::AttentionLabels labels_of(std::vector<sparse::AttentionStructure> structures, const EncoderConfig& model,
                                  bool global_attention = true);

}  // namespace etc::feed
