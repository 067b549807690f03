// The results of one pass of a GLUE model over rows: the submission file, and the metrics of the labelled rows.
#pragma once

#include <optional>
#include <span>

#include "tasks/glue/data_sets.h"
#include "tasks/glue/metrics.h"
#include "tasks/glue/prediction_file.h"
#include "tasks/n_best_file.h"
#include "tasks/output.h"
#include "tasks/task.h"

namespace etc::glue {

// Labels of a batch, for its loss.
struct Labels {
  std::vector<std::int64_t> classes;  // [B] -1: none
  std::vector<double> scores;         // [B]
  std::vector<std::uint8_t> scored;   // [B] 0: none
  bool any() const;
};
Labels labels_of(Examples examples);

// [{"label", "probability"}, …] of a row's logits, the `most` likeliest classes, best first.
Json ranked_classes(const DataSetInfo& info, std::span<const float> logits, std::int64_t most);

// Losses [B] of the logits [B, n]: cross-entropy, or the squared error for a regression. dlogits as in span/loss.h.
std::vector<double> row_losses(const DataSetInfo& info, const Labels& labels, const float* logits, double scale,
                               float* dlogits);

class RowPredictions final : public Predictions {
 public:
  RowPredictions(const PredictionRequest& request, const DataSetInfo& info);

  // Writes "index<tab>prediction" for each row: its number (RowNumbers), and its label or score.
  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override;

  // The metrics of measured(), the mean loss, the number of scored rows.
  Metrics metrics() const override;
  void finish() override;

 private:
  const DataSetInfo& info_;
  NBestFile n_best_;
  std::optional<Output> output_;
  RowNumbers numbers_;
  Outcomes outcomes_;
  double loss_ = 0;
};

}  // namespace etc::glue
