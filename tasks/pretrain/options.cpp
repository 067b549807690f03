#include "tasks/pretrain/options.h"

#include <limits>

namespace etc::pretrain {

const FieldList<Options>& fields() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Options> kFields{
      {"objective",
       &Options::objective,
       "mlm_nsp: masked pieces and next sentences; mlm: masked pieces; mlm_cpc: masked pieces and hidden sentences",
       {{"mlm_nsp", Objective::mlm_nsp}, {"mlm", Objective::mlm}, {"mlm_cpc", Objective::mlm_cpc}}},
      {"use_nsp", &Options::use_nsp, "mlm_nsp: false leaves the head of next sentences out"},
      {"w_mlm", &Options::w_mlm, "mlm_cpc: weight of the masked pieces' loss", {.least = 0}},
      {"w_cpc", &Options::w_cpc, "mlm_cpc: weight of the hidden sentences' loss", {.least = 0}},
      {"cpc_similarity",
       &Options::cpc_similarity,
       "similarity of a prediction and a sentence: dot, scaled_dot (by the square root of the size) or cosine",
       {{"scaled_dot", CpcSimilarity::scaled_dot}, {"dot", CpcSimilarity::dot}, {"cosine", CpcSimilarity::cosine}}},
      {"cpc_temperature", &Options::cpc_temperature, "divides similarities; 0: 1, or 0.1 of a cosine", {.least = 0}},
      {"cpc_projection", &Options::cpc_projection, "a dense layer between a global token's state and its prediction"},
      {"cpc_stop_target_gradient", &Options::cpc_stop_target_gradient, "learn nothing through the sentences alone"},
      {"cpc_mask_global_id",
       &Options::cpc_mask_global_id,
       "token id of the global token of a hidden sentence; 1 as of any other",
       {.least = 0, .most = kMost}},
      {"cpc_mask_sentences", &Options::cpc_mask_sentences,
       "false: a control; the chosen sentences stay visible, and finding them is easy"},
      {"masked_lm_prob",
       &Options::masked_lm_prob,
       "share of the pieces that is masked and predicted, where masks are drawn while training (--dynamic-masking); 0: "
       "as the data were prepared",
       {.least = 0, .most = 1}},
      {"max_predictions_per_seq",
       &Options::max_predictions,
       "most masked pieces of an example, where masks are drawn while training; null: as the data "
       "were prepared; mlm_cpc has no limit",
       {.least = 1, .most = kMost}},
      {"whole_word_mask", &Options::whole_word_mask,
       "mask all pieces of a word or none, where masks are drawn while training; null: as the data were "
       "prepared"},
      {"cpc_sentence_prob",
       &Options::cpc_sentence_prob,
       "mlm_cpc: share of the sentences that is hidden, where masks are drawn while training; 0: as the data were "
       "prepared",
       {.least = 0, .most = 1}},
      {"masking_seed", &Options::masking_seed, "seed of the masks that are drawn while training"},
  };
  return kFields;
}

Options read_options(const Json& section) {
  Options options = fields().read(section, "config", "task.");
  options.whole_words = masks_whole_words(options.whole_word_mask, options.objective, "config", "task.whole_word_mask");
  return options;
}

}  // namespace etc::pretrain
