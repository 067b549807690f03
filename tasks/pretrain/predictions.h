// The results of one pass over pre-training examples: predicted pieces and metrics.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tasks/n_best_file.h"
#include "tasks/pretrain/batch.h"
#include "tasks/pretrain/head.h"
#include "tasks/pretrain/metrics.h"

namespace etc::pretrain {

// The model's part, which must outlive the predictions.
struct Predictor {
  const Options& options;
  const Pieces& pieces;
  const Head& head;
  std::shared_ptr<const data::Tokenizer> vocabulary;
};

// The file has one JSON line per example, in the order of the data:
//   {"id": …, "masked": [{"position": 7, "label": "##s", "predicted": "##ed", "probability": 0.41}, …],
//    "follows": 0.98}     only with next sentences: the probability that the second text follows the first
// The n-best file has the n most probable pieces of every masked position: [[{"piece": …, "probability": …}, …], …].
class PretrainPredictions final : public Predictions {
 public:
  PretrainPredictions(const PredictionRequest& request, const Predictor& predictor);

  void add(Examples examples, const EncoderInput& input, const HeadOutput& outputs) override;
  Metrics metrics() const override { return sums_.metrics(); }
  void finish() override;

 private:
  void add_next_sentences(Examples examples, const HeadOutput& outputs);
  void add_hidden_sentences(const HeadOutput& outputs);
  void write(Examples examples, const Batch& batch, const VocabularyResult& result, const HeadOutput& outputs);
  void write_n_best(Examples examples, const Batch& batch, const Tensor& transformed);

  Predictor predictor_;
  std::optional<Output> file_;
  NBestFile n_best_;
  PretrainSums sums_;
};

// Readable text: every masked piece with the text around it, the most probable pieces and their probabilities. outputs: the
// head's output for this example alone.
std::string shown_prediction(const data::LoadedExample& example, const Predictor& predictor, const HeadOutput& outputs);

}  // namespace etc::pretrain
