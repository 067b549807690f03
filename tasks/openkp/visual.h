// The visual embedding: the appearance of a page's elements as vectors, added to their tokens' embeddings (task-openkp 4.1).
#pragma once

#include <array>
#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "tasks/task.h"

namespace etc::openkp {

inline constexpr std::int64_t kFontClasses = 24;
inline constexpr std::int64_t kIndicatorCrosses = 8;
inline constexpr std::int64_t kDenseFeatures = 13;

// The coordinate features in the order of the dense vector: the element's, then its parent's.
inline constexpr std::array kCoordinates = {"x_coords",        "y_coords",        "widths",        "heights",
                                            "parent_x_coords", "parent_y_coords", "parent_widths", "parent_heights"};

// [V, 13]: the eight coordinates, clipped to the model's bounds and scaled to [-1, 1], then inline, leaf, parent
// heading, parent leaf, parent bold as 0 or 1.
std::vector<float> dense_features(const data::Example& example);

// [V]: 4·block + 2·heading + bold of each element.
std::vector<std::int32_t> indicator_crosses(const data::Example& example);

// v = E_cross[cross] + E_font[font] + E_parent_font[parent font] + gelu(W2·gelu(W1·dense + b1) + b2)
// Parameters: indicator_cross_emb_lookup [8, H], font_id_emb_lookup and parent_font_id_emb_lookup [24, H],
// dense_feature_projection [13, H], dense_feature_layer2 [H, H].
class VisualEmbedding {
 public:
  // extra_layer: false omits the layer W2, b2.
  VisualEmbedding(const EncoderConfig& model, bool extra_layer, ParameterSet& parameters);

  // The vectors of all elements of the pages, [U, H]. Throws Error on pages prepared with fixed blocks: they have no
  // elements.
  Var forward(Tape& tape, Examples pages) const;

 private:
  std::int64_t hidden_;
  Parameter *crosses_, *fonts_, *parent_fonts_;
  Parameter *kernel_1_, *bias_1_;
  Parameter *kernel_2_ = nullptr, *bias_2_ = nullptr;  // null: no extra layer
};

}  // namespace etc::openkp
