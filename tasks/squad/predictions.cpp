#include "tasks/squad/predictions.h"

#include <limits>

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/span/top_logits.h"
#include "tasks/squad/head.h"
#include "tasks/text/json_field.h"

namespace etc::squad {

namespace {

// The first `count` entries; all of them, whose probabilities add up to 1, if it is 0.
Json json_of(const std::vector<ListedAnswer>& answers, std::int64_t count) {
  Json list = Json::array();
  for (const ListedAnswer& answer : answers) {
    if (count > 0 && std::ssize(list) == count) break;
    list.push_back({{"text", answer.text},
                    {"probability", answer.probability},
                    {"start_logit", answer.start_logit},
                    {"end_logit", answer.end_logit}});
  }
  return list;
}

// In the order of the questions.
template <typename Value>
void write_map(EntryFile& file, const std::vector<GoldQuestion>& questions, const Value& value_of) {
  for (const GoldQuestion& question : questions) file.add(question.id, value_of(question.id));
  file.finish();
}

}  // namespace

void EntryFile::add(const std::string& id, const Json& value) {
  output_.write((empty_ ? "{\n" : ",\n") + text::one_line(id) + ": " + text::one_line(value));
  empty_ = false;
}

void EntryFile::finish() {
  output_.write(empty_ ? "{\n}\n" : "\n}\n");
  output_.finish();
}

QuestionPredictions::QuestionPredictions(const PredictionRequest& request, const DecodeOptions& options,
                                         std::shared_ptr<const data::Tokenizer> tokenizer)
    : options_(options), tokenizer_(std::move(tokenizer)), n_best_(request.n_best) {
  if (!request.n_best_output.empty()) n_best_output_.emplace(request.n_best_output);
  if (!request.output.empty()) output_.emplace(request.output);
  if (!request.null_odds_output.empty()) null_odds_output_.emplace(request.null_odds_output);
}

void QuestionPredictions::add_gold(const data::Example& row) {
  gold_.push_back({feed::text(row, "id"), feed::texts(row, "answers")});
  labelled_ = labelled_ || gold_.back().has_answer() || feed::number(row, "is_impossible") != 0;
}

void QuestionPredictions::add(Examples examples, const EncoderInput& input, const HeadOutput& logits) {
  Var ends = logits.at(0);  // [T, 2]
  const std::vector<std::int64_t> labels = labels_of(examples);
  const bool trained = std::any_of(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; });
  std::vector<double> losses;
  if (trained) {  // the loss needs all logits, decoding only the largest
    ends = Var(ends.value().to(Device::cpu));
    losses = window_losses({input.long_offsets, ends.value().data(), labels});
  }
  const span::TopLogits top(ends, input.long_offsets, options_.n_best_size);
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::string& id = feed::text(example, "id");
    if (order_.begins(id, id)) {
      close();
      id_ = id;
      question_.emplace(options_, tokenizer_);
    }
    question_->add({top.largest(b, 0), top.largest(b, 1), top.first(b, 0), top.first(b, 1)}, example);
    if (labels[2 * b] < 0) continue;
    loss_ += losses[b];
    ++trained_windows_;
  }
}

QuestionPredictions::Result QuestionPredictions::result_of(const DecodedQuestion& decoded) {
  return {decoded.answer, decoded.best_text, decoded.null_odds};
}

void QuestionPredictions::close() {
  if (!question_) return;
  const DecodedQuestion decoded = question_->decode();
  if (n_best_output_) n_best_output_->add(id_, json_of(decoded.n_best, n_best_));
  results_[id_] = result_of(decoded);
  question_.reset();
}

// All results, including the current question and those without a window.
std::map<std::string, QuestionPredictions::Result> QuestionPredictions::complete_results() const {
  std::map<std::string, Result> results = results_;
  if (question_) results[id_] = result_of(question_->decode());
  const Result none = result_of(QuestionDecoder(options_, tokenizer_).decode());
  for (const GoldQuestion& question : gold_) results.try_emplace(question.id, none);
  return results;
}

Metrics QuestionPredictions::metrics() const {
  if (!labelled_) return {};
  PredictionMap answers, texts;
  NullOdds odds;
  for (const auto& [id, result] : complete_results()) {
    answers[id] = result.answer;
    texts[id] = result.best_text;
    odds[id] = result.null_odds.value_or(std::numeric_limits<double>::infinity());
  }
  const Version version = options_.version_2 ? Version::v2_0 : Version::v1_1;
  const Json scores = evaluate(answers, gold_, version).at("metrics");
  Metrics metrics = {{"f1", scores.at("f1").get<double>()}};
  for (const auto& [name, value] : scores.items()) {
    if (name != "f1") metrics.emplace_back(name, value.get<double>());
  }
  if (options_.version_2) {
    const Json best = evaluate_with_odds(texts, gold_, odds, std::numeric_limits<double>::infinity()).at("metrics");
    for (const char* name : {"best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"}) {
      metrics.emplace_back(name, best.at(name).get<double>());
    }
  }
  if (trained_windows_ > 0) metrics.emplace_back("loss", loss_ / static_cast<double>(trained_windows_));
  metrics.emplace_back("questions", static_cast<double>(gold_.size()));
  return metrics;
}

void QuestionPredictions::finish() {
  close();
  if (n_best_output_) {
    const Json none = json_of(QuestionDecoder(options_, tokenizer_).decode().n_best, n_best_);
    for (const GoldQuestion& question : gold_) {
      if (!results_.contains(question.id)) n_best_output_->add(question.id, none);
    }
    n_best_output_->finish();
  }
  const std::map<std::string, Result> results = complete_results();
  if (output_) write_map(*output_, gold_, [&](const std::string& id) { return Json(results.at(id).answer); });
  if (null_odds_output_) {
    write_map(*null_odds_output_, gold_, [&](const std::string& id) {
      const auto& odds = results.at(id).null_odds;
      return odds ? Json(*odds) : Json(nullptr);
    });
  }
}

}  // namespace etc::squad
