// Beam search over any model that gives the probability of each next token (translation 8; fairseq's semantics).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace etc::translation {

// Ids of the special tokens. pad: never a candidate; -1: the vocabulary has no such token.
struct SearchTokens {
  std::int32_t pad = 1, end = 2, unknown = 3;
};

struct SearchOptions {
  std::int64_t beam = 4;        // B
  double length_penalty = 0.6;  // α: a hypothesis' score is its sum divided by (tokens including </s>)^α
  double unknown_penalty = 0;   // u, subtracted from <unk>'s log-probability
  double max_len_a = 0;         // longest translation without </s>: min(a·S + b, limit - 1), S the source's tokens
  std::int64_t max_len_b = 200;
  std::int64_t limit = 1024;  // positions of the model
  std::int64_t min_len = 1;   // not counting </s>
  SearchTokens tokens;
  std::function<void()> before_step;  // called before each step; an exception ends the search. May be null
};

// A sentence to be translated.
struct SearchSentence {
  std::int64_t source_tokens = 0;    // S, with </s>
  std::vector<std::int32_t> prefix;  // tokens with which every hypothesis begins; they count in its score and length
  std::string name = {};             // for messages: "line 3"; empty: "sentence" and its index
};

// Whether a source has no token beside </s>. Such a source, an empty line, has no hypothesis: its translation is an empty
// line (translation 14).
inline bool is_empty_source(std::int64_t source_tokens) {
  return source_tokens <= 1;
}

// A sentence in messages: its name, or "sentence 7" if it has none.
std::string sentence_text(const std::string& name, std::size_t index);

// A hypothesis that is extended in the next step.
struct LiveHypothesis {
  std::int64_t sentence = 0;
  std::int64_t parent = -1;  // its parent's index among the hypotheses of the previous step; -1 in the first step
  std::int32_t token = 0;    // </s> in the first step, then the token chosen last
};

// A possible next token and its log-probability.
struct NextToken {
  std::int32_t token = 0;
  double log_p = 0;  // natural logarithm
};

// The source of token probabilities.
class NextTokens {
 public:
  virtual ~NextTokens() = default;
  virtual std::int64_t vocabulary() const = 0;  // V
  // Reads one more token of each hypothesis. Hypotheses of a sentence are adjacent, sentences ascend.
  virtual void step(std::span<const LiveHypothesis> hypotheses) = 0;

  // For the token after hypothesis i of the last step; thread-safe.
  // The k most probable tokens, best first, the lower token first among equals. If any probability is nan, one with nan comes
  // first.
  virtual std::vector<NextToken> best(std::int64_t hypothesis, std::int64_t k) const = 0;
  virtual double log_p(std::int64_t hypothesis, std::int32_t token) const = 0;
};

// best() for given log-probabilities, one for each token.
std::vector<NextToken> best_of(std::span<const double> log_p, std::int64_t k);

struct Hypothesis {
  std::vector<std::int32_t> tokens;  // with </s>
  std::vector<double> token_scores;  // log-probability of each
  double score = 0;                  // their sum / length^α
};

// Maximum number of tokens, without </s>, in a translation of S source tokens: min(a·S + b, limit - 1).
std::int64_t longest_translation(const SearchOptions& options, std::int64_t source_tokens);

// The number of best tokens that a search requests for a hypothesis: 2B, plus the special ones that may be excluded.
std::int64_t tokens_asked(const SearchOptions& options);

// The hypotheses of each sentence, best first, at most B, none of an empty source; all sentences advance together.
//   Step s = 0, 1, …, max_len: the candidates' scores are live score + log p; at s = 0 there is one empty hypothesis. Padding
//   is never a candidate, </s> not at s < min_len. At s = max_len only </s> is, within a prefix only the prefix's token.
//   The best min(2B, number - 1) candidates are sorted descending, the lower (hypothesis, token) first among equals. An </s>
//   among the first B becomes final while fewer than B hypotheses are; the first B other candidates stay live. A sentence
//   ends when it has B final hypotheses.
// Rules: a beam of V or more is reduced to V - 1 and logged. Throws UsageError on options outside their ranges or a prefix
//   longer than max_len allows; Error on nan in log p, naming sentence and step.
// Results do not depend on which sentences are searched together, provided that log p does not.
// Source: translation 8 (fairseq's sequence generator; no early stopping by score).
std::vector<std::vector<Hypothesis>> beam_search(NextTokens& model, std::span<const SearchSentence> sentences,
                                                 const SearchOptions& options);

}  // namespace etc::translation
