#include "tasks/openkp/predictions.h"

#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/feed/features.h"
#include "tasks/host_logits.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/head.h"
#include "tasks/text/top_scores.h"

namespace etc::openkp {

namespace {

Json json_of(const std::vector<ScoredPhrase>& phrases) {
  Json answers = Json::array();
  for (const ScoredPhrase& phrase : phrases) {
    answers.push_back(
        {{"text", phrase.text}, {"score", phrase.score}, {"first_word", phrase.first_word}, {"words", phrase.words}});
  }
  return answers;
}

}  // namespace

OpenkpPredictions::OpenkpPredictions(const PredictionRequest& request, const ScoringOptions& scoring,
                                     const DecodeOptions& options)
    : scoring_(scoring), options_(options), n_best_(request) {
  if (!request.output.empty()) file_.emplace(request.output);
}

void OpenkpPredictions::add(Examples examples, const EncoderInput&, const HeadOutput& computed) {
  const HeadOutput logits = on_host(computed);
  std::int64_t first = 0;  // the page's first word in the batch
  for (const data::LoadedExample& loaded : examples) {
    const data::Example& page = loaded.features;
    add_page(page, scores_of_page(logits, first, num_words(page)));
    first += num_words(page);
  }
}

void OpenkpPredictions::add_page(const data::Example& page, std::span<const float> scores) {
  const std::string& url = feed::text(page, "id");
  text::require_finite(scores, url);
  const PhraseClasses classes = classes_of(page, scores, scoring_);
  const std::string& text = feed::text(page, "text");
  const auto phrases = decode(classes, text, options_);
  if (std::ssize(phrases) < options_.max_phrases) ++few_;
  write(url, phrases);
  if (n_best_.count() > 0) {
    DecodeOptions more = options_;
    more.max_phrases = n_best_.count();
    n_best_.add(url, json_of(decode(classes, text, more)));
  }
  const feed::Texts& references = feed::texts(page, "key_phrases");
  if (references.empty()) return;
  std::vector<std::string> candidates;
  for (const ScoredPhrase& phrase : phrases) candidates.push_back(phrase.text);
  sum_.add(candidates, references);
  scored_.insert(url);
  if (!labelled(page)) return;
  loss_ += loss_of(page, classes, scoring_, 1, {});
  ++losses_;
}

void OpenkpPredictions::write(const std::string& url, const std::vector<ScoredPhrase>& phrases) {
  if (!file_) return;
  if (file_->has(url)) {
    log::warn("predict: url {} occurs again; the prediction for its first page stays", url);
  } else {
    file_->add(url, phrases);
  }
}

void OpenkpPredictions::add_rejected(const data::Fault& fault) {
  if (scored_.contains(fault.id)) return;
  if (!fault.id.empty()) write(fault.id, {});
  const auto phrases = fault.details.find("key_phrases");
  if (phrases == fault.details.end()) return;
  const auto& references = std::get<feed::Texts>(phrases->second);
  if (references.empty()) return;
  sum_.add({}, references);
  if (!fault.id.empty()) scored_.insert(fault.id);
}

Metrics OpenkpPredictions::metrics() const {
  if (sum_.pages() == 0) return {};
  const auto means = sum_.means();
  Metrics metrics = {{"F1@3", means.at("F1@3")}};
  for (const auto& [name, value] : means) {
    if (name != "F1@3") metrics.emplace_back(name, value);
  }
  if (losses_ > 0) metrics.emplace_back("loss", loss_ / static_cast<double>(losses_));
  metrics.emplace_back("pages", static_cast<double>(sum_.pages()));
  return metrics;
}

void OpenkpPredictions::finish() {
  if (few_ > 0) log::warn("predict: {} pages have fewer than {} phrases", few_, options_.max_phrases);
  if (file_) file_->finish();
  n_best_.finish();
}

}  // namespace etc::openkp
