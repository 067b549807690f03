// The answer to one OpenKP page: its key phrases.
#pragma once

#include "etc_core/base/json.h"
#include "tasks/openkp/decode.h"
#include "tasks/openkp/scoring.h"
#include "tasks/task.h"

namespace etc::openkp {

// {"id": url, "answer": the best phrase, "keyphrases": [{"text", "score": its probability among the page's phrases,
// "first_word", "words"}, …], best first}
class OpenkpAnswer final : public RecordAnswer {
 public:
  OpenkpAnswer(const ScoringOptions& scoring, const DecodeOptions& options) : scoring_(scoring), options_(options) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) override;
  Json finish() override { return std::move(answer_); }

 private:
  ScoringOptions scoring_;
  DecodeOptions options_;
  Json answer_ = Json::object();
};

}  // namespace etc::openkp
