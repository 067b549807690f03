// The phrases of a page that are scored against each other, and their loss (task-openkp 4.3, 4.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc::openkp {

// Entry (k−1)·P + j is the phrase of k words from word j; entries are in increasing order.
struct PhraseClasses {
  std::int64_t positions = 0;           // P
  std::vector<std::int64_t> entries;    // [C]
  std::vector<float> scores;            // [C]
  std::vector<std::int64_t> scored_by;  // [C] the entry whose score it is: the class's own, or a later occurrence's
};

// Of scores [K, P] by rows those of phrases within the first `counted_words` words; P + K: all, as in the reference,
// whose masked entries have −10000.
PhraseClasses counted_classes(std::span<const float> scores, std::int64_t positions, std::int64_t counted_words);

// "Max loss": of all occurrences of a phrase only the first is a class, and its score is the best one (of equals the
// first's).
//   first [K, P] by rows: entry's first occurrence as a word, in the page's features
PhraseClasses first_occurrence_classes(const PhraseClasses& all, std::span<const std::int64_t> first);

struct PhraseLabels {
  std::span<const std::int64_t> starts, lengths;  // [n] words
};

struct LossOptions {
  double smoothing_mass = 1e-4;     // spread over all classes; at least kLeastSmoothing
  std::int64_t padded_classes = 0;  // K·L of a padded reference: its masked classes count, too; 0: real ones only
};
inline constexpr double kLeastSmoothing = 1e-6;

// Cross-entropy of one page.
//   y = number of labels at each class,  y' = y / (Σy + 1e-6),  t = (y' + s/C) / Σ(y' + s/C)
//   loss = −Σ t·log softmax(z)
// C is the number of classes, or padded_classes: then the others, which have −10000, count as one class with their
// share of the smoothing. Labels that are no class (longer than K words) add nothing.
//   dscores [C]: gradient of scale·loss, written; empty: not computed
double phrase_loss(const PhraseClasses& classes, const PhraseLabels& labels, const LossOptions& options, double scale,
                   std::span<float> dscores);

}  // namespace etc::openkp
