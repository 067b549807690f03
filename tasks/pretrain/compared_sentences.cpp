#include "tasks/pretrain/compared_sentences.h"

#include "tasks/pretrain/loss.h"

namespace etc::pretrain {

ComparedSentences compared(const BatchRows& rows, const Options& options, std::int64_t width, double scale) {
  const auto size = static_cast<std::size_t>(width);
  const std::size_t sentences = rows.numbers.size() / (2 * size);
  std::vector<float> predicted, target;  // [m, H]
  for (std::size_t i = 0; i < sentences; ++i) {
    const auto row = rows.numbers.begin() + static_cast<std::ptrdiff_t>(2 * size * i);
    predicted.insert(predicted.end(), row, row + width);
    target.insert(target.end(), row + width, row + 2 * width);
  }
  ComparedSentences made;
  made.first_row = rows.first_row;
  made.dpredicted.resize(predicted.size());
  if (!options.cpc_stop_target_gradient) made.dtarget.resize(target.size());
  CpcLoss args{.sentences = static_cast<std::int64_t>(sentences), .width = width};
  args.predicted = predicted.data();
  args.target = target.data();
  args.similarity = options.cpc_similarity;
  args.temperature = options.temperature();
  args.scale = scale;
  args.dpredicted = made.dpredicted.data();
  if (!made.dtarget.empty()) args.dtarget = made.dtarget.data();
  made.losses = cpc_loss(args).losses;
  for (double& loss : made.losses) loss *= scale;
  return made;
}

std::int64_t hidden_bytes(std::int64_t sentences, std::int64_t width) {
  constexpr std::int64_t kRowCopies = 8;     // collected, own, separated, normalised and gradients: of c and t each
  constexpr std::int64_t kSquareCopies = 3;  // logits, their gradient, and a copy while it is multiplied
  return (kRowCopies * width + kSquareCopies * sentences) * sentences * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace etc::pretrain
