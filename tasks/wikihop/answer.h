// The answer to one WikiHop record: the candidates ranked by probability.
#pragma once

#include "etc_core/base/json.h"
#include "tasks/task.h"

namespace etc::wikihop {

// {"id", "answer", "score": its probability among the candidates, "candidates": [{"text", "score"}, …] best first}
class WikihopAnswer final : public RecordAnswer {
 public:
  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) override;
  Json finish() override { return std::move(answer_); }

 private:
  Json answer_ = Json::object();
};

}  // namespace etc::wikihop
