// The results of one pass over the windows of a data set: merged into documents, written as each is complete, and scored.
#pragma once

#include <filesystem>
#include <map>
#include <optional>

#include "tasks/n_best_file.h"
#include "tasks/nq/decode.h"
#include "tasks/output.h"
#include "tasks/span/window_order.h"
#include "tasks/task.h"

namespace etc::nq {

// Converts a row of /gold for the scores. Throws Error naming document and annotation if an annotation contradicts itself.
GoldDocument gold_of(const data::Example& row);

// Windows of a document must be consecutive, as `etc prepare` writes them. Memory is therefore that of one document,
// whatever the data set's size, plus the ids and, per document with gold, two outcomes.
class DocumentPredictions final : public Predictions {
 public:
  DocumentPredictions(const PredictionRequest& request, const DecodeOptions& options);

  void add_gold(const data::Example& row) override;
  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override;

  // The official scores: f1 (mean of the next two), long_f1, short_f1, their thresholds, the mean loss of the labelled
  // windows, the number of scored documents. A document with gold but no window has no answer. Empty if no document is
  // annotated.
  Metrics metrics() const override;
  void finish() override;

 private:
  struct Outcomes {
    Outcome long_answer, short_answer;
  };

  void close();  // completes the current document
  std::optional<Outcomes> outcomes_of(const DecodedDocument& document) const;
  void write(std::string_view text);

  DecodeOptions options_;
  NBestFile n_best_;
  std::optional<Output> output_;
  std::optional<DocumentDecoder> document_;
  span::WindowOrder<std::int64_t> order_;
  bool written_ = false;  // an entry of the prediction file has been written
  std::map<std::int64_t, GoldDocument> gold_;
  std::vector<Outcomes> outcomes_;
  double loss_ = 0;
  std::int64_t labelled_windows_ = 0;
};

}  // namespace etc::nq
