#include "tasks/nq/head.h"

#include "tasks/feed/features.h"
#include "tasks/span/loss.h"

namespace etc::nq {

namespace {
constexpr double kTerms = kPositionColumns + 1;  // loss terms: four positions and the answer type
}

std::vector<std::uint8_t> allowed_positions(std::span<const std::int32_t> token_ids, const PositionMask& mask) {
  std::vector<std::uint8_t> allowed;  // [L]
  allowed.reserve(token_ids.size());
  std::int64_t separators = 0;
  for (const std::int32_t id : token_ids) {
    if (id == mask.sep_id) ++separators;
    allowed.push_back(id == mask.cls_id || (separators == 1 && id != mask.sep_id));
  }
  return allowed;
}

Head::Head(const EncoderConfig& model, const std::optional<PositionMask>& mask, ParameterSet& parameters)
    : mask_(mask),
      positions_(parameters, "cls/nq/long_", kPositionColumns, model.hidden_size),
      types_(parameters, "answer_type_", kAnswerTypes, model.hidden_size) {}

HeadOutput Head::logits(Tape& tape, const Var& long_states, const std::vector<std::int64_t>& offsets,
                        std::span<const std::int32_t> token_ids) const {
  HeadOutput logits = {positions_.logits(tape, long_states),                                // [T, 4]
                       types_.logits(tape, span::first_rows(tape, long_states, offsets))};  // [B, 5]
  if (!mask_) return logits;
  logits[kPositionLogits] = on_device(tape, logits[kPositionLogits], Device::cpu);  // where the mask is made
  float* z = logits[kPositionLogits].value().data();                                // [T, 4]
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const auto begin = static_cast<std::size_t>(offsets[b]), end = static_cast<std::size_t>(offsets[b + 1]);
    const auto allowed = allowed_positions(token_ids.subspan(begin, end - begin), *mask_);  // [L]
    // A constant is added, so the gradient is unchanged.
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      for (std::size_t c = 0; c < kPositionColumns && allowed[i] == 0; ++c) {
        z[(begin + i) * kPositionColumns + c] += kMaskedLogit;
      }
    }
  }
  return logits;
}

Labels labels_of(Examples examples) {
  Labels labels;
  for (const data::LoadedExample& example : examples) {
    for (const char* name : {"sa_start", "sa_end", "la_start", "la_end"}) {
      labels.positions.push_back(feed::number(example.features, name));
    }
    labels.types.push_back(feed::number(example.features, "answer_type"));
  }
  return labels;
}

std::vector<double> window_losses(const WindowLoss& args) {
  const double scale = 1 / (kTerms * args.denominator);
  // positions [B, 4]. losses [B] holds the answer type's loss first, then the mean of all five.
  const auto positions = span::position_losses(
      {args.offsets, args.positions, kPositionColumns, args.position_labels, scale, args.dpositions});
  std::vector<double> losses = span::class_losses({args.types, kAnswerTypes, args.type_labels, scale, args.dtypes});
  for (std::size_t b = 0; b < losses.size(); ++b) {
    for (std::size_t c = 0; c < kPositionColumns; ++c) losses[b] += positions[b * kPositionColumns + c];
    losses[b] /= kTerms;
  }
  return losses;
}

}  // namespace etc::nq
