#include "tasks/pretrain/prepare_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/pretrain/masking.h"
#include "tasks/text/settings.h"

namespace etc::pretrain {

namespace {

// Fills in the values that depend on the objective where none is given.
void resolve(PrepareConfig& config) {
  const bool pairs = config.objective == Objective::mlm_nsp, cpc = config.objective == Objective::mlm_cpc;
  constexpr std::int64_t kPairLength = 128, kRunLength = 512, kCopies = 10, kCpcSentences = 7;
  const auto set = [](std::optional<std::int64_t>& value, std::int64_t usual) { value = value.value_or(usual); };
  set(config.max_seq_length, pairs ? kPairLength : kRunLength);
  const double share = static_cast<double>(*config.max_seq_length) * config.masked_lm_prob;
  set(config.max_predictions_per_seq, std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share))));
  set(config.dupe_factor, config.dynamic_masking && !pairs ? 1 : kCopies);
  set(config.min_document_sentences, cpc ? kCpcSentences : 0);
  config.whole_word_mask =
      masks_whole_words(config.whole_word_mask, config.objective, "etc prepare", "whole_word_mask");
}

}  // namespace

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  constexpr double kLeastLength = 5;  // [CLS] A [SEP] B [SEP]
  constexpr double kMostCopies = 10000;
  static const FieldList<Config> kSettings{
      {"objective",
       &Config::objective,
       "mlm_nsp: masked pieces and next sentence; mlm: masked pieces; mlm_cpc: masked pieces and hidden sentences",
       {{"mlm_nsp", Objective::mlm_nsp}, {"mlm", Objective::mlm}, {"mlm_cpc", Objective::mlm_cpc}}},
      {"max_seq_length",
       &Config::max_seq_length,
       "most pieces of an instance, special ones included; null: 128 for mlm_nsp, else 512",
       {.least = kLeastLength, .most = kMost}},
      {"max_predictions_per_seq",
       &Config::max_predictions_per_seq,
       "most masked pieces of an instance; null: max_seq_length · masked_lm_prob, rounded up; mlm_cpc has no such "
       "limit",
       {.least = 1, .most = kMost}},
      {"masked_lm_prob", &Config::masked_lm_prob, "share of the pieces to mask", {.above = 0, .most = 1}},
      {"short_seq_prob",
       &Config::short_seq_prob,
       "mlm_nsp: share of documents cut into shorter instances",
       {.least = 0, .most = 1}},
      {"dupe_factor",
       &Config::dupe_factor,
       "copies of the text, each with other draws; null: 10, or 1 where only masks would differ and are dynamic",
       {.least = 1, .most = kMostCopies}},
      {"whole_word_mask", &Config::whole_word_mask, "mask all pieces of a word or none; null: not for mlm_nsp"},
      {"dynamic_masking", &Config::dynamic_masking, "store no masks: training draws them afresh in every epoch"},
      {"min_document_sentences",
       &Config::min_document_sentences,
       "documents of fewer sentences are left out; null: 7 for mlm_cpc, else 0",
       {.least = 0, .most = kMost}},
      {"max_sentence_tokens",
       &Config::max_sentence_tokens,
       "mlm, mlm_cpc: longer sentences are cut into parts of this many pieces",
       {.least = 1, .most = kMost}},
      {"cpc_sentence_prob",
       &Config::cpc_sentence_prob,
       "mlm_cpc: share of the sentences to hide",
       {.above = 0, .most = 1}},
      text::global_seq_len_entry<Config>(),
      {"random_seed", &Config::random_seed, "equal seeds give equal instances"},
      {"lines",
       &Config::lines,
       "sentences: each line is one; paragraphs: each line is running text; wrapped: a paragraph ends at an empty line",
       {{"sentences", Lines::sentences}, {"paragraphs", Lines::paragraphs}, {"wrapped", Lines::wrapped}}},
      {"splitter", &Config::splitter, "sentence splitter: icu, or punkt:DIR with the Punkt tables in DIR"},
      {"document_ends",
       &Config::document_ends,
       "plain text: empty_lines or files end a document",
       {{"empty_lines", DocumentEnds::empty_lines}, {"files", DocumentEnds::files}}},
      {"text_key", &Config::text_key,
       "input of JSON lines: the member that holds a document's text; empty: plain text"},
      text::tokenizer_entry<Config>(),
      text::lower_case_entry<Config>(),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings) {
  PrepareConfig config = prepare_settings().read(settings, "etc prepare");
  resolve(config);
  return config;
}

bool limits_predictions(const PrepareConfig& config) {
  return *config.max_predictions_per_seq < number_to_mask(*config.max_seq_length, config.masked_lm_prob, kNoLimit);
}

}  // namespace etc::pretrain
