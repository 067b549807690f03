// Corpus BLEU as sacreBLEU 2 computes it (translation 10.2).
//
// Counting a segment is separate from scoring the sums, so that a bootstrap can score resampled corpora without counting
// again (bootstrap.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etc::translation {

enum class BleuWords { rules_13a, international, characters, blanks };  // data/text/bleu_words.h
enum class Smoothing { exponential, floor, add_k, none };

struct BleuOptions {
  BleuWords words = BleuWords::rules_13a;
  bool lower_case = false;
  Smoothing smoothing = Smoothing::exponential;
  double smooth_value = 0;  // for floor and add_k; 0: their defaults, 0.1 and 1
  bool effective_order = false;
  std::int64_t max_order = 4;
  // As in the published evaluation of section 10.1: a reference's word <unk> matches nothing.
  bool unknown_never_matches = false;
};

// Counts of a segment, or sums over several segments. One entry per n-gram order.
struct BleuCounts {
  explicit BleuCounts(std::int64_t max_order)
      : matches(static_cast<std::size_t>(max_order)), totals(static_cast<std::size_t>(max_order)) {}
  void add(const BleuCounts& other);

  std::int64_t system_length = 0, reference_length = 0;  // words; with several references, of the closest in length
  std::vector<std::int64_t> matches, totals;             // n-grams; matches are clipped
};

struct Bleu {
  double score = 0;                     // percent
  double brevity_penalty = 0;           // 0 … 1
  std::vector<double> precisions;       // percent, smoothed
  std::vector<double> matches, totals;  // including the additions of add_k
  std::int64_t system_length = 0, reference_length = 0;
};

// A segment's words after BLEU's tokenisation, separated by single blanks.
std::string bleu_words(std::string_view segment, const BleuOptions& options);

// Counts of one segment against its references, all tokenised by bleu_words(). At least one reference. If two references
// are equally close in length, the shorter length counts.
BleuCounts count_segment(std::string_view hypothesis, std::span<const std::string> references,
                         const BleuOptions& options);

// Counts of every segment. references[r][i] belongs to hypothesis i. Throws Error naming both counts if a set of references
// has another length, and if there is no set.
std::vector<BleuCounts> count_segments(std::span<const std::string> hypotheses,
                                       std::span<const std::vector<std::string>> references,
                                       const BleuOptions& options);

// BP · exp(mean over orders of ln p_n) of the sums, with the smoothing of section 10.2.
Bleu bleu_of(const BleuCounts& sums, const BleuOptions& options);

// count_segments, summed and scored.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                 const BleuOptions& options);

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:etc-0.1.0"; version: the text after the last colon.
std::string bleu_signature(const BleuOptions& options, std::size_t references, const std::string& version);

}  // namespace etc::translation
