#include "tasks/nq/nq_task.h"

#include <limits>
#include <numeric>
#include <optional>

#include "data/readers/json_record.h"
#include "tasks/feed/batch.h"
#include "tasks/nq/answer.h"
#include "tasks/nq/feed.h"
#include "tasks/nq/head.h"
#include "tasks/nq/prediction_file.h"
#include "tasks/nq/predictions.h"
#include "tasks/nq/schema.h"
#include "tasks/nq/show.h"

namespace etc::nq {

namespace {

// The section `task`.
struct Options : DecodeOptions {
  bool mask_long_output = false;
  std::int64_t cls_id = 101;
  std::int64_t sep_id = 102;
  bool global_attention = true;

  std::optional<PositionMask> mask() const {
    if (!mask_long_output) return std::nullopt;
    return PositionMask{static_cast<std::int32_t>(cls_id), static_cast<std::int32_t>(sep_id)};
  }
};

const FieldList<Options>& fields() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Options> kFields{
      {"mask_long_output", &Options::mask_long_output, "only CLS and the document's pieces may be chosen"},
      {"cls_id", &Options::cls_id, "vocabulary id of CLS, for mask_long_output", {.least = 0, .most = kMost}},
      {"sep_id", &Options::sep_id, "vocabulary id of the separator, for mask_long_output", {.least = 0, .most = kMost}},
      {"span_selection",
       &Options::selection,
       "how spans are chosen: joint, disjoint or joint-exhaustive",
       {{"joint", SpanSelection::joint},
        {"disjoint", SpanSelection::disjoint},
        {"joint-exhaustive", SpanSelection::joint_exhaustive}},
       kDecoding},
      {"answer_score",
       &Options::score,
       "quotient: of a logit by that of CLS, as published; difference: of the two",
       {{"quotient", ScoreKind::quotient}, {"difference", ScoreKind::difference}},
       kDecoding},
      {"answer_type_window",
       &Options::type_window,
       "whose answer type counts: last, or best_long, of the window with the best long answer",
       {{"last", TypeWindow::last}, {"best_long", TypeWindow::best_long}},
       kDecoding},
      {"consider_answer_type",
       &Options::consider_answer_type,
       "let the answer type turn the short answer into yes or no",
       {},
       kDecoding},
      {"max_short_answer_len",
       &Options::max_short_answer_len,
       "most document tokens of a short answer",
       {.least = 1, .most = kMost},
       kDecoding},
      {"global_attention", &Options::global_attention, "false: ablation; nothing travels through global tokens"},
  };
  return kFields;
}

class NqTask final : public Task {
 public:
  NqTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")) {
    if (!options_.global_attention) feed::require_global_tokens(model, "task.global_attention: false");
  }

  const data::Schema& schema() const override { return model_schema(); }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return nq::feed(examples, *model_, options_.global_attention, where);
  }

  void add_parameters(ParameterSet& parameters) override { head_.emplace(*model_, options_.mask(), parameters); }

  HeadOutput head(Tape& tape, Examples, const EncoderStates& states, const EncoderInput& input,
                  const ForwardOptions&) const override {
    return head_->logits(tape, states.long_states, input.long_offsets, input.token_ids);
  }

  std::vector<std::string> loss_terms() const override { return {"windows"}; }

  void count(const data::LoadedExample& /*example*/, std::span<double> counts) const override { counts[0] += 1; }

  double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
              std::span<const double> counts) const override {
    const Labels labels = labels_of(examples);
    WindowLoss args;
    args.offsets = input.long_offsets;
    args.positions = logits.at(kPositionLogits).value().data();
    args.types = logits.at(kTypeLogits).value().data();
    args.position_labels = labels.positions;
    args.type_labels = labels.types;
    args.denominator = counts[0];
    if (tape.recording()) {
      args.dpositions = logits[kPositionLogits].grad().data();
      args.dtypes = logits[kTypeLogits].grad().data();
    }
    const auto losses = window_losses(args);
    return std::accumulate(losses.begin(), losses.end(), 0.0) / counts[0];
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<DocumentPredictions>(request, options_);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override { return std::make_unique<NqAnswer>(options_); }

  std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                   const HeadOutput& logits) const override {
    return shown_prediction(data::value_of(raw_record), example, logits, options_);
  }

 private:
  ModelConfig model_;
  Options options_;
  std::optional<Head> head_;
};

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  PredictionMap predicted = read_predictions(predictions);
  const Gold annotated = read_gold(gold);
  match_ids(predicted, annotated, predictions.string());
  Json result = evaluate(predicted, annotated.documents);
  result["unannotated"] = annotated.unannotated.size();
  return result;
}

}  // namespace

const TaskKind& task_kind() {
  // The published settings of the base model.
  static const TaskKind kKind{.keys = fields(),
                              .make = made<NqTask>,
                              .score = score_files,
                              .training = {{"batch_size", 64}, {"epochs", 3.0}, {"learning_rate", 5e-5}}};
  return kKind;
}

}  // namespace etc::nq
