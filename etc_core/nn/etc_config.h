// Every field of an ETC model's configuration (etc-core 2.1, 9.3) with its validation (etc-core 2.2) and presets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "etc_core/nn/encoder_config.h"

namespace etc {

struct EtcConfig final : EncoderConfig {
  std::int64_t local_radius = 84;
  std::int64_t relative_pos_max_distance = 12;
  std::optional<std::int64_t> relative_vocab_size = 32;  // none: no relative attention
  bool share_feed_forward_params = true;
  bool share_kv_projections = false;
  bool share_qkv_projections = true;
  bool share_att_output_projection = false;
  bool use_pre_activation_order = false;
  bool use_hard_g2l_mask = false;
  bool use_hard_l2g_mask = false;

  EtcConfig() { residual_attention_types = attention_types(); }

  std::int64_t relative_labels() const { return relative_vocab_size.value_or(0); }  // R

  const std::vector<std::string>& attention_types() const override;  // l2l l2g g2g g2l
  // Rules 1-6 of etc-core 2.2, and relative_vocab_size at most 255.
  void validate() const override;
  const Fields& fields() const override;
  Json to_json() const override;
  std::unique_ptr<EncoderConfig> clone() const override { return std::make_unique<EtcConfig>(*this); }
  std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const override;
  bool has_global_tokens() const override { return true; }
  std::optional<sparse::LabelOptions> label_options() const override;
};

// Defaults overwritten by the object's keys. A wrong type is an error naming the key; so is an unknown key with
// UnknownKeys::refuse (warn: for a foreign etc_config.json). Does not validate().
EtcConfig etc_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown);

const std::vector<std::string>& etc_preset_names();
// The preset of that name; throws UsageError with a suggestion for an unknown name. vocab_size stays 0.
EtcConfig etc_config_preset(const std::string& name);

}  // namespace etc
