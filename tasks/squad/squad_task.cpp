#include "tasks/squad/squad_task.h"

#include <limits>
#include <numeric>
#include <optional>

#include "data/readers/json_record.h"
#include "etc_core/base/log.h"
#include "tasks/span/head.h"
#include "tasks/squad/answer.h"
#include "tasks/squad/feed.h"
#include "tasks/squad/head.h"
#include "tasks/squad/prediction_file.h"
#include "tasks/squad/predictions.h"
#include "tasks/squad/schema.h"
#include "tasks/squad/show.h"

namespace etc::squad {

namespace {

// The section `task`.
struct Options : DecodeOptions, feed::SequenceGlobals {};

const FieldList<Options>& fields() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Options> kFields{
      {"version_2", &Options::version_2, "there may be no answer (SQuAD 2.0)", {}, kDecoding},
      {"null_score_diff_threshold",
       &Options::null_score_diff_threshold,
       "version_2: no answer if its score exceeds the best answer's by more than this",
       {},
       kDecoding},
      {"n_best_size",
       &Options::n_best_size,
       "best starts and ends of a window that are paired, and answers listed",
       {.least = 1, .most = kMost},
       kDecoding},
      {"max_answer_length",
       &Options::max_answer_length,
       "most long tokens of an answer",
       {.least = 1, .most = kMost},
       kDecoding},
      feed::tokens_per_block_entry<Options>(),
      feed::block_id_entry<Options>(),
  };
  return kFields;
}

class SquadTask final : public Task {
 public:
  SquadTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")) {}

  const data::Schema& schema() const override { return squad::schema(); }

  bool needs_vocabulary() const override { return true; }
  void use_vocabulary(std::shared_ptr<const data::Tokenizer> vocabulary) override {
    vocabulary_ = std::move(vocabulary);
  }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return squad::feed(examples, *model_, options_, where);
  }

  void add_parameters(ParameterSet& parameters) override {
    head_.emplace(parameters, kHeadPrefix, kEnds, model_->hidden_size);
  }

  HeadOutput head(Tape& tape, Examples, const EncoderStates& states, const EncoderInput&,
                  const ForwardOptions&) const override {
    return {head_->logits(tape, states.long_states)};  // [T, 2]
  }

  std::vector<std::string> loss_terms() const override { return {"windows"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    if (labels_of({&example, 1})[0] >= 0) counts[0] += 1;
  }

  double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
              std::span<const double> counts) const override {
    const std::vector<std::int64_t> labels = labels_of(examples);
    WindowLoss args;
    args.offsets = input.long_offsets;
    args.logits = logits.at(0).value().data();
    args.labels = labels;
    args.denominator = std::max(1.0, counts[0]);  // 0: no window has a target
    if (tape.recording()) args.dlogits = logits[0].grad().data();
    const auto losses = window_losses(args);
    return std::accumulate(losses.begin(), losses.end(), 0.0) / args.denominator;
  }

  bool writes_null_odds() const override { return options_.version_2; }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<QuestionPredictions>(request, options_, vocabulary_);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override {
    return std::make_unique<QuestionAnswer>(options_, vocabulary_);
  }

  std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                   const HeadOutput& logits) const override {
    return shown_prediction(data::value_of(raw_record), example, logits, options_, vocabulary_);
  }

 private:
  ModelConfig model_;
  Options options_;
  std::optional<span::OutputLayer> head_;
  std::shared_ptr<const data::Tokenizer> vocabulary_;
};

void warn_missing(const Json& missing, const std::string& where, const char* what) {
  if (missing.empty()) return;
  log::warn("{}: {} questions have no prediction and {}, first {}", where, missing.size(), what,
            missing[0].get<std::string>());
}

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const PredictionMap predicted = read_predictions(predictions);
  const Gold known = read_gold(gold);
  require_known_ids(predicted, known, predictions.string());
  Json result = evaluate(predicted, known.questions, known.version);
  warn_missing(result.at("missing"), predictions.string(),
               known.version == Version::v1_1 ? "count 0" : "are left out, as the official script does");
  return result;
}

// The official script by default withdraws answers with odds above 1, whatever the scale of the odds.
Json score_with_odds(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                     const std::filesystem::path& null_odds) {
  constexpr double kOfficialThreshold = 1;
  const PredictionMap predicted = read_predictions(predictions);
  const NullOdds odds = read_null_odds(null_odds);
  const Gold known = read_gold(gold);
  require_known_ids(predicted, known, predictions.string());
  Json result = evaluate_with_odds(predicted, known.questions, odds, kOfficialThreshold);
  warn_missing(result.at("missing"), predictions.string(), "are left out, as the official script does");
  return result;
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{fields(), made<SquadTask>, score_files, score_with_odds};
  return kKind;
}

}  // namespace etc::squad
