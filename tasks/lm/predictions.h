// The quality of a language model's predictions, and its prediction for every piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/autograd/vocabulary.h"
#include "tasks/output.h"
#include "tasks/span/pieces.h"
#include "tasks/task.h"

namespace etc::lm {

// The labels of the segments (schema.h), one after another.
std::vector<std::int32_t> labels_of(Examples examples);

// For counting memory (Task::count_predictions): the memory that LmPredictions takes for these examples.
void count_piece_result(const HeadOutput& states, const VocabularyLayer& output, Examples examples);

// Every label of the data counts, including the piece that ends a text. Each is predicted from the pieces before it in its
// segment and, for a model with memory, in the memory; the first piece of a text is predicted from the text end alone.
//   "log2_likelihood", "perplexity", "token_accuracy"   per label (span::Perplexity)
//   "bits_per_character"   bits of all labels, divided by the characters of the raw text. The ends of texts have bits but
//                          no characters; line ends that are part of a text are characters
// Prediction file: JSON lines, one for each segment, with the labels, their log2 probabilities and the most probable pieces:
//   {"id": "0:3", "pieces": [...], "log2_p": [...], "best": [...]}
class LmPredictions final : public Predictions {
 public:
  // vocabulary: if null, pieces are written as ids.
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
