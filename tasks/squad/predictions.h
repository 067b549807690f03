// One pass of a SQuAD model over windows: results are merged into questions, written when all are known, and scored.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/n_best_file.h"
#include "tasks/output.h"
#include "tasks/span/window_order.h"
#include "tasks/squad/decode.h"
#include "tasks/squad/metrics.h"
#include "tasks/task.h"

namespace etc::squad {

class QuestionPredictions final : public Predictions {
 public:
  QuestionPredictions(const PredictionRequest& request, const DecodeOptions& options,
                      std::shared_ptr<const data::Tokenizer> tokenizer);

  void add_gold(const data::Example& row) override;
  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override;

  // The official scores, f1 first; with version_2 also best_exact, best_f1 and their thresholds, chosen on these same
  // questions; the mean loss of the windows with targets; the number of scored questions. A question without a window gets
  // the answer of 5.4. Empty if no question has an answer or is marked as impossible.
  Metrics metrics() const override;
  void finish() override;

 private:
  struct Result {
    std::string answer;
    std::string best_text;
    std::optional<double> null_odds;
  };

  void close();  // completes the current question
  static Result result_of(const DecodedQuestion& decoded);
  std::map<std::string, Result> complete_results() const;

  DecodeOptions options_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  NBestFile n_best_;
  std::optional<Output> output_, null_odds_output_;
  span::WindowOrder<std::string> order_;
  std::string id_;  // of the current question
  std::optional<QuestionDecoder> question_;
  std::vector<GoldQuestion> gold_;
  bool labelled_ = false;
  std::map<std::string, Result> results_;
  double loss_ = 0;
  std::int64_t trained_windows_ = 0;
};

}  // namespace etc::squad
