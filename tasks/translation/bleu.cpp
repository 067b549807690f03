#include "tasks/translation/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "data/text/bleu_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::translation {

namespace {

// N-grams of one order. Words are separated by single blanks, so an n-gram is a substring of the text.
using Ngrams = std::unordered_map<std::string_view, std::int64_t>;

struct Segment {
  explicit Segment(std::string_view words) : text(words) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      begins.push_back(at);
      ends.push_back(end);
      at = end + 1;
    }
  }

  std::int64_t length() const { return std::ssize(begins); }

  Ngrams ngrams(std::size_t n) const {
    Ngrams counts;
    for (std::size_t i = 0; i + n <= begins.size(); ++i) {
      ++counts[text.substr(begins[i], ends[i + n - 1] - begins[i])];
    }
    return counts;
  }

  std::string_view text;
  std::vector<std::size_t> begins, ends;
};

bool has_unknown(std::string_view ngram) {
  const Segment words(ngram);
  for (std::size_t i = 0; i < words.begins.size(); ++i) {
    if (ngram.substr(words.begins[i], words.ends[i] - words.begins[i]) == "<unk>") return true;
  }
  return false;
}

// The references' largest count of each n-gram.
Ngrams largest_counts(const std::vector<Segment>& references, std::size_t n, bool without_unknown) {
  Ngrams largest;
  for (const Segment& reference : references) {
    for (const auto& [ngram, count] : reference.ngrams(n)) {
      if (without_unknown && has_unknown(ngram)) continue;
      auto& most = largest[ngram];
      most = std::max(most, count);
    }
  }
  return largest;
}

double smooth_value(const BleuOptions& options) {
  if (options.smooth_value > 0) return options.smooth_value;
  return options.smoothing == Smoothing::floor ? 0.1 : 1.0;
}

}  // namespace

void BleuCounts::add(const BleuCounts& other) {
  system_length += other.system_length;
  reference_length += other.reference_length;
  for (std::size_t n = 0; n < matches.size(); ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
}

std::string bleu_words(std::string_view segment, const BleuOptions& options) {
  std::string lower;
  if (options.lower_case) segment = lower = data::lower_case(segment);
  segment = data::without_end_blanks(segment);
  switch (options.words) {
    case BleuWords::rules_13a:
      return data::split_13a(segment);
    case BleuWords::international:
      return data::split_international(segment);
    case BleuWords::characters:
      return data::split_characters(segment);
    case BleuWords::blanks:
      break;
  }
  return data::split_at_blanks(segment);
}

BleuCounts count_segment(std::string_view hypothesis, std::span<const std::string> references,
                         const BleuOptions& options) {
  BleuCounts counts(options.max_order);
  const Segment system(hypothesis);
  const std::vector<Segment> all(references.begin(), references.end());
  counts.system_length = system.length();
  const auto distance = [&](const Segment& reference) {
    return std::pair(std::abs(reference.length() - system.length()), reference.length());
  };
  counts.reference_length = std::min_element(all.begin(), all.end(), [&](const Segment& a, const Segment& b) {
                              return distance(a) < distance(b);
                            })->length();
  for (std::size_t n = 1; n <= counts.matches.size(); ++n) {
    const Ngrams largest = largest_counts(all, n, options.unknown_never_matches);
    for (const auto& [ngram, count] : system.ngrams(n)) {
      counts.totals[n - 1] += count;
      if (const auto found = largest.find(ngram); found != largest.end()) {
        counts.matches[n - 1] += std::min(count, found->second);
      }
    }
  }
  return counts;
}

std::vector<BleuCounts> count_segments(std::span<const std::string> hypotheses,
                                       std::span<const std::vector<std::string>> references,
                                       const BleuOptions& options) {
  if (references.empty()) fail("bleu", "expected at least one set of references, got none");
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() == hypotheses.size()) continue;
    fail("bleu", "expected as many references as hypotheses: {} hypotheses, {} references in set {}", hypotheses.size(),
         references[r].size(), r + 1);
  }
  std::vector<BleuCounts> counts;
  counts.reserve(hypotheses.size());
  std::vector<std::string> cut(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) cut[r] = bleu_words(references[r][i], options);
    counts.push_back(count_segment(bleu_words(hypotheses[i], options), cut, options));
  }
  return counts;
}

Bleu bleu_of(const BleuCounts& sums, const BleuOptions& options) {
  Bleu bleu;
  bleu.system_length = sums.system_length;
  bleu.reference_length = sums.reference_length;
  bleu.matches.assign(sums.matches.begin(), sums.matches.end());
  bleu.totals.assign(sums.totals.begin(), sums.totals.end());
  bleu.precisions.resize(sums.matches.size());
  bleu.brevity_penalty = 1;
  if (sums.system_length < sums.reference_length) {
    const double ratio = static_cast<double>(sums.reference_length) / static_cast<double>(sums.system_length);
    bleu.brevity_penalty = sums.system_length > 0 ? std::exp(1 - ratio) : 0;
  }
  if (std::all_of(sums.matches.begin(), sums.matches.end(), [](std::int64_t count) { return count == 0; })) return bleu;
  const double value = smooth_value(options);
  std::size_t orders = bleu.precisions.size();
  double halvings = 1;  // for exponential smoothing
  for (std::size_t n = 0; n < bleu.precisions.size(); ++n) {
    if (options.smoothing == Smoothing::add_k && n > 0) {
      bleu.matches[n] += value;
      bleu.totals[n] += value;
    }
    if (bleu.totals[n] == 0) break;  // precision stays 0, and so does the score without effective order
    if (options.effective_order) orders = n + 1;
    if (bleu.matches[n] > 0) {
      bleu.precisions[n] = 100 * bleu.matches[n] / bleu.totals[n];
    } else if (options.smoothing == Smoothing::exponential) {
      halvings *= 2;
      bleu.precisions[n] = 100 / (halvings * bleu.totals[n]);
    } else if (options.smoothing == Smoothing::floor) {
      bleu.precisions[n] = 100 * value / bleu.totals[n];
    }
  }
  double logs = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    if (bleu.precisions[n] == 0) return bleu;
    logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return bleu;
}

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                 const BleuOptions& options) {
  BleuCounts sums(options.max_order);
  for (const BleuCounts& counts : count_segments(hypotheses, references, options)) sums.add(counts);
  return bleu_of(sums, options);
}

std::string bleu_signature(const BleuOptions& options, std::size_t references, const std::string& version) {
  static constexpr const char* kWords[] = {"13a", "intl", "char", "none"};
  static constexpr const char* kSmoothings[] = {"exp", "floor", "add-k", "none"};
  std::string smoothing = kSmoothings[static_cast<int>(options.smoothing)];
  if (options.smoothing == Smoothing::floor || options.smoothing == Smoothing::add_k) {
    smoothing += fmt::format("[{:.2f}]", smooth_value(options));
  }
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:{}", references,
                     options.lower_case ? "lc" : "mixed", options.effective_order ? "yes" : "no",
                     kWords[static_cast<int>(options.words)], smoothing, version);
}

}  // namespace etc::translation
