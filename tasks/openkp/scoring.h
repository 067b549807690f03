// The classes and the loss of one page under the task's settings (task-openkp 4.3, 4.4).
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"
#include "tasks/openkp/classes.h"

namespace etc::openkp {

struct ScoringOptions {
  std::int64_t longest_phrase = 5;  // K
  bool max_loss = false;            // a phrase's score is the best one of its occurrences
  double smoothing_mass = 1e-4;
  std::int64_t parity_length = 0;  // count phrases as if the page were padded to this many words; 0: real ones only
};

// Whether the page has a phrase to learn.
bool labelled(const data::Example& page);

// The phrases inside the page, from its scores [K, w], row-major. Throws Error when max_loss is set and the data do not
// hold the table of first occurrences.
PhraseClasses classes_of(const data::Example& page, std::span<const float> scores, const ScoringOptions& options);

// Loss of one page; dscores as in phrase_loss(). Throws Error when parity_length is below the page's words.
double loss_of(const data::Example& page, const PhraseClasses& classes, const ScoringOptions& options, double scale,
               std::span<float> dscores);

}  // namespace etc::openkp
