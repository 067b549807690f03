// From a record's texts to the long and the global sequence and their labels (task-hotpotqa 2.2 – 2.7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/prepare_config.h"
#include "tasks/hotpotqa/record.h"
#include "tasks/text/offset_text.h"

namespace etc::hotpotqa {

inline constexpr std::int64_t kNone = -1;

enum LongType : std::int64_t { kPaddingType = 0, kSentenceType = 1, kTitleType = 2, kQuestionType = 3 };

// A span of long tokens that contains the answer.
struct AnswerSpan {
  text::TokenSpan tokens;
  bool skipped = false;  // its text was left out for length: the positions refer to the text that follows (quirk H2)
  bool inside_word = false;
};

// n_l long and n_g global elements; the table of task-hotpotqa 2.5 defines them.
struct Features {
  std::vector<std::int64_t> long_token_ids, long_token_type_ids, long_sentence_ids, long_paragraph_ids,
      long_paragraph_breakpoints;                     // [n_l]
  std::vector<std::int64_t> long_tokens_to_unigrams;  // [n_l]; SentencePiece: empty
  std::vector<std::int64_t> global_token_ids, global_token_type_ids, global_paragraph_breakpoints, global_paragraph_ids,
      global_sentence_ids, global_true_sentence_ids, supporting_facts;  // [n_g]
  // [n_g]: the title, or the sentence with the number in global_sentence_ids; "" for others
  std::vector<std::string> global_text;
  std::vector<AnswerSpan> answer_spans;  // sorted by their ends, equal ends in text order
  std::int64_t question_tokens = 0;      // before anything is skipped
  std::int64_t skipped_for_long = 0;     // question pieces, titles and sentences left out
  std::int64_t skipped_for_global = 0;   // the same where the long tokens would have fitted
  std::int64_t facts_cut_away = 0;       // sentences that are supporting facts among them
};

// The sequences of a record; text that does not fit is skipped:
//   long    CLS, question pieces, then per paragraph its title's and its sentences' pieces
//   global  CLS, one per question piece, then per paragraph one for itself, its title and each sentence
// Cost: linear in the text.
Features lay_out(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config);

enum class AnswerType : std::int64_t { span = 0, yes = 1, no = 2 };

// The training target of a labelled record. With a fault the record cannot be trained on and the other members are
// meaningless.
struct Label {
  enum class Fault {
    none,
    no_sf_label,
    answer_empty,
    answer_not_found,
    answer_beyond_limit,
    answer_in_cut_text,
    answer_without_tokens,  // every occurrence is of characters that have no token (quirk H14)
    answer_reversed         // in the reference's reading the span ends before it begins (quirk H15)
  };
  Fault fault = Fault::none;
  AnswerType type = AnswerType::span;
  text::TokenSpan span;              // (0, 0), the CLS position: none
  std::optional<AnswerSpan> source;  // the occurrence behind the span
  std::int64_t inverted_spans = 0;   // occurrences that were left out because they end before they begin
};
Label choose_label(const Record& record, const Features& features, const PrepareConfig& config);

// BIO labels of `length` long positions: 0 begins a span, 1 is inside, 2 is outside. Spans are applied in order, up to the
// first that reaches beyond the length. Spans that end before they begin are left out (quirk H14).
std::vector<std::int64_t> bio_labels(const std::vector<AnswerSpan>& spans, std::int64_t length);

}  // namespace etc::hotpotqa
