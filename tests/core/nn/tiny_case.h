// The configuration and the inputs of a tiny encoder.
#pragma once

#include <vector>

#include "etc_core/base/random.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "sparse/labels/builders.h"
#include "tests/support/small_config.h"

namespace etc::test {

inline EtcConfig tiny_config() {
  EtcConfig config =
      small_config({.vocabulary = 20, .hidden = 12, .layers = 4, .inner = 16, .radius = 3, .distance = 2, .labels = 9});
  config.segment_vocab_size = 4;
  config.initializer_range = 0.3;
  config.share_qkv_projections = false;
  return config;
}

// Examples of these long and global lengths with random tokens; every global token stands for three long ones.
inline EncoderInput tiny_input(const EtcConfig& config, const std::vector<std::int64_t>& lengths,
                               const std::vector<std::int64_t>& globals, std::int64_t first_ordinal = 0) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto ordinal = first_ordinal + static_cast<std::int64_t>(b);
    const auto draw = [&](std::int64_t i, std::uint64_t what) {
      const auto bits =
          philox({static_cast<std::uint32_t>(i), 0, 0, 0}, mix_key(what, static_cast<std::uint64_t>(ordinal)));
      return static_cast<std::int32_t>(bits[0] % static_cast<std::uint64_t>(config.vocab_size));
    };
    std::vector<std::int32_t> sentences;
    for (std::int64_t i = 0; i < lengths[b]; ++i) {
      input.token_ids.push_back(draw(i, 1));
      input.segment_ids.push_back(draw(i, 2) % 3);
      sentences.push_back(static_cast<std::int32_t>(i / 3));
    }
    for (std::int64_t i = 0; i < globals[b]; ++i) input.global_token_ids.push_back(draw(i, 3));
    input.long_offsets.push_back(input.long_offsets.back() + lengths[b]);
    input.global_offsets.push_back(input.global_offsets.back() + globals[b]);
    input.sample_ordinals.push_back(ordinal);
    structures.push_back(sparse::structure_from_example_ids(
        std::vector<std::int32_t>(static_cast<std::size_t>(lengths[b]), 1),
        std::vector<std::int32_t>(static_cast<std::size_t>(globals[b]), 1), sentences));
  }
  input.labels = sparse::build_labels(structures, {config.local_radius, config.relative_pos_max_distance,
                                                   config.use_hard_g2l_mask, config.use_hard_l2g_mask});
  return input;
}

}  // namespace etc::test
