// The answer to one Natural Questions page, from all its windows.
#pragma once

#include <optional>

#include "tasks/nq/decode.h"
#include "tasks/task.h"

namespace etc::nq {

// {"id", "answer": "yes", "no" or null, "long": span, "short": [span, …]}; a span is {"start_token", "end_token", "score"}
// in document tokens, or null if there is none. Scores are those of the official prediction file.
class NqAnswer final : public RecordAnswer {
 public:
  explicit NqAnswer(const DecodeOptions& options) : options_(options) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) override;
  Json finish() override;

 private:
  DecodeOptions options_;
  std::optional<DocumentDecoder> document_;
};

}  // namespace etc::nq
