#include "tasks/openkp/visual.h"

#include <algorithm>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/head.h"
#include "tasks/openkp/schema.h"

namespace etc::openkp {

namespace {

using feed::Numbers;
using feed::Reals;

struct Bounds {
  float least, most;
};

// Bounds of x, y, width, height, in pixels; the same for an element and for its parent.
constexpr std::array<Bounds, 4> kBounds = {{{-50, 1500}, {-50, 6000}, {0, 1500}, {0, 18000}}};

float scaled(float value, const Bounds& bounds) {
  const float middle = (bounds.least + bounds.most) / 2, half = (bounds.most - bounds.least) / 2;
  return (std::clamp(value, bounds.least, bounds.most) - middle) / half;
}

template <typename T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// A lookup with one id per element of all pages.
Lookup lookup(Parameter* table, std::vector<std::int32_t> ids, const char* name) {
  return {table, std::make_shared<const std::vector<std::int32_t>>(std::move(ids)), name};
}

}  // namespace

std::vector<float> dense_features(const data::Example& example) {
  constexpr std::array kFlags = {kInline, kLeaf, kParentHeading, kParentLeaf, kParentBold};
  const Numbers& indicators = feed::numbers(example, "indicators");
  Reals dense;
  for (std::size_t v = 0; v < indicators.size(); ++v) {
    for (std::size_t c = 0; c < kCoordinates.size(); ++c) {
      dense.push_back(scaled(feed::reals(example, kCoordinates[c])[v], kBounds[c % kBounds.size()]));
    }
    for (const Indicator flag : kFlags) dense.push_back((indicators[v] & flag) != 0 ? 1.0f : 0.0f);
  }
  return dense;
}

std::vector<std::int32_t> indicator_crosses(const data::Example& example) {
  std::vector<std::int32_t> crosses;
  for (const std::int64_t set : feed::numbers(example, "indicators")) {
    crosses.push_back(((set & kBlock) != 0 ? 4 : 0) + ((set & kHeading) != 0 ? 2 : 0) + ((set & kBold) != 0 ? 1 : 0));
  }
  return crosses;
}

VisualEmbedding::VisualEmbedding(const EncoderConfig& model, bool extra_layer, ParameterSet& parameters)
    : hidden_(model.hidden_size) {
  using Kind = Initializer::Kind;
  const Initializer normal{Kind::truncated_normal, kSpread};
  const auto table = [&](const std::string& name, std::int64_t rows) {
    return &parameters.add(name + "/embedding_table", {rows, hidden_}, normal);
  };
  const auto bias = [&](const char* name) { return &parameters.add(name, {hidden_}, {Kind::zeros, 0}); };
  crosses_ = table("indicator_cross_emb_lookup", kIndicatorCrosses);
  fonts_ = table("font_id_emb_lookup", kFontClasses);
  parent_fonts_ = table("parent_font_id_emb_lookup", kFontClasses);
  kernel_1_ = &parameters.add("dense_feature_projection/kernel", {kDenseFeatures, hidden_}, normal);
  bias_1_ = bias("dense_feature_projection/bias");
  if (extra_layer) {
    kernel_2_ = &parameters.add("dense_feature_layer2/kernel", {hidden_, hidden_}, normal);
    bias_2_ = bias("dense_feature_layer2/bias");
  }
}

Var VisualEmbedding::forward(Tape& tape, Examples pages) const {
  Reals dense;                                        // [U, 13]
  std::vector<std::int32_t> crosses, fonts, parents;  // [U]
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets.push_back(0);
  for (const data::LoadedExample& page : pages) {
    const data::Example& example = page.features;
    if (feed::numbers(example, "indicators").empty()) {
      fail("openkp",
           "example {} has no elements with visual features (prepared with fixed_block_len: set "
           "--visual-features-in-global and --visual-features-in-text to false)",
           feed::text(example, "id"));
    }
    append(dense, dense_features(example));
    append(crosses, indicator_crosses(example));
    for (const auto& [ids, name] : {std::pair{&fonts, "font_ids"}, std::pair{&parents, "parent_font_ids"}}) {
      const Numbers& numbers = feed::numbers(example, name);
      ids->insert(ids->end(), numbers.begin(), numbers.end());
    }
    rows->offsets.push_back(std::ssize(crosses));
  }
  const auto elements = std::ssize(crosses);  // U
  Var y(Tensor::from(dense, {elements, kDenseFeatures}, Purpose::activations, kernel_1_->value.device()));
  y = activation(tape, linear(tape, y, Dense{{{kernel_1_, bias_1_}}}), ops::Activation::gelu);  // [U, H]
  if (kernel_2_ != nullptr) {
    y = activation(tape, linear(tape, y, Dense{{{kernel_2_, bias_2_}}}), ops::Activation::gelu);
  }
  return embedding(tape, {.rows = rows,
                          .width = hidden_,
                          .base = y,
                          .tokens = lookup(crosses_, std::move(crosses), "indicators"),
                          .segments = lookup(fonts_, std::move(fonts), "font_ids"),
                          .positions = lookup(parent_fonts_, std::move(parents), "parent_font_ids")});  // [U, H]
}

}  // namespace etc::openkp
