#include "tasks/wikihop/wikihop_task.h"

#include <optional>

#include "data/readers/json_record.h"
#include "tasks/feed/batch.h"
#include "tasks/host_logits.h"
#include "tasks/n_best_file.h"
#include "tasks/text/top_scores.h"
#include "tasks/wikihop/answer.h"
#include "tasks/wikihop/decode.h"
#include "tasks/wikihop/feed.h"
#include "tasks/wikihop/head.h"
#include "tasks/wikihop/metrics.h"
#include "tasks/wikihop/schema.h"
#include "tasks/wikihop/show.h"

namespace etc::wikihop {

namespace {

// The section `task`.
struct Options : FeedOptions {
  bool add_final_layer = true;
  double label_smoothing = 0;
};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      {"add_final_layer", &Options::add_final_layer,
       "one more feed-forward block on the global states before the logits"},
      {"label_smoothing",
       &Options::label_smoothing,
       "share of the target spread evenly over the candidates",
       {.least = 0, .below = 1}},
      {"candidate_ignore_hard_g2l", &Options::candidate_ignore_hard_g2l,
       "candidate globals see every long token even with hard g2l"},
      {"query_ignore_hard_g2l", &Options::query_ignore_hard_g2l,
       "query globals see every long token even with hard g2l"},
      {"enable_l2g_linking", &Options::enable_l2g_linking, "mentions of a candidate are labelled as belonging to it"},
      {"flat_sequence", &Options::flat_sequence, "no paragraph structure: one sequence"},
      {"global_attention", &Options::global_attention,
       "false: ablation; nothing travels through global tokens, they only feed the head"},
  };
  return kFields;
}

// The inputs of the loss besides the logits.
struct Targets {
  std::vector<std::uint8_t> candidates;  // [U]
  std::vector<std::int32_t> labels;      // [B]

  Targets(Examples examples, const EncoderInput& input) {
    for (const std::int32_t type : input.global_segment_ids) candidates.push_back(type == kCandidateGlobalType);
    for (const auto& example : examples) labels.push_back(static_cast<std::int32_t>(label_id(example.features)));
  }
};

std::vector<double> losses_of(const Targets& targets, const EncoderInput& input, const Tensor& logits, double smoothing,
                              double denominator, float* dlogits) {
  return candidate_losses({input.global_offsets, logits.data(), targets.candidates, targets.candidates, targets.labels,
                           smoothing, denominator, dlogits});
}

class WikihopPredictions final : public Predictions {
 public:
  WikihopPredictions(const PredictionRequest& request, double label_smoothing)
      : smoothing_(label_smoothing), n_best_(request) {
    if (!request.output.empty()) file_.emplace(request.output);
  }

  void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) override {
    const Tensor z = on_host(logits).at(0).value();  // [U, 1]
    const auto losses = losses_of(Targets(examples, input), input, z, smoothing_, 1, nullptr);
    for (std::size_t b = 0; b < examples.size(); ++b) {
      const data::Example& example = examples[b].features;
      const auto& id = std::get<std::string>(example.at("id"));
      const auto& candidates = std::get<std::vector<std::string>>(example.at("candidates"));
      const std::span<const float> scores(z.data() + input.global_offsets[b], candidates.size());  // [C]
      text::require_finite(scores, id);
      const std::int64_t chosen = best_candidate(scores);
      const std::string answer = normalised_answer(candidates[static_cast<std::size_t>(chosen)]);
      if (file_) file_->add(id, answer);
      if (n_best_.count() > 0) n_best_.add(id, best_answers(scores, candidates));
      const auto& gold = std::get<std::string>(example.at("answer"));
      if (!gold.empty()) accuracy_.add(chosen, label_id(example), answer, gold, losses[b]);
    }
  }

  // It has no entry in the file, and counts as wrong where other records have answers.
  void add_rejected(const data::Fault& fault) override {
    if (fault.id.empty() || fault.code == "duplicate_id" || fault.code == "label_missing") return;
    if (!file_ || !file_->has(fault.id)) accuracy_.add_missing();
  }

  Metrics metrics() const override { return accuracy_.metrics(); }
  void finish() override {
    if (file_) file_->finish();
    n_best_.finish();
  }

 private:
  Json best_answers(std::span<const float> scores, const std::vector<std::string>& candidates) const {
    const std::vector<float> probabilities = text::softmax(scores);
    Json answers = Json::array();
    for (const std::int64_t c : text::largest(scores, n_best_.count())) {
      const auto at = static_cast<std::size_t>(c);
      answers.push_back({{"text", normalised_answer(candidates[at])}, {"score", probabilities[at]}});
    }
    return answers;
  }

  double smoothing_;
  std::optional<PredictionFile> file_;
  NBestFile n_best_;
  Accuracy accuracy_;
};

class WikihopTask final : public Task {
 public:
  WikihopTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")) {
    feed::require_global_tokens(model, "task wikihop, whose candidates are global tokens,");
  }

  const data::Schema& schema() const override { return wikihop::schema(); }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return wikihop::feed(examples, *model_, options_, where);
  }

  void add_parameters(ParameterSet& parameters) override {
    head_.emplace(*model_, options_.add_final_layer, parameters);
  }

  HeadOutput head(Tape& tape, Examples, const EncoderStates& states, const EncoderInput& input,
                  const ForwardOptions& options) const override {
    return {head_->logits(tape, states.global_states, input, options)};
  }

  std::vector<std::string> loss_terms() const override { return {"candidates"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    counts[0] += label_id(example.features) >= 0 ? 1 : 0;
  }

  double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
              std::span<const double> counts) const override {
    const double denominator = counts[0] + kLossEpsilon;
    float* dlogits = tape.recording() ? logits.at(0).grad().data() : nullptr;  // [U, 1]
    double sum = 0;
    for (const double loss : losses_of(Targets(examples, input), input, logits[0].value(), options_.label_smoothing,
                                       denominator, dlogits)) {
      sum += loss;
    }
    return sum / denominator;
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<WikihopPredictions>(request, options_.label_smoothing);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override { return std::make_unique<WikihopAnswer>(); }

  std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                   const HeadOutput& logits) const override {
    return shown_prediction(data::value_of(raw_record), example,
                            {logits.at(0).value().data(), static_cast<std::size_t>(num_candidates(example))});
  }

 private:
  ModelConfig model_;
  Options options_;
  std::optional<Head> head_;
};

}  // namespace

const TaskKind& task_kind() {
  // The published settings of the base model.
  static const TaskKind kKind{
      .keys = fields(), .make = made<WikihopTask>, .score = score_files, .training = {{"weight_decay", 0.1}}};
  return kKind;
}

}  // namespace etc::wikihop
