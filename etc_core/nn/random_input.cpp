#include "etc_core/nn/random_input.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "etc_core/base/integers.h"
#include "etc_core/base/random.h"
#include "sparse/labels/builders.h"

namespace etc {

namespace {

std::int32_t random_token(const EncoderConfig& model, std::int64_t i) {
  const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 1)[0];
  return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(model.vocab_size));
}

// Tiles use R only to reject labels beyond it.
constexpr std::int64_t kMostLabels = 255;

std::unique_ptr<const sparse::TileSample> sample_of(std::int64_t radius, const EncoderInput& input) {
  sparse::LabelTensors labels;
  labels.examples = 1;
  labels.long_offsets = input.long_offsets.data();
  labels.global_offsets = input.global_offsets.data();
  labels.radius = radius;
  labels.relative_labels = input.labels.long_relative ? kMostLabels : 0;
  labels.l2l = input.labels.l2l.data();
  labels.l2g = input.labels.l2g.data();
  labels.g2g = input.labels.g2g.data();
  labels.g2l = input.labels.g2l.data();
  return std::make_unique<const sparse::TileSample>(sparse::build_long_tiles(labels),
                                                    sparse::build_global_tiles(labels));
}

}  // namespace

EncoderInput random_input(const EncoderConfig& model, std::int64_t length, std::int64_t tokens_per_global) {
  return random_batch(model, {length}, tokens_per_global);
}

EncoderInput random_batch(const EncoderConfig& model, const std::vector<std::int64_t>& lengths,
                          std::int64_t tokens_per_global) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) input.token_ids.push_back(random_token(model, i));
    sparse::FixedBlocks blocks;
    if (model.has_global_tokens()) {
      const std::vector<std::int32_t> mask(static_cast<std::size_t>(length), 1);
      blocks = sparse::fixed_block_structure(mask, tokens_per_global);
    }
    const std::vector<std::int32_t>& globals = blocks.global_token_ids;
    input.global_token_ids.insert(input.global_token_ids.end(), globals.begin(), globals.end());
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
    structures.push_back(std::move(blocks.structure));
  }
  input.labels = model.labels(std::move(structures));
  return input;
}

CountedInput::CountedInput(const EncoderConfig& model, std::int64_t length, std::int64_t tokens_per_global) {
  // Long enough that the middle group of each type has neighbours on both sides up to the largest distance that labels
  // distinguish.
  const std::optional<sparse::LabelOptions> labels = model.label_options();
  const std::int64_t radius = labels ? labels->local_radius : 0;
  const std::int64_t distance = labels ? labels->relative_pos_max_distance : 0;
  const std::int64_t sample = std::max(4 * std::max(radius, distance) + 512, (4 * distance + 64) * tokens_per_global);
  if (!labels || length <= 2 * sample) {
    input_ = random_input(model, length, tokens_per_global);
    return;
  }
  const EncoderInput shorter = random_input(model, sample, tokens_per_global);
  sample_ = sample_of(radius, shorter);
  const std::int64_t L = length, G = ceil_div(length, tokens_per_global);
  const std::int64_t W = 2 * radius + 1;
  for (std::int64_t i = 0; i < L; ++i) input_.token_ids.push_back(random_token(model, i));
  input_.global_token_ids.assign(static_cast<std::size_t>(G), shorter.global_token_ids.front());
  input_.long_offsets.push_back(L);
  input_.global_offsets.push_back(G);
  input_.labels.l2l = Buffer<std::uint8_t>(L * W, Purpose::labels);
  input_.labels.l2g = Buffer<std::uint8_t>(L * G, Purpose::labels);
  input_.labels.g2g = Buffer<std::uint8_t>(G * G, Purpose::labels);
  input_.labels.g2l = Buffer<std::uint8_t>(G * L, Purpose::labels);
  input_.labels.long_relative = shorter.labels.long_relative;
  input_.labels.global_relative = shorter.labels.global_relative;
}

}  // namespace etc
