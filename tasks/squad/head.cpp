#include "tasks/squad/head.h"

#include "tasks/feed/features.h"
#include "tasks/span/loss.h"

namespace etc::squad {

std::vector<std::int64_t> labels_of(Examples examples) {
  std::vector<std::int64_t> labels;
  for (const data::LoadedExample& example : examples) {
    labels.push_back(feed::number(example.features, "start_position"));
    labels.push_back(feed::number(example.features, "end_position"));
  }
  return labels;
}

std::vector<double> window_losses(const WindowLoss& args) {
  const auto ends = span::position_losses(  // [B, 2]
      {args.offsets, args.logits, kEnds, args.labels, 1 / (kEnds * args.denominator), args.dlogits});
  std::vector<double> losses;
  for (std::size_t b = 0; b + 1 < args.offsets.size(); ++b) losses.push_back((ends[2 * b] + ends[2 * b + 1]) / kEnds);
  return losses;
}

}  // namespace etc::squad
