// Beam search over any model that says how probable each next token is (translation 8; fairseq's semantics).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace etc::translation {

// Ids of the special tokens.
struct SearchTokens {
  std::int32_t pad = 1, end = 2, unknown = 3;
};

struct SearchOptions {
  std::int64_t beam = 4;        // B
  double length_penalty = 0.6;  // α: a hypothesis' score is its sum divided by (tokens, </s> counted)^α
  double unknown_penalty = 0;   // u, taken off <unk>'s log-probability
  double max_len_a = 0;         // longest translation without </s>: min(a·S + b, limit - 1), S the source's tokens
  std::int64_t max_len_b = 200;
  std::int64_t limit = 1024;  // positions of the model
  std::int64_t min_len = 1;   // </s> not counted
  SearchTokens tokens;
  std::function<void()> before_step;  // called before each step; what it throws ends the search. Null: nothing
};

// What is translated.
struct SearchSentence {
  std::int64_t source_tokens = 0;    // S, with </s>
  std::vector<std::int32_t> prefix;  // tokens every hypothesis begins with; they count in its score and length
};

// A hypothesis that goes on: what the model is asked of.
struct LiveHypothesis {
  std::int64_t sentence = 0;
  std::int64_t parent = -1;  // its place among those of the step before; -1 in the first
  std::int32_t token = 0;    // </s> in the first step, then what was chosen last
};

// A token that may be next, and how probable it is.
struct NextToken {
  std::int32_t token = 0;
  double log_p = 0;  // natural logarithm
};

// Who says how probable tokens are.
class NextTokens {
 public:
  virtual ~NextTokens() = default;
  virtual std::int64_t vocabulary() const = 0;  // V
  // Reads one token more of each hypothesis. Hypotheses of a sentence are neighbours, sentences ascend.
  virtual void step(std::span<const LiveHypothesis> hypotheses) = 0;

  // Of what follows hypothesis i of the last step; any thread may ask.
  // The k most probable tokens, best first, of equal ones the lower first; where one is nan, such a one before all others.
  virtual std::vector<NextToken> best(std::int64_t hypothesis, std::int64_t k) const = 0;
  virtual double log_p(std::int64_t hypothesis, std::int32_t token) const = 0;
};

// best() of numbers that are there, one for each token.
std::vector<NextToken> best_of(std::span<const double> log_p, std::int64_t k);

struct Hypothesis {
  std::vector<std::int32_t> tokens;  // with </s>
  std::vector<double> token_scores;  // log-probability of each
  double score = 0;                  // their sum / length^α
};

// Tokens without </s> that a translation of S source tokens has at most: min(a·S + b, limit - 1).
std::int64_t longest_translation(const SearchOptions& options, std::int64_t source_tokens);

// How many of a hypothesis' best tokens a search asks for: 2B, and the special ones that may not come.
std::int64_t tokens_asked(const SearchOptions& options);

// The hypotheses of each sentence, best first, B of them where there are so many; all sentences go forward together.
//   Step s = 0, 1, …, max_len: candidates are live score + log p, at s = 0 of one empty hypothesis; padding never,
//   </s> alone at s = max_len and never at s < min_len, a prefix's token alone within it. Of the best min(2B, number - 1),
//   descending, of equal ones the lower (hypothesis, token) first, those among the first B that are </s> are final, while
//   fewer than B are; the first B others live on. A sentence ends with B final ones.
// Rules: a beam of V or more is reduced to V - 1, which the log says. Throws UsageError on options outside their ranges or a
//   prefix longer than max_len allows, Error on nan among log p, naming sentence and step.
// Results do not depend on which sentences are searched together, as far as log p does not.
// Source: translation 8 (fairseq's sequence generator; no early stopping by score).
std::vector<std::vector<Hypothesis>> beam_search(NextTokens& model, std::span<const SearchSentence> sentences,
                                                 const SearchOptions& options);

}  // namespace etc::translation
