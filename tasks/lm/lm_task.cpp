#include "tasks/lm/lm_task.h"

#include "etc_core/base/error.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/token_table.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/lm/predictions.h"
#include "tasks/lm/schema.h"
#include "tasks/span/pieces.h"

namespace etc::lm {

namespace {

// A language model has no task settings; only its encoder is configured.
struct TaskKeys {};

const FieldList<TaskKeys>& task_fields() {
  static const FieldList<TaskKeys> kFields{};
  return kFields;
}

const DenseConfig& causal_config(const EncoderConfig& model) {
  const auto* const config = dynamic_cast<const DenseConfig*>(&model);
  if (config == nullptr) {
    fail_usage("config", "model.kind: task lm trains a causal dense encoder: expected dense, got {}",
               model_kind_of(model.to_json()));
  }
  if (!config->causal) {
    fail_usage("config", "model.causal: expected true: task lm predicts pieces from those before them");
  }
  if (config->embedding_width() != config->hidden_size) {
    fail_usage("config",
               "model.embedding_size: expected hidden_size, {}, since task lm's output is the token table, got {}",
               config->hidden_size, config->embedding_width());
  }
  return *config;
}

// logit_i = x_i·Eᵀ + b for final states x [T, H] and the encoder's token table E [V, H], computed in slices together with
// the loss. Parameter: cls/predictions/output_bias [V], as in pre-training.
class LmTask final : public Task {
 public:
  LmTask(const Json& section, const EncoderConfig& model) : config_(causal_config(model)) {
    task_fields().read(section, "config", "task.");
  }

  const data::Schema& schema() const override { return lm::schema(); }

  void use_vocabulary(std::shared_ptr<const data::Tokenizer> vocabulary) override {
    vocabulary_ = std::move(vocabulary);
  }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return feed::batch_input(examples, config_, true, [&](EncoderInput& input, const data::Example& example) {
      const feed::Examination examined(example, where);
      examined.length("token_ids");
      examined.token_ids("token_ids", config_.vocab_size);
      examined.number_in_range("next_id", 0, config_.vocab_size);
      feed::append(input.token_ids, feed::numbers(example, "token_ids"));
      return sparse::AttentionStructure();
    });
  }

  void add_parameters(ParameterSet& parameters) override {
    output_.table = &token_table(parameters);
    output_.bias = &parameters.add("cls/predictions/output_bias", {config_.vocab_size}, kZeros);
  }

  HeadOutput head(Tape&, Examples, const EncoderStates& states, const EncoderInput&,
                  const ForwardOptions&) const override {
    return {states.long_states};  // [T, H]
  }

  std::vector<std::string> loss_terms() const override { return {"pieces"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    counts[0] += static_cast<double>(feed::numbers(example.features, "token_ids").size());
  }

  double loss(Tape& tape, Examples examples, const EncoderInput&, HeadOutput& states,
              std::span<const double> counts) const override {
    return span::piece_loss(tape, states.at(0), output_, labels_of(examples), 1 / counts[0]);
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    if (!request.n_best_output.empty()) {
      fail_usage("etc predict", "task lm: expected no --n-best-output: what it says of every piece is in --output");
    }
    return std::make_unique<LmPredictions>(request, output_, vocabulary_);
  }

  void count_predictions(Examples examples, const EncoderInput&, const HeadOutput& states) const override {
    count_piece_result(states, output_, examples);
  }

  bool takes_whole_texts() const override { return true; }
  bool begins_text(const data::LoadedExample& example) const override {
    return feed::number(example.features, "segment") == 0;
  }

  std::string no_show() const override { return "task lm says of every piece what it thinks in --output"; }
  std::string show(const data::RecordSlice&, const data::Example&, const HeadOutput&) const override {
    fail_usage("etc predict", "--show: {}", no_show());
  }

 private:
  const DenseConfig config_;
  VocabularyLayer output_;
  std::shared_ptr<const data::Tokenizer> vocabulary_;
};

// No official prediction format exists, so there is nothing to score.
Json score_files(const std::filesystem::path&, const std::vector<std::filesystem::path>&) {
  fail_usage("etc eval", "task lm has no prediction file to score: evaluate a model (--model RUN/best --data FILE)");
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{.keys = task_fields(), .make = made<LmTask>, .score = score_files, .texts_go_on = true};
  return kKind;
}

}  // namespace etc::lm
