// One pass of a HotpotQA model over examples: writes answers and facts to files and scores the labelled examples.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/decode.h"
#include "tasks/hotpotqa/metrics.h"
#include "tasks/n_best_file.h"
#include "tasks/task.h"

namespace etc::hotpotqa {

// Logits of example b of a batch at its positions. `ends` stores the begin and end logits, which the head interleaves.
struct ExampleLogits {
  std::array<std::vector<float>, 2> ends;
  Logits views;
};
ExampleLogits logits_of(const HeadOutput& logits, const EncoderInput& input, std::size_t b, AnswerEncoding encoding);

class HotpotqaPredictions final : public Predictions {
 public:
  HotpotqaPredictions(const PredictionRequest& request, const DecodeOptions& options,
                      std::shared_ptr<const data::Tokenizer> tokenizer);

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override;

  // Writes an empty answer without facts, which scores 0 where other examples have labels.
  void add_rejected(const data::Fault& fault) override;

  // The twelve official numbers, joint_f1 first; joint_f1 at the supporting-fact threshold that is best for these examples
  // (tuned on them, so not comparable with other results), and that threshold; the mean loss; the number of scored
  // records.
  Metrics metrics() const override;
  void finish() override;

 private:
  static constexpr int kThresholds = 11;  // 0, 0.1, …, 1

  void score(const data::Example& example, const Logits& logits, const Decoded& decoded);
  ScoreSum with_rejected(ScoreSum scores) const;

  DecodeOptions options_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::optional<PredictionFile> file_;
  NBestFile n_best_;
  ScoreSum scores_;
  std::array<ScoreSum, kThresholds> by_threshold_;
  std::int64_t rejected_ = 0;  // gold records that have no example
  double loss_ = 0;
  std::int64_t losses_ = 0;
};

}  // namespace etc::hotpotqa
