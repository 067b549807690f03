// Logits of a question's windows → its answer, the best answers and the null odds (dense-transformer 5.4, 5.5).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "etc_core/ops/top_k.h"

namespace etc::squad {

struct DecodeOptions {
  bool version_2 = false;                // questions may have no answer
  double null_score_diff_threshold = 0;  // the answer is "" where the null odds are larger
  std::int64_t n_best_size = 20;         // starts and ends of a window that are paired, and answers listed
  std::int64_t max_answer_length = 30;   // pieces
};

// The start and end logits of one window that decoding reads.
struct WindowLogits {
  std::span<const ops::Ranked> starts, ends;  // the n_best_size largest, in the order of ops/top_k.h
  float first_start = 0, first_end = 0;       // of position 0, which means no answer
};

struct ListedAnswer {
  std::string text;  // "": no answer
  double start_logit = 0, end_logit = 0;
  double probability = 0;                       // softmax of the sums over the list
  std::int64_t window = 0, start = 0, end = 0;  // positions; {0, 0}: no answer
};

struct DecodedQuestion {
  std::string answer;
  std::vector<ListedAnswer> n_best;  // best first; never empty
  std::string best_text;             // text of the first entry that has one; "": none has
  std::optional<double> null_odds;   // (null − start) − end of that entry, in double; nullopt: no such entry
};

// Collects the windows of one question in reading order.
class QuestionDecoder {
 public:
  QuestionDecoder(const DecodeOptions& options, std::shared_ptr<const data::Tokenizer> tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}

  // example: the window's features. Positions behind its last one are padding, which is never an answer. Throws Error
  // naming the example when a logit is not finite.
  void add(const WindowLogits& logits, const data::Example& example);

  // Without windows the answer is "empty", or "" in version 2.
  DecodedQuestion decode() const;

  // The first and last word of the context that contain the answer's pieces. Not for "no answer".
  std::pair<std::int64_t, std::int64_t> words_of(const ListedAnswer& answer) const;

 private:
  struct Candidate {
    std::int64_t window = 0, start = 0, end = 0;
    double start_logit = 0, end_logit = 0;
    double sum() const { return start_logit + end_logit; }
  };
  // The data from which the texts of a window's spans are built.
  struct WindowText {
    std::vector<std::int64_t> ids, words_of_tokens;
    std::vector<std::string> words;
    std::int64_t first_word = 0;
    bool lower_case = true;
  };

  std::vector<Candidate> sorted_candidates() const;
  std::vector<ListedAnswer> listed() const;
  std::string text_of(const Candidate& candidate) const;

  DecodeOptions options_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::vector<WindowText> windows_;
  std::vector<Candidate> candidates_;
  Candidate null_;  // the window with the smallest null score, the first of equals
};

}  // namespace etc::squad
