#include "tasks/translation/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"

namespace etc::translation {

namespace {

constexpr const char* kWhere = "beam search";
constexpr double kNever = -std::numeric_limits<double>::infinity();

// A hypothesis that goes on, with its sum.
struct Beam {
  Hypothesis so_far;  // without its score
  double sum = 0;
  std::int64_t place = -1;  // among all hypotheses of the last step
};

struct Candidate {
  double sum = kNever;
  std::int64_t flat = 0;  // hypothesis·V + token
};

bool better(const Candidate& a, const Candidate& b) {
  return a.sum != b.sum ? a.sum > b.sum : a.flat < b.flat;
}

// One sentence's search. Sentences do not see each other.
class Search {
 public:
  Search(const SearchSentence& sentence, const SearchOptions& options, std::int64_t vocabulary)
      : options_(options), prefix_(sentence.prefix), vocabulary_(vocabulary) {
    const double most =
        options.max_len_a * static_cast<double>(sentence.source_tokens) + static_cast<double>(options.max_len_b);
    max_len_ = std::min(static_cast<std::int64_t>(most), options.limit - 1);
    if (std::ssize(prefix_) > max_len_) {
      fail_usage(kWhere, "a prefix: expected at most {} tokens, got {}", max_len_, prefix_.size());
    }
    for (const std::int32_t token : prefix_) {
      if (token >= 0 && token < vocabulary && token != options.tokens.pad && token != options.tokens.end) continue;
      fail_usage(kWhere, "a prefix: expected tokens below {} other than padding and </s>, got {}", vocabulary, token);
    }
    live_.emplace_back();
  }

  bool done() const { return live_.empty(); }
  const std::vector<Beam>& live() const { return live_; }
  std::vector<Beam>& live() { return live_; }

  // log_p [live, V] after step s; penalties are put into it.
  void advance(std::int64_t s, double* log_p) {
    restrict_tokens(s, log_p);
    std::vector<Beam> next;
    std::int64_t rank = 0;
    for (const Candidate& candidate : best_candidates(log_p)) {
      const bool among_first = rank++ < options_.beam;
      const auto token = static_cast<std::int32_t>(candidate.flat % vocabulary_);
      if (token == options_.tokens.end) {
        // Ranked behind B they are dropped, not put off.
        if (among_first && std::ssize(final_) < options_.beam) finish(candidate, log_p);
      } else if (std::ssize(next) < options_.beam) {
        next.push_back(extended(candidate, log_p));
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
  void restrict_tokens(std::int64_t s, double* log_p) const {
    for (std::size_t i = 0; i < live_.size(); ++i) {
      double* const row = log_p + static_cast<std::int64_t>(i) * vocabulary_;  // [V]
      row[options_.tokens.pad] = kNever;
      row[options_.tokens.unknown] -= options_.unknown_penalty;
      if (s >= max_len_) {
        keep_only(row, options_.tokens.end);
      } else if (s < std::ssize(prefix_)) {
        keep_only(row, prefix_[static_cast<std::size_t>(s)]);
      } else if (s < options_.min_len) {
        row[options_.tokens.end] = kNever;
      }
    }
  }

  void keep_only(double* row, std::int32_t token) const {
    const double kept = row[token];
    std::fill_n(row, vocabulary_, kNever);
    row[token] = kept;
  }

  // Best first; those that cannot be are left out.
  std::vector<Candidate> best_candidates(const double* log_p) const {
    const std::int64_t size = std::ssize(live_) * vocabulary_;
    const auto most = static_cast<std::size_t>(std::min(2 * options_.beam, size - 1));
    std::vector<Candidate> best;  // a heap whose front is the worst
    for (std::int64_t flat = 0; flat < size; ++flat) {
      if (log_p[flat] == kNever) continue;
      const Candidate candidate{live_[static_cast<std::size_t>(flat / vocabulary_)].sum + log_p[flat], flat};
      if (best.size() < most) {
        best.push_back(candidate);
        std::ranges::push_heap(best, better);
      } else if (most > 0 && better(candidate, best.front())) {
        std::ranges::pop_heap(best, better);
        best.back() = candidate;
        std::ranges::push_heap(best, better);
      }
    }
    std::ranges::sort_heap(best, better);
    return best;
  }

  Beam extended(const Candidate& candidate, const double* log_p) const {
    Beam beam = live_[static_cast<std::size_t>(candidate.flat / vocabulary_)];
    beam.so_far.tokens.push_back(static_cast<std::int32_t>(candidate.flat % vocabulary_));
    beam.so_far.token_scores.push_back(log_p[candidate.flat]);
    beam.sum = candidate.sum;
    return beam;
  }

  void finish(const Candidate& candidate, const double* log_p) {
    Beam beam = extended(candidate, log_p);
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
    fail_usage(kWhere, "special tokens: expected ids below the vocabulary's {}, got {}", vocabulary, token);
  }
  if (options.beam >= vocabulary) {
    log::warn("{}: beam {} is reduced to {}: the vocabulary has {} tokens", kWhere, options.beam, vocabulary - 1,
              vocabulary);
    options.beam = std::max<std::int64_t>(1, vocabulary - 1);
  }
  return options;
}

// Where log p has no nan; else an error naming sentence and step.
void require_numbers(std::span<const LiveHypothesis> hypotheses, const std::vector<double>& log_p, std::int64_t step) {
  const std::size_t vocabulary = log_p.size() / std::max<std::size_t>(1, hypotheses.size());
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    if (!std::isnan(log_p[i])) continue;
    fail(kWhere, "sentence {}, step {}: the model's log-probabilities have nan (token {})",
         hypotheses[i / vocabulary].sentence, step, i % vocabulary);
  }
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(NextTokens& model, std::span<const SearchSentence> sentences,
                                                 const SearchOptions& given) {
  const std::int64_t vocabulary = model.vocabulary();
  const SearchOptions options = checked(given, vocabulary);
  std::vector<Search> searches;
  for (const SearchSentence& sentence : sentences) searches.emplace_back(sentence, options, vocabulary);
  std::vector<double> log_p;
  for (std::int64_t s = 0;; ++s) {
    std::vector<LiveHypothesis> live;
    std::vector<std::pair<std::size_t, std::int64_t>> going;  // a sentence, and where its hypotheses begin
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
    log_p.resize(live.size() * static_cast<std::size_t>(vocabulary));
    model.step(live, log_p.data());
    require_numbers(live, log_p, s);
    parallel_for(std::ssize(going), [&](std::int64_t i) {
      const auto& [sentence, first] = going[static_cast<std::size_t>(i)];
      searches[sentence].advance(s, log_p.data() + first * vocabulary);
    });
  }
  std::vector<std::vector<Hypothesis>> results;
  for (Search& search : searches) results.push_back(std::move(search).results());
  return results;
}

}  // namespace etc::translation
