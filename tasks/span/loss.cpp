#include "tasks/span/loss.h"

#include "etc_core/ops/cross_entropy.h"

namespace etc::span {

std::vector<double> position_losses(const PositionLoss& args) {
  const auto examples = args.offsets.size() - 1;  // B
  const auto choices = static_cast<std::size_t>(args.choices);
  std::vector<double> losses(examples * choices);  // [B, n]
  std::vector<double> column(examples);            // [B] of one choice
  std::vector<std::int32_t> targets(examples);     // [B] of one choice
  for (std::size_t c = 0; c < choices; ++c) {
    for (std::size_t b = 0; b < examples; ++b) {
      const std::int64_t label = args.labels[b * choices + c];
      const bool inside = label >= 0 && label < args.offsets[b + 1] - args.offsets[b];
      targets[b] = static_cast<std::int32_t>(inside ? label : kNoLabel);
    }
    // Column c of the logits [T, n]: one group per example, elements n floats apart.
    ops::CrossEntropy entropy;
    entropy.groups = static_cast<std::int64_t>(examples);
    entropy.offsets = args.offsets.data();
    entropy.logits = args.logits + c;
    entropy.stride = args.choices;
    entropy.target_index = targets.data();
    entropy.scale = args.scale;
    entropy.losses = column.data();
    entropy.dlogits = args.dlogits == nullptr ? nullptr : args.dlogits + c;
    ops::cross_entropy(Device::cpu, entropy);
    for (std::size_t b = 0; b < examples; ++b) losses[b * choices + c] = column[b];
  }
  return losses;
}

std::vector<double> class_losses(const ClassLoss& args) {
  const auto rows = args.labels.size();                                             // M
  const std::vector<std::int32_t> targets(args.labels.begin(), args.labels.end());  // [M]
  std::vector<std::int64_t> offsets(rows + 1);                                      // [M+1]
  for (std::size_t m = 0; m <= rows; ++m) offsets[m] = static_cast<std::int64_t>(m) * args.classes;
  std::vector<double> losses(rows);  // [M]
  // A group per row of the logits [M, n], all n classes counted.
  ops::CrossEntropy entropy;
  entropy.groups = static_cast<std::int64_t>(rows);
  entropy.offsets = offsets.data();
  entropy.logits = args.logits;
  entropy.target_index = targets.data();
  entropy.scale = args.scale;
  entropy.losses = losses.data();
  entropy.dlogits = args.dlogits;
  ops::cross_entropy(Device::cpu, entropy);
  return losses;
}

}  // namespace etc::span
