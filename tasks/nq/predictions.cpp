#include "tasks/nq/predictions.h"

#include <algorithm>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/feed/features.h"
#include "tasks/nq/head.h"
#include "tasks/nq/top_logits.h"

namespace etc::nq {

using feed::numbers;

GoldDocument gold_of(const data::Example& row) {
  GoldDocument gold;
  gold.example_id = feed::number(row, "example_id");
  const auto& long_starts = numbers(row, "long_start_token");
  const auto& counts = numbers(row, "short_count");
  const auto& short_starts = numbers(row, "short_start_token");
  std::size_t next = 0;
  for (std::size_t a = 0; a < long_starts.size(); ++a) {
    Annotation annotation;
    annotation.long_answer = {long_starts[a], numbers(row, "long_end_token")[a], numbers(row, "long_start_byte")[a],
                              numbers(row, "long_end_byte")[a]};
    const std::int64_t yes_no = numbers(row, "yes_no")[a],
                       left = std::ssize(short_starts) - static_cast<std::int64_t>(next);
    if (yes_no < 0 || yes_no > 2 || counts[a] < 0 || counts[a] > left) {
      fail("gold",
           "document {}, annotation {}: expected yes_no 0 … 2 and up to {} short answers, got {} and {} (the file "
           "is damaged; run `etc prepare` again)",
           gold.example_id, a, left, yes_no, counts[a]);
    }
    annotation.yes_no = static_cast<YesNo>(yes_no);
    for (std::int64_t s = 0; s < counts[a]; ++s, ++next) {
      annotation.short_answers.push_back({short_starts[next], numbers(row, "short_end_token")[next],
                                          numbers(row, "short_start_byte")[next],
                                          numbers(row, "short_end_byte")[next]});
    }
    gold.annotations.push_back(std::move(annotation));
  }
  return gold;
}

DocumentPredictions::DocumentPredictions(const PredictionRequest& request, const DecodeOptions& options)
    : options_(options), n_best_(request) {
  options_.n_best = n_best_.count();
  if (!request.output.empty()) output_.emplace(request.output);
  write("{\"predictions\": [");
}

void DocumentPredictions::write(std::string_view text) {
  if (output_) output_->write(text);
}

void DocumentPredictions::add_gold(const data::Example& row) {
  GoldDocument gold = gold_of(row);
  if (gold.annotations.empty()) return;
  const std::int64_t id = gold.example_id;
  if (!gold_.emplace(id, std::move(gold)).second) {
    fail("gold", "document {} occurs twice (are two files shards of one data set?)", id);
  }
}

void DocumentPredictions::add(Examples examples, const EncoderInput& input, const HeadOutput& logits) {
  const Tensor types = logits.at(kTypeLogits).value().to(Device::cpu);  // [B, 5]
  const Labels labels = labels_of(examples);
  const bool labelled = std::any_of(labels.types.begin(), labels.types.end(), [](auto type) { return type >= 0; });
  Var positions = logits.at(kPositionLogits);  // [T, 4]
  std::vector<double> losses;
  if (labelled) {  // the loss needs all logits, decoding only the largest
    positions = Var(positions.value().to(Device::cpu));
    losses = window_losses({input.long_offsets, positions.value().data(), types.data(), labels.positions, labels.types,
                            1, nullptr, nullptr});
  }
  const TopLogits top(positions, input.long_offsets);
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::int64_t id = feed::number(example, "unique_ids");
    if (order_.begins(id, feed::text(example, "id"))) {
      close();
      document_.emplace(id, options_);
    }
    WindowLogits window = top.window(b);
    window.token_pos = numbers(example, "token_pos");
    window.type_logits = types.data() + b * kAnswerTypes;
    document_->add(window);
    if (labels.types[b] < 0) continue;
    loss_ += losses[b];
    ++labelled_windows_;
  }
}

void DocumentPredictions::close() {
  if (!document_) return;
  const DecodedDocument decoded = document_->decode();
  if (!decoded.fault.empty()) log::warn("predict: {}; it has no answer", decoded.fault);
  write((written_ ? ",\n" : "\n") + prediction_line(decoded));
  written_ = true;
  if (options_.n_best > 0) n_best_.add(std::to_string(decoded.prediction.example_id), n_best_of(decoded));
  if (const auto outcomes = outcomes_of(decoded)) outcomes_.push_back(*outcomes);
  document_.reset();
}

std::optional<DocumentPredictions::Outcomes> DocumentPredictions::outcomes_of(const DecodedDocument& document) const {
  const auto gold = gold_.find(document.prediction.example_id);
  if (gold == gold_.end()) return std::nullopt;
  return Outcomes{long_outcome(gold->second, document.prediction), short_outcome(gold->second, document.prediction)};
}

Metrics DocumentPredictions::metrics() const {
  if (gold_.empty()) return {};
  std::vector<Outcome> longs, shorts;
  const auto take = [&](const Outcomes& outcomes) {
    longs.push_back(outcomes.long_answer);
    shorts.push_back(outcomes.short_answer);
  };
  for (const Outcomes& outcomes : outcomes_) take(outcomes);
  if (document_) {
    if (const auto outcomes = outcomes_of(document_->decode())) take(*outcomes);
  }
  for (const auto& [id, gold] : gold_) {
    if (order_.contains(id)) continue;
    Prediction none;
    none.long_score = none.short_score = std::numeric_limits<double>::lowest();
    take({long_outcome(gold, none), short_outcome(gold, none)});
  }
  const auto documents = static_cast<double>(longs.size());
  const ThresholdPoint best_long = threshold_table(std::move(longs)).best;
  const ThresholdPoint best_short = threshold_table(std::move(shorts)).best;
  Metrics metrics = {{"f1", (best_long.f1 + best_short.f1) / 2},
                     {"long_f1", best_long.f1},
                     {"short_f1", best_short.f1},
                     {"long_threshold", best_long.threshold},
                     {"short_threshold", best_short.threshold}};
  if (labelled_windows_ > 0) metrics.emplace_back("loss", loss_ / static_cast<double>(labelled_windows_));
  metrics.emplace_back("documents", documents);
  return metrics;
}

void DocumentPredictions::finish() {
  close();
  n_best_.finish();
  if (!output_) return;
  write("\n]}\n");
  output_->finish();
}

}  // namespace etc::nq
