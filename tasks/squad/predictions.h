// One pass of a SQuAD model over windows: merged into questions, written when all are known, scored.
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

  // The official scores, f1 first; with version_2 also best_exact, best_f1 and their thresholds, found on these very
  // questions; the mean loss of the windows with targets; questions scored. A question without a window has the answer
  // of 5.4. Empty where no question has an answer or says that it has none.
  Metrics metrics() const override;
  void finish() override;

 private:
  struct Result {
    std::string answer;
    std::string best_text;
    std::optional<double> null_odds;
  };

  void close();  // the question under way
  static Result result_of(const DecodedQuestion& decoded);
  std::map<std::string, Result> complete_results() const;

  DecodeOptions options_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  NBestFile n_best_;
  std::optional<Output> output_, null_odds_output_;
  span::WindowOrder<std::string> order_;
  std::string id_;  // of the question under way
  std::optional<QuestionDecoder> question_;
  std::vector<GoldQuestion> gold_;
  bool labelled_ = false;
  std::map<std::string, Result> results_;
  double loss_ = 0;
  std::int64_t trained_windows_ = 0;
};

}  // namespace etc::squad
