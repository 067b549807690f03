// Configurations of small encoders.
#pragma once

#include "etc_core/nn/etc_config.h"

namespace etc::test {

// The settings of an encoder that tests choose; the others are the defaults of EtcConfig, without dropout.
struct SmallSizes {
  std::int64_t vocabulary = 64, hidden = 16, layers = 2, heads = 2, inner = 32;
  std::int64_t radius = 4, distance = 2, labels = 8;  // local radius, relative distance and labels
};

inline EtcConfig small_config(const SmallSizes& sizes) {
  EtcConfig config;
  config.vocab_size = sizes.vocabulary;
  config.hidden_size = sizes.hidden;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.intermediate_size = sizes.inner;
  config.local_radius = sizes.radius;
  config.relative_pos_max_distance = sizes.distance;
  config.relative_vocab_size = sizes.labels;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  return config;
}

}  // namespace etc::test
