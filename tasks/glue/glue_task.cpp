#include "tasks/glue/glue_task.h"

#include <numeric>
#include <optional>

#include "tasks/glue/answer.h"
#include "tasks/glue/data_sets.h"
#include "tasks/glue/feed.h"
#include "tasks/glue/head.h"
#include "tasks/glue/prediction_file.h"
#include "tasks/glue/predictions.h"
#include "tasks/glue/schema.h"
#include "tasks/glue/show.h"

namespace etc::glue {

namespace {

// The section `task`.
struct Options : feed::SequenceGlobals {
  DataSet data_set = DataSet::cola;
  bool mismatched = false;
};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      data_set_entry(&Options::data_set, "cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli or ax, as prepared"),
      {"mismatched",
       &Options::mismatched,
       "mnli: the rows predicted are of the mismatched set; names the file in a submission",
       {},
       kDecoding},
      feed::tokens_per_block_entry<Options>(),
      feed::block_id_entry<Options>(),
  };
  return kFields;
}

class GlueTask final : public Task {
 public:
  GlueTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")), info_(info_of(options_.data_set)) {}

  const data::Schema& schema() const override { return glue::schema(); }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return glue::feed(examples, *model_, info_.set, options_, where);
  }

  void add_parameters(ParameterSet& parameters) override { head_.emplace(*model_, info_.outputs(), parameters); }

  HeadOutput head(Tape& tape, Examples, const EncoderStates& states, const EncoderInput& input,
                  const ForwardOptions& options) const override {
    return {head_->logits(tape, states.long_states, input, options)};  // [B, n]
  }

  std::vector<std::string> loss_terms() const override { return {"rows"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    if (labels_of({&example, 1}).any()) counts[0] += 1;
  }

  double loss(Tape& tape, Examples examples, const EncoderInput&, HeadOutput& logits,
              std::span<const double> counts) const override {
    const double denominator = std::max(1.0, counts[0]);  // 0: no row has a label
    float* dlogits = tape.recording() ? logits.at(0).grad().data() : nullptr;
    const auto losses = row_losses(info_, labels_of(examples), logits.at(0).value().data(), 1 / denominator, dlogits);
    return std::accumulate(losses.begin(), losses.end(), 0.0) / denominator;
  }

  std::string submission_name() const override { return glue::submission_name(info_, options_.mismatched) + ".tsv"; }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<RowPredictions>(request, info_);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override { return std::make_unique<RowAnswer>(info_); }

  std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                   const HeadOutput& logits) const override {
    return shown_prediction(raw_record, example, logits, info_);
  }

 private:
  ModelConfig model_;
  Options options_;
  const DataSetInfo& info_;
  std::optional<Head> head_;
};

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{fields(), made<GlueTask>, score_files};
  return kKind;
}

}  // namespace etc::glue
