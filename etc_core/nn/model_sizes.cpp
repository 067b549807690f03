#include "etc_core/nn/model_sizes.h"

#include "etc_core/base/error.h"

namespace etc {

void check_heads(const EncoderConfig& config) {
  if (!config.att_size_per_head && config.hidden_size % config.num_attention_heads != 0) {
    fail_usage("config",
               "hidden_size: expected a multiple of num_attention_heads={}, got {} (or set att_size_per_head)",
               config.num_attention_heads, config.hidden_size);
  }
  if (config.attention_size() > kMaxModelSize) {
    fail_usage("config", "num_attention_heads * att_size_per_head: expected at most {}, got {}", kMaxModelSize,
               config.attention_size());
  }
}

}  // namespace etc
