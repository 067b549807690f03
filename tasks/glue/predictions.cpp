#include "tasks/glue/predictions.h"

#include <fmt/format.h>

#include <algorithm>

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/glue/head.h"
#include "tasks/host_logits.h"
#include "tasks/span/loss.h"
#include "tasks/text/top_scores.h"

namespace etc::glue {

Json ranked_classes(const DataSetInfo& info, std::span<const float> logits, std::int64_t most) {
  const std::vector<float> probabilities = text::softmax(logits);
  Json answers = Json::array();
  for (const std::int64_t k : text::largest(logits, most)) {
    const auto at = static_cast<std::size_t>(k);
    answers.push_back({{"label", info.labels[at]}, {"probability", probabilities[at]}});
  }
  return answers;
}

bool Labels::any() const {
  return std::any_of(classes.begin(), classes.end(), [](std::int64_t k) { return k >= 0; }) ||
         std::any_of(scored.begin(), scored.end(), [](std::uint8_t is) { return is != 0; });
}

Labels labels_of(Examples examples) {
  Labels labels;
  for (const data::LoadedExample& example : examples) {
    labels.classes.push_back(feed::number(example.features, "label"));
    labels.scored.push_back(feed::number(example.features, "scored") != 0 ? 1 : 0);
    labels.scores.push_back(std::get<float>(example.features.at("score")));
  }
  return labels;
}

std::vector<double> row_losses(const DataSetInfo& info, const Labels& labels, const float* logits, double scale,
                               float* dlogits) {
  if (info.regression()) return score_losses({logits, labels.scores, labels.scored, scale, dlogits});
  return span::class_losses({logits, info.outputs(), labels.classes, scale, dlogits});
}

RowPredictions::RowPredictions(const PredictionRequest& request, const DataSetInfo& info)
    : info_(info), n_best_(request) {
  if (request.output.empty()) return;
  output_.emplace(request.output);
  output_->write("index\tprediction\n");
}

void RowPredictions::add(Examples examples, const EncoderInput&, const HeadOutput& computed) {
  const HeadOutput logits = on_host(computed);
  const float* z = logits.at(0).value().data();  // [B, n]
  const Labels labels = labels_of(examples);
  const std::vector<double> losses = row_losses(info_, labels, z, 1, nullptr);
  const auto n = static_cast<std::size_t>(info_.outputs());
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::string& id = feed::text(example, "id");
    const std::span<const float> own(z + b * n, n);
    text::require_finite(own, id);
    const std::int64_t chosen = text::first_largest(own);
    const std::int64_t index = numbers_.next(feed::number(example, "record_index"));
    const std::string answer =
        info_.regression() ? fmt::format("{}", own[0]) : info_.labels[static_cast<std::size_t>(chosen)];
    if (output_) output_->write(fmt::format("{}\t{}\n", index, answer));
    if (n_best_.count() > 0) {
      n_best_.add(std::to_string(index), info_.regression() ? Json::array({{{"score", own[0]}}})
                                                            : ranked_classes(info_, own, n_best_.count()));
    }
    if (info_.regression() ? labels.scored[b] == 0 : labels.classes[b] < 0) continue;
    loss_ += losses[b];
    outcomes_.labels.push_back(labels.classes[b]);
    outcomes_.predictions.push_back(chosen);
    outcomes_.gold_scores.push_back(labels.scores[b]);
    outcomes_.scores.push_back(own[0]);
  }
}

Metrics RowPredictions::metrics() const {
  if (outcomes_.labels.empty()) return {};
  const auto rows = static_cast<double>(outcomes_.labels.size());
  Metrics metrics = measured(outcomes_, info_);
  metrics.emplace_back("loss", loss_ / rows);
  metrics.emplace_back("examples", rows);
  return metrics;
}

void RowPredictions::finish() {
  if (output_) output_->finish();
  n_best_.finish();
}

}  // namespace etc::glue
