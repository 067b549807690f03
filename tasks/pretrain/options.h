// Section `task` of pre-training (pretraining 4).
#pragma once

#include <cstdint>
#include <optional>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tasks/pretrain/loss.h"
#include "tasks/pretrain/objective.h"

namespace etc::pretrain {

struct Options {
  Objective objective = Objective::mlm_nsp;
  bool use_nsp = true;

  double w_mlm = 0.8, w_cpc = 0.2;
  CpcSimilarity cpc_similarity = CpcSimilarity::scaled_dot;
  double cpc_temperature = 0;
  bool cpc_projection = true;
  bool cpc_stop_target_gradient = false;
  std::int64_t cpc_mask_global_id = 2;
  bool cpc_mask_sentences = true;

  // For masks that are drawn while training. Without a value, 0 or null: as the data were prepared (mask_settings.h).
  double masked_lm_prob = 0;
  std::optional<std::int64_t> max_predictions;
  Json whole_word_mask;  // true, false or null
  double cpc_sentence_prob = 0;
  std::uint64_t masking_seed = 12345;
  bool whole_words = false;  // whole_word_mask, or the objective's default, by read_options()

  bool nsp() const { return objective == Objective::mlm_nsp && use_nsp; }
  bool cpc() const { return objective == Objective::mlm_cpc; }
  double mlm_weight() const { return cpc() ? w_mlm : 1; }
  double temperature() const {
    if (cpc_temperature > 0) return cpc_temperature;
    return cpc_similarity == CpcSimilarity::cosine ? 0.1 : 1.0;
  }
};

// The keys of section `task`, each with its help and its range.
const FieldList<Options>& fields();

// Reads the section. Throws UsageError "config: task.<key>: …".
Options read_options(const Json& section);

}  // namespace etc::pretrain
