#include "tasks/nq/answer.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/nq/head.h"
#include "tasks/nq/top_logits.h"

namespace etc::nq {

namespace {

Json json_of(const Span& span, double score) {
  if (span.start_token < 0) return nullptr;
  return {{"start_token", span.start_token}, {"end_token", span.end_token}, {"score", score}};
}

}  // namespace

void NqAnswer::add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) {
  const Tensor types = logits.at(kTypeLogits).value().to(Device::cpu);  // [B, 5]
  const TopLogits top(logits.at(kPositionLogits), input.long_offsets);
  for (std::size_t b = own.first; b < own.end; ++b) {
    const data::Example& example = examples[b].features;
    if (!document_) document_.emplace(feed::number(example, "unique_ids"), options_);
    WindowLogits window = top.window(b);
    window.token_pos = feed::numbers(example, "token_pos");
    window.type_logits = types.data() + b * kAnswerTypes;
    document_->add(window);
  }
}

Json NqAnswer::finish() {
  const DecodedDocument decoded = document_->decode();
  if (!decoded.fault.empty()) fail("decode", "{}", decoded.fault);
  const Prediction& prediction = decoded.prediction;
  Json shorts = Json::array();
  for (const Span& span : prediction.short_answers) {
    if (span.start_token >= 0) shorts.push_back(json_of(span, prediction.short_score));
  }
  Json answer;
  if (prediction.yes_no != YesNo::none) answer = prediction.yes_no == YesNo::yes ? "yes" : "no";
  return {{"id", std::to_string(document_->example_id())},
          {"answer", std::move(answer)},
          {"long", json_of(prediction.long_answer, prediction.long_score)},
          {"short", std::move(shorts)}};
}

}  // namespace etc::nq
