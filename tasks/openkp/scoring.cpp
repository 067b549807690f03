#include "tasks/openkp/scoring.h"

#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/feed.h"

namespace etc::openkp {

bool labelled(const data::Example& page) {
  return !feed::numbers(page, "label_start_idx").empty();
}

PhraseClasses classes_of(const data::Example& page, std::span<const float> scores, const ScoringOptions& options) {
  const std::int64_t words = num_words(page);
  PhraseClasses classes = counted_classes(scores, words, words);
  if (!options.max_loss) return classes;
  const feed::Numbers& first = feed::numbers(page, "first_occurrence");
  if (std::ssize(first) != std::ssize(scores)) {
    fail("openkp",
         "example {}: first_occurrence: expected K·w={} numbers for max_loss, got {} (run `etc prepare` with "
         "--first-occurrence true and --kp-max-length {})",
         feed::text(page, "id"), scores.size(), first.size(), options.longest_phrase);
  }
  return first_occurrence_classes(classes, first);
}

double loss_of(const data::Example& page, const PhraseClasses& classes, const ScoringOptions& options, double scale,
               std::span<float> dscores) {
  if (options.parity_length > 0 && options.parity_length < num_words(page)) {
    fail("openkp", "example {}: parity_length: expected at least the page's w={} words, got {}", feed::text(page, "id"),
         num_words(page), options.parity_length);
  }
  const PhraseLabels labels{feed::numbers(page, "label_start_idx"), feed::numbers(page, "label_phrase_len")};
  return phrase_loss(classes, labels, {options.smoothing_mass, options.longest_phrase * options.parity_length}, scale,
                     dscores);
}

}  // namespace etc::openkp
