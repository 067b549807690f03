// How well a language model predicts texts, and what it says of every piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/autograd/vocabulary.h"
#include "tasks/output.h"
#include "tasks/span/pieces.h"
#include "tasks/task.h"

namespace etc::lm {

// The labels of a segment (schema.h).
std::vector<std::int32_t> labels_of(const data::Example& example);

// While counting (Task::count_predictions): what LmPredictions takes of these.
void count_piece_result(const HeadOutput& states, const VocabularyLayer& output, Examples examples);

// What is counted: every label of the data, the piece that ends a text included, each predicted from the pieces before it
// that its segment and, of a model with memory, the memory reach; the first piece of a text is predicted from the text
// end alone.
//   "log2_likelihood", "perplexity", "token_accuracy"   per label (span::Perplexity)
//   "bits_per_character"   bits of all labels, divided by the characters of the raw text. The ends of texts have bits but
//                          no characters; line ends that are part of a text are characters
// Prediction file, JSON lines, one for each segment:
//   {"id": "0:3", "pieces": [...], "log2_p": [...], "best": [...]}    labels, their log2 probability, the most probable
class LmPredictions final : public Predictions {
 public:
  // vocabulary: null: pieces are written as their ids.
  LmPredictions(const PredictionRequest& request, const VocabularyLayer& output,
                std::shared_ptr<const data::Tokenizer> vocabulary);

  void add(Examples examples, const EncoderInput& input, const HeadOutput& states) override;
  Metrics metrics() const override;
  void finish() override {
    if (file_) file_->finish();
  }

 private:
  void write(Examples examples, const std::vector<std::int32_t>& labels, const VocabularyResult& result);

  VocabularyLayer output_;
  std::shared_ptr<const data::Tokenizer> vocabulary_;
  std::optional<Output> file_;
  span::Perplexity perplexity_;
  std::int64_t characters_ = 0;
};

}  // namespace etc::lm
