// Every field of a model's configuration (etc-core 2.1, 9.3) with its validation (etc-core 2.2) and presets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc {

class Fields;  // base/fields.h

struct EtcConfig {
  std::int64_t vocab_size = 0;  // required
  std::int64_t segment_vocab_size = 16;
  std::optional<std::int64_t> embedding_size;  // none: hidden_size
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t local_radius = 84;
  std::optional<std::int64_t> att_size_per_head;  // none: hidden_size / num_attention_heads
  std::int64_t relative_pos_max_distance = 12;
  std::optional<std::int64_t> relative_vocab_size = 32;  // none: no relative attention
  std::int64_t max_absolute_position_embeddings = 0;
  std::int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;
  bool share_feed_forward_params = true;
  bool share_kv_projections = false;
  bool share_qkv_projections = true;
  bool share_att_output_projection = false;
  bool use_pre_activation_order = false;
  bool use_hard_g2l_mask = false;
  bool use_hard_l2g_mask = false;
  std::int64_t grad_checkpointing_period = 0;
  bool use_residual_attention = false;
  bool use_running_mean = false;
  std::vector<std::string> residual_attention_types = {"l2l", "l2g", "g2g", "g2l"};

  std::int64_t head_size() const;       // D
  std::int64_t attention_size() const;  // A = N·D
  std::int64_t embedding_width() const;
  std::int64_t relative_labels() const { return relative_vocab_size.value_or(0); }  // R

  // Throws UsageError "config: …" on every impossible combination of etc-core 2.2 (rules 1-6) and on
  // relative_vocab_size above 255, each naming field, value and limit.
  void validate() const;

  Json to_json() const;  // all fields, sorted
};

// Every field with its help and its range.
const Fields& etc_config_fields();

// Defaults overwritten by the object's keys. strict (our own files): an unknown key is a UsageError with a suggestion;
// otherwise (a foreign etc_config.json) it is a warning. A wrong type is an error naming the key. Does not validate().
EtcConfig etc_config_from_json(const Json& json, const std::string& where, bool strict);

// "tiny", "small", "base", "large"; throws UsageError with a suggestion on another name. vocab_size stays 0.
EtcConfig etc_config_preset(const std::string& name);

}  // namespace etc
