// The answer to one row of a GLUE data set.
#pragma once

#include "etc_core/base/json.h"
#include "tasks/glue/data_sets.h"
#include "tasks/task.h"

namespace etc::glue {

// {"id", "answer": label, "score": its probability, "labels": [{"label", "probability"}, …] best first}; of a regression
// {"id", "answer": number}.
class RowAnswer final : public RecordAnswer {
 public:
  explicit RowAnswer(const DataSetInfo& info) : info_(info) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange range) override;
  Json finish() override { return answer_; }

 private:
  const DataSetInfo& info_;
  Json answer_;
};

}  // namespace etc::glue
