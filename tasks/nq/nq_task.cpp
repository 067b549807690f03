#include "tasks/nq/nq_task.h"

#include <limits>
#include <numeric>
#include <optional>

#include "data/readers/json_record.h"
#include "etc_core/base/error.h"
#include "tasks/nq/feed.h"
#include "tasks/nq/head.h"
#include "tasks/nq/prediction_file.h"
#include "tasks/nq/predictions.h"
#include "tasks/nq/schema.h"
#include "tasks/nq/show.h"

namespace etc::nq {

namespace {

// The value that a word of the configuration stands for.
template <typename Value>
Value word(const Json& section, const char* key, const std::vector<std::pair<std::string, Value>>& words) {
  const std::string given = section.at(key);
  std::vector<std::string> names;
  for (const auto& [name, value] : words) {
    if (name == given) return value;
    names.push_back(name);
  }
  fail_usage("config", "task.{}: expected one of {}, got {}{}", key, fmt::join(names, ", "), given,
             suggestion(given, names));
}

std::int64_t integer(const Json& section, const char* key, std::int64_t least) {
  const std::int64_t value = section.at(key);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (value < least || value > kMost) {
    fail_usage("config", "task.{}: expected an integer from {} to {}, got {}", key, least, kMost, value);
  }
  return value;
}

DecodeOptions decode_options(const Json& section) {
  DecodeOptions options;
  options.selection = word<SpanSelection>(section, "span_selection",
                                          {{"joint", SpanSelection::joint},
                                           {"disjoint", SpanSelection::disjoint},
                                           {"joint-exhaustive", SpanSelection::joint_exhaustive}});
  options.score = word<ScoreKind>(section, "answer_score",
                                  {{"quotient", ScoreKind::quotient}, {"difference", ScoreKind::difference}});
  options.type_window = word<TypeWindow>(section, "answer_type_window",
                                         {{"last", TypeWindow::last}, {"best_long", TypeWindow::best_long}});
  options.consider_answer_type = section.at("consider_answer_type");
  options.max_short_answer_len = integer(section, "max_short_answer_len", 1);
  return options;
}

std::optional<PositionMask> position_mask(const Json& section) {
  const PositionMask mask{static_cast<std::int32_t>(integer(section, "cls_id", 0)),
                          static_cast<std::int32_t>(integer(section, "sep_id", 0))};
  return section.at("mask_long_output").get<bool>() ? std::optional(mask) : std::nullopt;
}

class NqTask final : public Task {
 public:
  NqTask(const Json& section, const EtcConfig& model)
      : model_(model),
        decode_(decode_options(section)),
        mask_(position_mask(section)),
        global_attention_(section.at("global_attention")) {}

  const data::Schema& schema() const override { return model_schema(); }

  EtcInput feed(Examples examples, const std::string& where) const override {
    return nq::feed(examples, model_, global_attention_, where);
  }

  void add_parameters(ParameterSet& parameters) override { head_.emplace(model_, mask_, parameters); }

  HeadOutput head(Tape& tape, Examples, const EtcOutput& states, const EtcInput& input,
                  const ForwardOptions&) const override {
    return head_->logits(tape, states.long_states, input.long_offsets, input.token_ids);
  }

  std::vector<std::string> loss_terms() const override { return {"windows"}; }

  void count(const data::LoadedExample& /*example*/, std::span<double> counts) const override { counts[0] += 1; }

  double loss(Tape& tape, Examples examples, const EtcInput& input, HeadOutput& logits,
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
    return std::make_unique<DocumentPredictions>(request, decode_);
  }

  std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                   const HeadOutput& logits) const override {
    return shown_prediction(data::value_of(raw_record), example, logits, decode_);
  }

 private:
  EtcConfig model_;
  DecodeOptions decode_;
  std::optional<PositionMask> mask_;
  bool global_attention_;
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
  static const TaskKind kKind{
      {{"mask_long_output", false, "only CLS and the document's pieces may be chosen"},
       {"cls_id", 101, "vocabulary id of CLS, for mask_long_output"},
       {"sep_id", 102, "vocabulary id of the separator, for mask_long_output"},
       {"span_selection", "joint", "how spans are put together: joint, disjoint or joint-exhaustive", true},
       {"answer_score", "quotient", "quotient: of a logit by that of CLS, as published; difference: of the two", true},
       {"answer_type_window", "last",
        "whose answer type counts: last, or best_long, of the window with the best long answer", true},
       {"consider_answer_type", true, "let the answer type turn the short answer into yes or no", true},
       {"max_short_answer_len", 32, "most document tokens of a short answer", true},
       {"global_attention", true, "false: ablation; nothing travels through global tokens"}},
      [](const Json& section, const EtcConfig& model) -> std::unique_ptr<Task> {
        return std::make_unique<NqTask>(section, model);
      },
      score_files};
  return kKind;
}

}  // namespace etc::nq
