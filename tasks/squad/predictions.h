// One pass of a SQuAD model over windows: results are merged into questions, written when all are known, and scored.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/output.h"
#include "tasks/span/window_order.h"
#include "tasks/squad/decode.h"
#include "tasks/squad/metrics.h"
#include "tasks/task.h"

namespace etc::squad {

// {id: value}, an entry a line, written entry by entry.
class EntryFile {
 public:
  explicit EntryFile(const std::filesystem::path& target) : output_(target) {}
  void add(const std::string& id, const Json& value);
  void finish();  // without it no file is left

 private:
  Output output_;
  bool empty_ = true;
};

// The n-best file has the whole decoded list of every question, as the published program writes it (5.4), whatever
// PredictionRequest::n_best is: {id: [{"text", "probability", "start_logit", "end_logit"}, …]}, questions without a window
// last.
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
  std::int64_t n_best_;  // of each list; 0: all
  std::optional<EntryFile> output_, null_odds_output_, n_best_output_;
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
