#include "tasks/openkp/classes.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/ops/cross_entropy.h"

namespace etc::openkp {

namespace {

constexpr float kMaskedScore = -10000;  // of the reference's masked classes

// Index of an entry among the classes; −1: it is not a class.
std::int64_t class_of(const PhraseClasses& classes, std::int64_t entry) {
  const auto found = std::lower_bound(classes.entries.begin(), classes.entries.end(), entry);
  return found != classes.entries.end() && *found == entry ? found - classes.entries.begin() : -1;
}

}  // namespace

PhraseClasses counted_classes(std::span<const float> scores, std::int64_t positions, std::int64_t counted_words) {
  PhraseClasses classes;
  classes.positions = positions;
  for (std::int64_t entry = 0; entry < std::ssize(scores); ++entry) {
    if (entry % positions + entry / positions + 1 > counted_words) continue;
    classes.entries.push_back(entry);
    classes.scores.push_back(scores[static_cast<std::size_t>(entry)]);
  }
  classes.scored_by = classes.entries;
  return classes;
}

PhraseClasses first_occurrence_classes(const PhraseClasses& all, std::span<const std::int64_t> first) {
  PhraseClasses classes;
  classes.positions = all.positions;
  for (std::size_t i = 0; i < all.entries.size(); ++i) {
    const std::int64_t entry = all.entries[i];
    const std::int64_t first_entry =
        entry - entry % all.positions + first[static_cast<std::size_t>(entry)];  // of the same length
    if (first_entry == entry) {
      classes.entries.push_back(entry);
      classes.scores.push_back(all.scores[i]);
      classes.scored_by.push_back(entry);
      continue;
    }
    const std::int64_t known = class_of(classes, first_entry);
    if (known < 0) fail("openkp", "first_occurrence: entry {} refers to {}, which is none", entry, first_entry);
    if (all.scores[i] > classes.scores[static_cast<std::size_t>(known)]) {
      classes.scores[static_cast<std::size_t>(known)] = all.scores[i];
      classes.scored_by[static_cast<std::size_t>(known)] = entry;
    }
  }
  return classes;
}

double phrase_loss(const PhraseClasses& classes, const PhraseLabels& labels, const LossOptions& options, double scale,
                   std::span<float> dscores) {
  const auto real = std::ssize(classes.entries);
  const auto all = static_cast<double>(options.padded_classes > 0 ? options.padded_classes : real);  // C
  std::vector<double> counts(classes.entries.size());                                                // y
  double label_count = 0;
  for (std::size_t i = 0; i < labels.starts.size(); ++i) {
    const std::int64_t length = labels.lengths[i], start = labels.starts[i];
    if (length < 1 || start < 0 || start >= classes.positions) continue;
    const std::int64_t known = class_of(classes, (length - 1) * classes.positions + start);
    if (known < 0) continue;
    counts[static_cast<std::size_t>(known)] += 1;
    label_count += 1;
  }
  const double share = std::max(options.smoothing_mass, kLeastSmoothing) / all;  // s/C
  const double labelled = label_count / (label_count + 1e-6);
  const double sum = labelled + share * all;  // Σ y''
  // The masked classes of a padded reference have the same score, so they are handled as one class with all their mass:
  // the probability, exp(−10000 − …), is 0 in both cases.
  std::vector<float> target, scores = classes.scores;
  for (const double y : counts) target.push_back(static_cast<float>((y / (label_count + 1e-6) + share) / sum));
  if (options.padded_classes > 0) {
    target.push_back(static_cast<float>((all - static_cast<double>(real)) * share / sum));
    scores.push_back(kMaskedScore);
  }
  const std::int64_t offsets[] = {0, std::ssize(scores)};
  double loss = 0;
  std::vector<float> gradient(scores.size());
  ops::CrossEntropy entropy;
  entropy.groups = 1;
  entropy.offsets = offsets;
  entropy.logits = scores.data();
  entropy.target = target.data();
  entropy.scale = scale;
  entropy.losses = &loss;
  entropy.dlogits = dscores.empty() ? nullptr : gradient.data();
  ops::cross_entropy(Device::cpu, entropy);
  if (!dscores.empty()) std::copy_n(gradient.begin(), real, dscores.begin());
  return loss;
}

}  // namespace etc::openkp
