#include "tasks/hotpotqa/predictions.h"

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/host_logits.h"
#include "tasks/hotpotqa/head.h"
#include "tasks/hotpotqa/schema.h"
#include "tasks/text/top_scores.h"

namespace etc::hotpotqa {

namespace {

GoldRecord gold_of(const data::Example& example) {
  GoldRecord gold;
  gold.id = feed::text(example, "id");
  gold.answer = feed::text(example, "answer");
  const auto& titles = feed::texts(example, "gold_sf_titles");
  const auto& sentences = feed::numbers(example, "gold_sf_sentences");
  for (std::size_t i = 0; i < titles.size(); ++i) gold.supporting_facts.push_back({titles[i], sentences[i]});
  return gold;
}

RecordScores scores_of(const GoldRecord& gold, const Decoded& decoded) {
  return hotpotqa::score(gold, &decoded.answer.text, &decoded.supporting_facts);
}

Json json_of(const Decoded& decoded) {
  Json answers = Json::array();
  for (const Answer& answer : decoded.n_best) {
    answers.push_back({{"text", answer.text},
                       {"score", answer.score},
                       {"first_token", answer.tokens->first},
                       {"last_token", answer.tokens->last}});
  }
  return answers;
}

}  // namespace

ExampleLogits logits_of(const HeadOutput& logits, const EncoderInput& input, std::size_t b, AnswerEncoding encoding) {
  const auto first = static_cast<std::size_t>(input.long_offsets[b]);
  const auto length = static_cast<std::size_t>(input.long_offsets[b + 1]) - first;
  const auto globals = static_cast<std::size_t>(input.global_offsets[b + 1] - input.global_offsets[b]);
  const float* answer = logits.at(kAnswerLogits).value().data();
  ExampleLogits result;
  result.views.supporting_facts = {logits.at(kFactLogits).value().data() + input.global_offsets[b], globals};
  result.views.answer_type = {logits.at(kTypeLogits).value().data() + b * 3, 3};
  if (encoding == AnswerEncoding::bio) {
    result.views.bio = {answer + first * 3, length * 3};
    return result;
  }
  for (std::size_t i = first; i < first + length; ++i) {
    for (std::size_t side = 0; side < 2; ++side) result.ends[side].push_back(answer[i * 2 + side]);
  }
  result.views.begin = result.ends[0];
  result.views.end = result.ends[1];
  return result;
}

HotpotqaPredictions::HotpotqaPredictions(const PredictionRequest& request, const DecodeOptions& options,
                                         std::shared_ptr<const data::Tokenizer> tokenizer)
    : options_(options), tokenizer_(std::move(tokenizer)), n_best_(request) {
  options_.n_best = n_best_.count();
  if (!request.output.empty()) file_.emplace(request.output);
}

void HotpotqaPredictions::add(Examples examples, const EncoderInput& input, const HeadOutput& computed) {
  const HeadOutput logits = on_host(computed);
  const Labels labels = labels_of(examples, options_.encoding);
  LossArguments args;
  args.encoding = options_.encoding;
  args.long_offsets = input.long_offsets;
  args.global_offsets = input.global_offsets;
  args.labels = &labels;
  for (std::size_t k = 0; k < logits.size(); ++k) args.logits[k] = logits[k].value().data();
  const auto terms = losses(args);
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::string& id = feed::text(example, "id");
    const ExampleLogits own = logits_of(logits, input, b, options_.encoding);
    for (const auto values :
         {own.views.begin, own.views.end, own.views.bio, own.views.supporting_facts, own.views.answer_type}) {
      text::require_finite(values, id);
    }
    const Decoded decoded = decode(own.views, example, *tokenizer_, options_);
    if (file_) file_->add(id, decoded.answer.text, decoded.supporting_facts);
    n_best_.add(id, json_of(decoded));
    if ((feed::number(example, "flags") & kLabelMissing) == 0) score(example, own.views, decoded);
    if (labels.types[b] < 0) continue;
    for (const auto& term : terms) loss_ += term[b] / static_cast<double>(terms.size());
    ++losses_;
  }
}

void HotpotqaPredictions::score(const data::Example& example, const Logits& logits, const Decoded& decoded) {
  const GoldRecord gold = gold_of(example);
  scores_.add(scores_of(gold, decoded));
  DecodeOptions options = options_;
  options.n_best = 0;
  for (int k = 0; k < kThresholds; ++k) {
    options.sf_threshold = k / 10.0;
    by_threshold_[static_cast<std::size_t>(k)].add(scores_of(gold, decode(logits, example, *tokenizer_, options)));
  }
}

void HotpotqaPredictions::add_rejected(const data::Fault& fault) {
  if (fault.id.empty() || fault.code == "duplicate_id") return;
  if (file_ && file_->has(fault.id)) return;
  if (file_) file_->add(fault.id, "", {});
  if (fault.code != "label_missing") ++rejected_;
}

// The official scores divide by the gold records, whether they could be prepared or not.
ScoreSum HotpotqaPredictions::with_rejected(ScoreSum scores) const {
  for (std::int64_t i = 0; i < rejected_; ++i) scores.add({});
  return scores;
}

Metrics HotpotqaPredictions::metrics() const {
  if (scores_.records() == 0) return {};
  const ScoreSum scores = with_rejected(scores_);
  const auto means = scores.means();
  Metrics metrics = {{"joint_f1", means.at("joint_f1")}};
  for (const auto& [name, value] : means) {
    if (name != "joint_f1") metrics.emplace_back(name, value);
  }
  double best = -1, threshold = 0;
  for (int k = 0; k < kThresholds; ++k) {  // the first of equals
    const double f1 = with_rejected(by_threshold_[static_cast<std::size_t>(k)]).means().at("joint_f1");
    if (f1 <= best) continue;
    best = f1;
    threshold = k / 10.0;
  }
  metrics.emplace_back("tuned_joint_f1", best);
  metrics.emplace_back("tuned_sf_threshold", threshold);
  if (losses_ > 0) metrics.emplace_back("loss", loss_ / static_cast<double>(losses_));
  metrics.emplace_back("examples", static_cast<double>(scores.records()));
  return metrics;
}

void HotpotqaPredictions::finish() {
  if (file_) file_->finish();
  n_best_.finish();
}

}  // namespace etc::hotpotqa
