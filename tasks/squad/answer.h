// The answer to one SQuAD question, from all its windows.
#pragma once

#include <memory>

#include "tasks/squad/decode.h"
#include "tasks/task.h"

namespace etc::squad {

// {"id", "answer": text or null, "score": its probability among the best answers, "answer_type_scores": {"span", "none"},
// the summed probabilities of each, "place": {"first_word", "words"} in the context, whose words are separated by blanks,
// tabs, line ends and U+202F, or null; "null_odds" in version 2: score of "no answer" minus score of the answer}.
class QuestionAnswer final : public RecordAnswer {
 public:
  QuestionAnswer(const DecodeOptions& options, std::shared_ptr<const data::Tokenizer> tokenizer)
      : version_2_(options.version_2), candidates_(options.n_best_size), decoder_(options, std::move(tokenizer)) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) override;
  Json finish() override;

 private:
  bool version_2_;
  std::int64_t candidates_;
  std::string id_;
  QuestionDecoder decoder_;
};

}  // namespace etc::squad
