// The results of one pass over OpenKP pages: the prediction file, the n best phrases if requested, the official scores.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "tasks/n_best_file.h"
#include "tasks/openkp/decode.h"
#include "tasks/openkp/metrics.h"
#include "tasks/openkp/scoring.h"

namespace etc::openkp {

class OpenkpPredictions final : public Predictions {
 public:
  OpenkpPredictions(const PredictionRequest& request, const ScoringOptions& scoring, const DecodeOptions& options);

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override;

  // A page that could not be prepared has no predicted phrases, and is scored as 0 if it has gold key phrases and no other
  // page of its url is scored.
  void add_rejected(const data::Fault& fault) override;

  // Precision, recall and F1 at 1, 3 and 5, F1@3 first; the mean loss of the pages with a label; the number of scored
  // pages.
  Metrics metrics() const override;
  void finish() override;

 private:
  void add_page(const data::Example& page, std::span<const float> scores);
  void write(const std::string& url, const std::vector<ScoredPhrase>& phrases);

  ScoringOptions scoring_;
  DecodeOptions options_;
  std::optional<PredictionFile> file_;
  NBestFile n_best_;
  ScoreSum sum_;
  std::set<std::string> scored_;  // urls
  double loss_ = 0;
  std::int64_t losses_ = 0, few_ = 0;
};

}  // namespace etc::openkp
