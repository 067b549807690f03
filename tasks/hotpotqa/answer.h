// The answer to one HotpotQA record, with its position and evidence.
#pragma once

#include <memory>

#include "etc_core/base/json.h"
#include "tasks/hotpotqa/decode.h"
#include "tasks/task.h"

namespace etc::hotpotqa {

// {"id", "answer", "answer_type": span, yes or no, "answer_type_scores": probabilities, "score": of the span (decode.h; for
// yes and no that type's probability), "place": position of the span, {"paragraph", "sentence": null in a title, "start",
// "end": characters of that sentence or title} or null, "evidence": [{"paragraph", "sentence", "title", "text", "score":
// probability}, …] in text order}; paragraphs and sentences are numbered from 0 as in the record.
class HotpotqaAnswer final : public RecordAnswer {
 public:
  HotpotqaAnswer(const DecodeOptions& options, std::shared_ptr<const data::Tokenizer> tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) override;
  Json finish() override { return std::move(answer_); }

 private:
  Json json_of(const data::Example& example, const Logits& logits) const;

  DecodeOptions options_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  Json answer_ = Json::object();
};

}  // namespace etc::hotpotqa
