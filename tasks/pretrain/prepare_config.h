// The settings of pre-training's preparation (keys in pretraining 4, their effects in 1.2, 1.3, 1.8, 2.2 and 2.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tasks/pretrain/objective.h"

namespace etc::pretrain {

// The meaning of a line of the text.
enum class Lines {
  sentences,   // a sentence
  paragraphs,  // running text of one or more sentences
  wrapped,     // a part of a paragraph, which ends at the next empty line
};

// Where the documents of a plain text end. Each JSON line is a document.
enum class DocumentEnds {
  empty_lines,  // at empty lines; the end of a file does not end a document
  files,        // at the end of each file
};

struct PrepareConfig {
  Objective objective = Objective::mlm_nsp;
  // Without a value: the objective's default, see read_prepare_config().
  std::optional<std::int64_t> max_seq_length, max_predictions_per_seq, dupe_factor, min_document_sentences;
  Json whole_word_mask;  // true, false, or null: the objective's default
  double masked_lm_prob = 0.15;
  double short_seq_prob = 0.1;
  double cpc_sentence_prob = 0.15;
  bool dynamic_masking = false;
  std::int64_t max_sentence_tokens = 256;
  std::int64_t global_seq_len = 256;
  std::uint64_t random_seed = 12345;
  Lines lines = Lines::sentences;
  std::string splitter = "icu";
  DocumentEnds document_ends = DocumentEnds::empty_lines;
  std::string text_key;   // empty: plain text
  std::string tokenizer;  // the required kind; empty: any
  bool do_lower_case = true;
};

const FieldList<PrepareConfig>& prepare_settings();

// Reads the settings and fills in the defaults of the keys that are not given:
//   max_seq_length            128 (mlm_nsp), 512
//   max_predictions_per_seq   max_seq_length · masked_lm_prob, rounded up, so that it is no restriction: 20 for 128
//   dupe_factor               10; 1 for dynamic masks of an objective whose instances do not differ otherwise
//   min_document_sentences    7 (mlm_cpc), 0
//   whole_word_mask           false (mlm_nsp), true
// Throws UsageError naming key and value.
PrepareConfig read_prepare_config(const Json& settings);

// Whether an instance may have more pieces to predict than max_predictions_per_seq.
bool limits_predictions(const PrepareConfig& config);

}  // namespace etc::pretrain
