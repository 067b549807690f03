#include "tasks/translation/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"

namespace etc::translation {

namespace {

constexpr const char* kWhere = "beam search";
constexpr double kNever = -std::numeric_limits<double>::infinity();

// A live hypothesis with its sum of log-probabilities.
struct Beam {
  Hypothesis so_far;  // without its score
  double sum = 0;
  std::int64_t place = -1;  // index among all hypotheses of the last step
};

struct Candidate {
  double sum = kNever, log_p = kNever;
  std::int64_t hypothesis = 0;
  std::int32_t token = 0;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return std::pair(a.hypothesis, a.token) < std::pair(b.hypothesis, b.token);
}

// The search of one sentence, independent of the other sentences.
class Search {
 public:
  Search(const SearchSentence& sentence, const SearchOptions& options, std::int64_t vocabulary)
      : options_(options), prefix_(sentence.prefix), vocabulary_(vocabulary) {
    max_len_ = longest_translation(options, sentence.source_tokens);
    if (std::ssize(prefix_) > max_len_) {
      fail_usage(kWhere, "a prefix: expected at most {} tokens, got {}", max_len_, prefix_.size());
    }
    for (const std::int32_t token : prefix_) {
      if (token >= 0 && token < vocabulary && token != options.tokens.pad && token != options.tokens.end) continue;
      fail_usage(kWhere, "a prefix: expected tokens below {} other than padding and </s>, got {}", vocabulary, token);
    }
    if (!is_empty_source(sentence.source_tokens)) live_.emplace_back();
  }

  bool done() const { return live_.empty(); }
  const std::vector<Beam>& live() const { return live_; }
  std::vector<Beam>& live() { return live_; }

  // Processes the results of step s, in which this sentence's hypotheses started at index `first`.
  void advance(std::int64_t s, const NextTokens& model, std::int64_t first) {
    std::vector<Beam> next;
    std::int64_t rank = 0;
    for (const Candidate& candidate : best_candidates(s, model, first)) {
      const bool among_first = rank++ < options_.beam;
      if (candidate.token == options_.tokens.end) {
        // An </s> ranked behind the first B is dropped, not kept for later.
        if (among_first && std::ssize(final_) < options_.beam) finish(candidate);
      } else if (std::ssize(next) < options_.beam) {
        next.push_back(extended(candidate));
      }
    }
    if (std::ssize(final_) >= options_.beam || s >= max_len_) next.clear();
    live_ = std::move(next);
  }

  std::vector<Hypothesis> results() && {
    std::ranges::stable_sort(final_, [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return std::move(final_);
  }

 private:
  // The only token that may follow in step s; nullopt: any token.
  std::optional<std::int32_t> forced(std::int64_t s) const {
    if (s >= max_len_) return options_.tokens.end;
    if (s < std::ssize(prefix_)) return prefix_[static_cast<std::size_t>(s)];
    return {};
  }

  // At least the best 2B tokens of one hypothesis, each with its penalty.
  std::vector<NextToken> tokens_of(std::int64_t s, const NextTokens& model, std::int64_t hypothesis) const {
    const auto [pad, end, unknown] = options_.tokens;
    const auto with_penalty = [&](std::int32_t token) {
      return NextToken{token, model.log_p(hypothesis, token) - (token == unknown ? options_.unknown_penalty : 0)};
    };
    if (const auto only = forced(s)) return {with_penalty(*only)};
    std::vector<NextToken> tokens;
    if (unknown != pad) tokens.push_back(with_penalty(unknown));
    for (const NextToken& each : model.best(hypothesis, std::min(vocabulary_, tokens_asked(options_)))) {
      const bool too_early = each.token == end && s < options_.min_len;
      if (each.token != pad && each.token != unknown && !too_early) tokens.push_back(each);
    }
    return tokens;
  }

  // Best first; candidates with probability 0 are left out.
  std::vector<Candidate> best_candidates(std::int64_t s, const NextTokens& model, std::int64_t first) const {
    std::vector<Candidate> all;
    for (std::int64_t i = 0; i < std::ssize(live_); ++i) {
      const double sum = live_[static_cast<std::size_t>(i)].sum;
      for (const auto& [token, log_p] : tokens_of(s, model, first + i)) {
        if (log_p != kNever) all.push_back({sum + log_p, log_p, i, token});
      }
    }
    const std::int64_t most = std::min(2 * options_.beam, std::ssize(live_) * vocabulary_ - 1);
    const auto kept = static_cast<std::ptrdiff_t>(std::min(most, std::ssize(all)));
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), better);
    all.resize(static_cast<std::size_t>(kept));
    return all;
  }

  Beam extended(const Candidate& candidate) const {
    Beam beam = live_[static_cast<std::size_t>(candidate.hypothesis)];
    beam.so_far.tokens.push_back(candidate.token);
    beam.so_far.token_scores.push_back(candidate.log_p);
    beam.sum = candidate.sum;
    return beam;
  }

  void finish(const Candidate& candidate) {
    Beam beam = extended(candidate);
    beam.so_far.score = beam.sum / std::pow(static_cast<double>(beam.so_far.tokens.size()), options_.length_penalty);
    final_.push_back(std::move(beam.so_far));
  }

  const SearchOptions& options_;
  const std::vector<std::int32_t> prefix_;
  const std::int64_t vocabulary_;
  std::int64_t max_len_ = 0;
  std::vector<Beam> live_;
  std::vector<Hypothesis> final_;
};

SearchOptions checked(SearchOptions options, std::int64_t vocabulary) {
  const auto at_least = [](const char* name, auto value, auto least) {
    if (!(value >= least)) fail_usage(kWhere, "{}: expected at least {}, got {}", name, least, value);
  };
  at_least("beam", options.beam, std::int64_t{1});
  at_least("max_len_a", options.max_len_a, 0.0);
  at_least("max_len_b", options.max_len_b, std::int64_t{0});
  at_least("min_len", options.min_len, std::int64_t{0});
  at_least("limit", options.limit, std::int64_t{1});
  if (!std::isfinite(options.length_penalty) || !std::isfinite(options.unknown_penalty)) {
    fail_usage(kWhere, "penalties: expected numbers, got {} and {}", options.length_penalty, options.unknown_penalty);
  }
  for (const std::int32_t token : {options.tokens.pad, options.tokens.end, options.tokens.unknown}) {
    if (token >= 0 && token < vocabulary) continue;
    if (token == -1 && token == options.tokens.pad) continue;
    fail_usage(kWhere, "special tokens: expected ids below the vocabulary's {}, got {}", vocabulary, token);
  }
  if (options.beam >= vocabulary) {
    log::warn("{}: beam {} is reduced to {}: the vocabulary has {} tokens", kWhere, options.beam, vocabulary - 1,
              vocabulary);
    options.beam = std::max<std::int64_t>(1, vocabulary - 1);
  }
  return options;
}

// The hypotheses of one step.
struct SearchStep {
  std::int64_t number;
  std::span<const LiveHypothesis> hypotheses;
};

// Throws Error naming sentence and step if log p has a nan.
void require_numbers(const NextTokens& model, std::span<const SearchSentence> sentences, const SearchStep& step) {
  const auto& [number, hypotheses] = step;
  for (std::int64_t i = 0; i < std::ssize(hypotheses); ++i) {
    const NextToken first = model.best(i, 1).at(0);
    if (!std::isnan(first.log_p)) continue;
    const auto sentence = static_cast<std::size_t>(hypotheses[static_cast<std::size_t>(i)].sentence);
    fail(kWhere, "{}, step {}: the model's log-probabilities have nan (token {})",
         sentence_text(sentences[sentence].name, sentence), number, first.token);
  }
}

}  // namespace

std::string sentence_text(const std::string& name, std::size_t index) {
  return name.empty() ? fmt::format("sentence {}", index) : name;
}

std::int64_t longest_translation(const SearchOptions& options, std::int64_t source_tokens) {
  const double most = options.max_len_a * static_cast<double>(source_tokens) + static_cast<double>(options.max_len_b);
  return std::min(static_cast<std::int64_t>(std::min(most, 1e15)), options.limit - 1);
}

std::int64_t tokens_asked(const SearchOptions& options) {
  constexpr std::int64_t kSpecial = 3;
  return 2 * options.beam + kSpecial;
}

std::vector<NextToken> best_of(std::span<const double> log_p, std::int64_t k) {
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const double x = log_p[static_cast<std::size_t>(a)], y = log_p[static_cast<std::size_t>(b)];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(x);
    return x == y || std::isnan(x) ? a < b : x > y;
  };
  std::vector<std::int32_t> tokens(log_p.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(k, std::ssize(tokens)));
  std::partial_sort(tokens.begin(), tokens.begin() + kept, tokens.end(), before);
  std::vector<NextToken> best;
  for (const std::int32_t token : std::span(tokens).first(static_cast<std::size_t>(kept))) {
    best.push_back({token, log_p[static_cast<std::size_t>(token)]});
  }
  return best;
}

std::vector<std::vector<Hypothesis>> beam_search(NextTokens& model, std::span<const SearchSentence> sentences,
                                                 const SearchOptions& given) {
  const std::int64_t vocabulary = model.vocabulary();
  const SearchOptions options = checked(given, vocabulary);
  std::vector<Search> searches;
  for (const SearchSentence& sentence : sentences) searches.emplace_back(sentence, options, vocabulary);
  for (std::int64_t s = 0;; ++s) {
    std::vector<LiveHypothesis> live;
    std::vector<std::pair<std::size_t, std::int64_t>> going;  // sentence, index of its first hypothesis
    for (std::size_t b = 0; b < searches.size(); ++b) {
      if (searches[b].done()) continue;
      going.emplace_back(b, std::ssize(live));
      for (Beam& beam : searches[b].live()) {
        const std::int32_t token = s == 0 ? options.tokens.end : beam.so_far.tokens.back();
        live.push_back({static_cast<std::int64_t>(b), beam.place, token});
        beam.place = std::ssize(live) - 1;
      }
    }
    if (live.empty()) break;
    if (options.before_step) options.before_step();
    model.step(live);
    require_numbers(model, sentences, {s, live});
    parallel_for(std::ssize(going), [&](std::int64_t i) {
      const auto& [sentence, first] = going[static_cast<std::size_t>(i)];
      searches[sentence].advance(s, model, first);
    });
  }
  std::vector<std::vector<Hypothesis>> results;
  for (Search& search : searches) results.push_back(std::move(search).results());
  return results;
}

}  // namespace etc::translation
