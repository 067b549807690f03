// The classes of a page's softmax, which are phrases, and their loss (task-openkp 4.3, 4.4).
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
  std::vector<std::int64_t> scored_by;  // [C] the entry that gave the score: the class's own or a later occurrence
};

// Selects from scores [K, P], row-major, the phrases within the first `counted_words` words. P + K selects all, as in the
// reference, whose masked entries have −10000.
PhraseClasses counted_classes(std::span<const float> scores, std::int64_t positions, std::int64_t counted_words);

// "Max loss": only the first occurrence of a phrase is a class; its score is the best one of all occurrences (among equals
// the first's).
//   first [K, P], row-major, from the page's features: the first word of each entry's first occurrence
PhraseClasses first_occurrence_classes(const PhraseClasses& all, std::span<const std::int64_t> first);

struct PhraseLabels {
  std::span<const std::int64_t> starts, lengths;  // [n] words
};

struct LossOptions {
  double smoothing_mass = 1e-4;     // spread over all classes; at least kLeastSmoothing
  std::int64_t padded_classes = 0;  // K·L to count a padded reference's masked classes as well; 0: real ones only
};
inline constexpr double kLeastSmoothing = 1e-6;

// Cross-entropy of one page.
//   y = number of labels at each class,  y' = y / (Σy + 1e-6),  t = (y' + s/C) / Σ(y' + s/C)
//   loss = −Σ t·log softmax(z)
// C is the number of classes, or padded_classes if set; the masked classes, which have −10000, then count as one class with
// their share of the smoothing. Labels without a class (longer than K words) are ignored.
//   dscores [C]: receives the gradient of scale·loss; empty: not computed
double phrase_loss(const PhraseClasses& classes, const PhraseLabels& labels, const LossOptions& options, double scale,
                   std::span<float> dscores);

}  // namespace etc::openkp
