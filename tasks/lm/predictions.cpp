#include "tasks/lm/predictions.h"

#include <numbers>

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/text/shown_piece.h"

namespace etc::lm {

std::vector<std::int32_t> labels_of(Examples examples) {
  std::vector<std::int32_t> labels;
  for (const data::LoadedExample& loaded : examples) {
    const feed::Numbers& reads = feed::numbers(loaded.features, "token_ids");
    for (std::size_t i = 1; i < reads.size(); ++i) labels.push_back(static_cast<std::int32_t>(reads[i]));
    labels.push_back(static_cast<std::int32_t>(feed::number(loaded.features, "next_id")));
  }
  return labels;
}

LmPredictions::LmPredictions(const PredictionRequest& request, const VocabularyLayer& output,
                             std::shared_ptr<const data::Tokenizer> vocabulary)
    : output_(output), vocabulary_(std::move(vocabulary)) {
  if (!request.output.empty()) file_.emplace(request.output);
}

void count_piece_result(const HeadOutput& states, const VocabularyLayer& output, Examples examples) {
  span::piece_result(states.at(0), output, labels_of(examples));
}

void LmPredictions::add(Examples examples, const EncoderInput&, const HeadOutput& states) {
  const std::vector<std::int32_t> labels = labels_of(examples);
  for (const data::LoadedExample& loaded : examples) characters_ += feed::number(loaded.features, "characters");
  const VocabularyResult result = span::piece_result(states.at(0), output_, labels);
  perplexity_.add(result, labels);
  if (file_) write(examples, labels, result);
}

void LmPredictions::write(Examples examples, const std::vector<std::int32_t>& labels, const VocabularyResult& result) {
  const auto piece = [&](std::int32_t id) {
    return vocabulary_ ? Json(text::shown_piece(*vocabulary_, id)) : Json(id);
  };
  std::size_t row = 0;
  for (const data::LoadedExample& loaded : examples) {
    Json pieces = Json::array(), log2_p = Json::array(), best = Json::array();
    const std::size_t end = row + feed::numbers(loaded.features, "token_ids").size();
    for (; row < end; ++row) {
      pieces.push_back(piece(labels[row]));
      log2_p.push_back(-result.losses[row] / std::numbers::ln2);
      best.push_back(piece(result.best[row]));
    }
    file_->write(json_line(Json{{"id", feed::text(loaded.features, "id")},
                                {"pieces", std::move(pieces)},
                                {"log2_p", std::move(log2_p)},
                                {"best", std::move(best)}}) +
                 "\n");
  }
}

Metrics LmPredictions::metrics() const {
  Metrics metrics = perplexity_.metrics();
  if (!metrics.empty() && characters_ > 0) {
    metrics.emplace_back("bits_per_character", perplexity_.bits() / static_cast<double>(characters_));
  }
  return metrics;
}

}  // namespace etc::lm
