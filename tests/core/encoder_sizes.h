// Encoders of a few numbers, for tests that need one of any kind.
#pragma once

#include <cstdint>

namespace etc::test {

struct EncoderSizes {
  std::int64_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, feed_forward = 0;  // V, H, layers, N, F
};

// The configuration with these sizes: of an ETC or dense encoder, or of a published BERT.
template <typename Config>
Config with_sizes(Config config, const EncoderSizes& sizes) {
  config.vocab_size = sizes.vocabulary;
  config.hidden_size = sizes.hidden;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.intermediate_size = sizes.feed_forward;
  return config;
}

}  // namespace etc::test
