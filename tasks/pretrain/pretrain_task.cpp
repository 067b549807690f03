#include "tasks/pretrain/pretrain_task.h"

#include <numeric>
#include <optional>

#include "etc_core/base/error.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/pretrain/compared_sentences.h"
#include "tasks/pretrain/feed.h"
#include "tasks/pretrain/head.h"
#include "tasks/pretrain/mask_settings.h"
#include "tasks/pretrain/predictions.h"
#include "tasks/pretrain/schema.h"
#include "tasks/pretrain/special_pieces.h"
#include "tasks/span/loss.h"
#include "tasks/span/pieces.h"
#include "tasks/whole_batch.h"

namespace etc::pretrain {

namespace {

constexpr double kDenominatorMargin = 1e-5;  // in the denominator of the masked pieces' loss (pretraining 1.4)

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

class PretrainTask final : public Task, public ComparesBatch {
 public:
  PretrainTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(read_options(section)), pieces_{0, model.vocab_size} {
    if (options_.cpc()) feed::require_global_tokens(model, "task.objective: mlm_cpc");
  }

  const data::Schema& schema() const override { return pretrain::schema(); }

  // For [MASK] and the answers. Without a vocabulary (while counting memory) masked pieces have the id 0.
  bool needs_vocabulary() const override { return true; }
  void use_vocabulary(std::shared_ptr<const data::Tokenizer> vocabulary) override {
    pieces_.mask_id = text::special_id(*vocabulary, kMask);
    pieces_.vocab_size = std::min<std::int64_t>(vocabulary->vocab_size(), model_->vocab_size);
    vocabulary_ = std::move(vocabulary);
  }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    for (const data::LoadedExample& loaded : examples) check_example(loaded.features, *model_, options_, where);
    return pretrain::feed(examples, batch_of(examples, options_, pieces_), *model_, options_, pieces_);
  }

  void add_parameters(ParameterSet& parameters) override { head_.emplace(*model_, options_, parameters); }

  HeadOutput head(Tape& tape, Examples examples, const EncoderStates& states, const EncoderInput&,
                  const ForwardOptions&) const override {
    return head_->forward(tape, batch_of(examples, options_, pieces_), states);
  }

  std::vector<std::string> loss_terms() const override {
    std::vector<std::string> terms = {"masked"};
    if (options_.nsp()) terms.emplace_back("next_sentences");
    if (options_.cpc()) terms.emplace_back("hidden_sentences");
    return terms;
  }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    check_example(example.features, *model_, options_, "the training data");
    require_followed(example.features, options_, "the training data");
    const Masks masks = masks_of(example, options_, pieces_);
    counts[0] += static_cast<double>(masks.positions.size());
    if (options_.nsp()) counts[1] += 1;
    if (options_.cpc()) counts[1] += static_cast<double>(masks.cpc_sentences.size());
  }

  double loss(Tape& tape, Examples examples, const EncoderInput&, HeadOutput& outputs,
              std::span<const double> counts) const override {
    const Batch batch = batch_of(examples, options_, pieces_);
    double loss = span::piece_loss(tape, outputs.at(kTransformed), head_->vocabulary(), batch.labels,
                                   options_.mlm_weight() / (counts[0] + kDenominatorMargin));
    if (options_.nsp() && counts[1] > 0) loss += next_sentence_loss(tape, examples, outputs, 1 / counts[1]);
    if (options_.cpc() && counts[1] > 0) {
      loss += compared_ ? share_of_hidden_loss(tape, examples, outputs)
                        : hidden_loss(tape, outputs, options_.w_cpc / counts[1]);
    }
    return loss;
  }

  bool compares() const override { return options_.cpc(); }

  std::vector<float> compared_rows(const HeadOutput& outputs) const override {
    const Tensor &predicted = outputs.at(kPredicted).value(), &target = outputs.at(kTarget).value();
    std::vector<float> rows;  // [m, 2·H]: c, t
    for (std::int64_t i = 0; i < predicted.rows(); ++i) {
      for (const Tensor* part : {&predicted, &target}) {
        const float* const row = part->data() + i * part->cols();
        rows.insert(rows.end(), row, row + part->cols());
      }
    }
    return rows;
  }

  void compare_with(const BatchRows& rows, std::span<const double> counts) override {
    compared_.reset();
    if (counts[1] > 0) compared_ = compared(rows, options_, model_->hidden_size, options_.w_cpc / counts[1]);
  }

  void compare_micro_batches() override { compared_.reset(); }

  std::int64_t rows_of(const data::LoadedExample& example) const override {
    return std::ssize(masks_of(example, options_, pieces_).cpc_sentences);
  }

  std::int64_t bytes_of_comparing(std::int64_t rows) const override { return hidden_bytes(rows, model_->hidden_size); }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<PretrainPredictions>(request, predictor());
  }

  void count_predictions(Examples examples, const EncoderInput&, const HeadOutput& outputs) const override {
    span::piece_result(outputs.at(kTransformed), head_->vocabulary(), batch_of(examples, options_, pieces_).labels);
  }

  bool takes_whole_texts() const override { return true; }

  std::string show(const data::RecordSlice&, const data::Example& example, const HeadOutput& outputs) const override {
    return shown_prediction({0, 0, example}, predictor(), outputs);
  }

 private:
  Predictor predictor() const { return {options_, pieces_, *head_, vocabulary_}; }

  // Each of these adds its gradient to the outputs when the tape records, and returns the sum of its losses times scale.
  double next_sentence_loss(Tape& tape, Examples examples, HeadOutput& outputs, double scale) const {
    std::vector<std::int64_t> labels;
    for (const data::LoadedExample& loaded : examples) {
      labels.push_back(feed::number(loaded.features, "next_sentence_label"));
    }
    Var& logits = outputs.at(kNextSentence);
    float* gradient = tape.recording() ? logits.grad().data() : nullptr;
    return scale * sum_of(span::class_losses({logits.value().data(), 2, labels, scale, gradient}));
  }

  double hidden_loss(Tape& tape, HeadOutput& outputs, double scale) const {
    Var &predicted = outputs.at(kPredicted), &target = outputs.at(kTarget);
    CpcLoss args{.sentences = predicted.value().rows(), .width = predicted.value().cols()};
    args.predicted = predicted.value().data();
    args.target = target.value().data();
    args.similarity = options_.cpc_similarity;
    args.temperature = options_.temperature();
    args.scale = scale;
    if (tape.recording()) {
      args.dpredicted = predicted.grad().data();
      if (!options_.cpc_stop_target_gradient) args.dtarget = target.grad().data();
    }
    return scale * sum_of(cpc_loss(args).losses);
  }

  // The share of this micro-batch's sentences in the loss of the whole batch.
  double share_of_hidden_loss(Tape& tape, Examples examples, HeadOutput& outputs) const {
    Var &predicted = outputs.at(kPredicted), &target = outputs.at(kTarget);
    const std::int64_t first = compared_->first_row.at(examples.front().sample_ordinal);
    const std::int64_t begin = first * predicted.value().cols(), count = predicted.value().size();
    if (tape.recording()) {
      std::copy_n(compared_->dpredicted.data() + begin, count, predicted.grad().data());
      if (!options_.cpc_stop_target_gradient) {
        std::copy_n(compared_->dtarget.data() + begin, count, target.grad().data());
      }
    }
    const auto losses = std::span(compared_->losses).subspan(first, predicted.value().rows());
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

  ModelConfig model_;
  Options options_;
  Pieces pieces_;
  std::shared_ptr<const data::Tokenizer> vocabulary_;
  std::optional<Head> head_;
  std::optional<ComparedSentences> compared_;
};

// Batches that an evaluation while training reads (pretraining 1.5).
constexpr std::int64_t kEvaluatedBatches = 100;

// No official prediction format exists, so there is nothing to score.
Json score_files(const std::filesystem::path&, const std::vector<std::filesystem::path>&) {
  fail_usage("etc eval",
             "task pretrain has no prediction file to score: evaluate a model (--model RUN/best --data FILE)");
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{.keys = fields(),
                              .make = made<PretrainTask>,
                              .score = score_files,
                              .training = {{"eval_batches", kEvaluatedBatches}}};
  return kKind;
}

}  // namespace etc::pretrain
