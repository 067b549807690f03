#include "tasks/hotpotqa/hotpotqa_task.h"

#include <numeric>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/hotpotqa/answer.h"
#include "tasks/hotpotqa/feed.h"
#include "tasks/hotpotqa/head.h"
#include "tasks/hotpotqa/prediction_file.h"
#include "tasks/hotpotqa/predictions.h"
#include "tasks/hotpotqa/schema.h"
#include "tasks/hotpotqa/show.h"
#include "tasks/span/loss.h"

namespace etc::hotpotqa {

namespace {

// The section `task`.
struct Options : FeedOptions, DecodeOptions {};

const FieldList<Options>& fields() {
  static const FieldList<Options> kFields{
      {"answer_encoding",
       &Options::encoding,
       "span: begin and end of the answer; bio: every token begins, goes on or is outside",
       {{"span", AnswerEncoding::span}, {"bio", AnswerEncoding::bio}}},
      {"flat_sequence", &Options::flat_sequence, "no paragraph structure: one sequence"},
      {"global_attention", &Options::global_attention,
       "false: ablation; nothing travels through global tokens, they only feed the head"},
      {"sf_threshold",
       &Options::sf_threshold,
       "probability from which a sentence is a supporting fact",
       {.least = 0, .most = 1},
       kDecoding},
      {"max_answer_length", &Options::max_answer_length, "most long tokens of an answer", {.least = 1}, kDecoding},
      {"top_positions",
       &Options::top_positions,
       "best begins and ends that are paired to answers",
       {.least = 1},
       kDecoding},
  };
  return kFields;
}

class HotpotqaTask final : public Task {
 public:
  HotpotqaTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")) {
    feed::require_global_tokens(model, "task hotpotqa, whose sentences are global tokens,");
  }

  const data::Schema& schema() const override { return hotpotqa::schema(); }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return hotpotqa::feed(examples, *model_, options_, where);
  }

  void add_parameters(ParameterSet& parameters) override { head_.emplace(*model_, options_.encoding, parameters); }

  HeadOutput head(Tape& tape, Examples, const EncoderStates& states, const EncoderInput& input,
                  const ForwardOptions&) const override {
    return head_->logits(tape, states, input);
  }

  std::vector<std::string> loss_terms() const override { return hotpotqa::loss_terms(options_.encoding); }

  // Every term is a sum over labelled examples, divided by their number.
  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    if (feed::number(example.features, "answer_types") == span::kNoLabel) return;
    for (double& count : counts) count += 1;
  }

  double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
              std::span<const double> counts) const override {
    const Labels labels = labels_of(examples, options_.encoding);
    const auto terms = static_cast<double>(counts.size());
    std::vector<double> scales;  // [terms]; a batch without labels has no loss
    for (const double count : counts) scales.push_back(count > 0 ? 1 / (terms * count) : 0);
    LossArguments args;
    args.encoding = options_.encoding;
    args.long_offsets = input.long_offsets;
    args.global_offsets = input.global_offsets;
    args.labels = &labels;
    args.scales = scales;
    for (std::size_t k = 0; k < logits.size(); ++k) {
      args.logits[k] = logits[k].value().data();
      if (tape.recording()) args.dlogits[k] = logits[k].grad().data();
    }
    const auto values = losses(args);
    double sum = 0;
    for (std::size_t t = 0; t < values.size(); ++t) {
      sum += scales[t] * std::accumulate(values[t].begin(), values[t].end(), 0.0);
    }
    return sum;
  }

  bool needs_vocabulary() const override { return true; }
  void use_vocabulary(std::shared_ptr<const data::Tokenizer> vocabulary) override {
    vocabulary_ = std::move(vocabulary);
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<HotpotqaPredictions>(request, options_, vocabulary_);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override {
    return std::make_unique<HotpotqaAnswer>(options_, vocabulary_);
  }

  std::string show(const data::RecordSlice&, const data::Example& example, const HeadOutput& logits) const override {
    EncoderInput alone;
    alone.long_offsets = {0, std::ssize(feed::numbers(example, "long_token_ids"))};
    alone.global_offsets = {0, std::ssize(feed::numbers(example, "global_token_ids"))};
    const ExampleLogits own = logits_of(logits, alone, 0, options_.encoding);
    return shown_prediction(example, own.views, *vocabulary_, options_);
  }

 private:
  ModelConfig model_;
  Options options_;
  std::optional<Head> head_;
  std::shared_ptr<const data::Tokenizer> vocabulary_;
};

// Warns about ids that one of the two sides lacks; they are counted as the scores count them.
void warn_about(const Json& ids, const std::string& what, const std::string& where) {
  constexpr std::size_t kShown = 10;
  if (ids.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < ids.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + ids[i].get<std::string>();
  if (ids.size() > kShown) text += fmt::format(" and {} more", ids.size() - kShown);
  log::warn("{}: {} {}: {}", where, ids.size(), what, text);
}

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const PredictionSet predicted = read_predictions(predictions);  // first, as the smaller and likelier faulty file
  Json result = evaluate(predicted, read_gold(gold));
  const std::string where = predictions.string();
  warn_about(result.at("missing_answers"), "gold records without an answer, scored 0", where);
  warn_about(result.at("missing_supporting_facts"), "gold records without supporting facts, scored 0", where);
  warn_about(result.at("unknown_ids"), "predictions for records that are not in gold, ignored", where);
  return result;
}

}  // namespace

const TaskKind& task_kind() {
  // The published settings of the base model.
  static const TaskKind kKind{.keys = fields(),
                              .make = made<HotpotqaTask>,
                              .score = score_files,
                              .training = {{"batch_size", 64}, {"epochs", 9.0}, {"learning_rate", 5e-5}}};
  return kKind;
}

}  // namespace etc::hotpotqa
