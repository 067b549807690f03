#include "tasks/openkp/openkp_task.h"

#include <optional>

#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/head.h"
#include "tasks/openkp/prediction_file.h"
#include "tasks/openkp/predictions.h"
#include "tasks/openkp/schema.h"
#include "tasks/openkp/show.h"
#include "tasks/openkp/visual.h"

namespace etc::openkp {

namespace {

void check(bool good, const char* key, const char* expected, const Json& section) {
  if (!good) fail_usage("config", "task.{}: expected {}, got {}", key, expected, json_line(section.at(key)));
}

ScoringOptions scoring_options(const Json& section) {
  constexpr std::int64_t kMostWords = 64;  // the preparation's bound
  ScoringOptions options;
  options.longest_phrase = section.at("kp_max_length");
  options.max_loss = section.at("max_loss");
  options.smoothing_mass = section.at("additive_smoothing_mass");
  options.parity_length = section.at("parity_length");
  check(options.longest_phrase >= 1 && options.longest_phrase <= kMostWords, "kp_max_length", "1 … 64", section);
  check(options.smoothing_mass >= 0, "additive_smoothing_mass", "at least 0", section);
  check(options.parity_length >= 0, "parity_length", "at least 0", section);
  return options;
}

DecodeOptions decode_options(const Json& section) {
  const DecodeOptions options{section.at("max_position_predictions"), section.at("max_kp_predictions")};
  check(options.max_positions >= 1, "max_position_predictions", "at least 1", section);
  check(options.max_phrases >= 1, "max_kp_predictions", "at least 1", section);
  return options;
}

class OpenkpTask final : public Task {
 public:
  OpenkpTask(const Json& section, const EtcConfig& model)
      : model_(model),
        scoring_(scoring_options(section)),
        decode_(decode_options(section)),
        visual_in_global_(section.at("visual_features_in_global")),
        visual_in_text_(section.at("visual_features_in_text")),
        extra_layers_(section.at("extra_dense_feature_layers")),
        global_attention_(section.at("global_attention")) {
    check(extra_layers_ == 0 || extra_layers_ == 1, "extra_dense_feature_layers", "0 or 1", section);
  }

  const data::Schema& schema() const override { return openkp::schema(); }

  EtcInput feed(Examples examples, const std::string& where) const override {
    return openkp::feed(examples, model_, global_attention_, where);
  }

  void add_parameters(ParameterSet& parameters) override {
    if (visual_in_global_ || visual_in_text_) visual_.emplace(model_, extra_layers_ == 1, parameters);
    head_.emplace(model_, scoring_.longest_phrase, parameters);
  }

  void add_to_embeddings(Tape& tape, Examples examples, EtcInput& input) const override {
    if (!visual_) return;
    const Var of_elements = visual_->forward(tape, examples);  // [U, H]
    if (visual_in_global_) input.global_embedding_adder = of_elements;
    if (visual_in_text_) input.long_embedding_adder = spread_segments(tape, of_elements, tokens_of_elements(examples));
  }

  HeadOutput head(Tape& tape, Examples examples, const EtcOutput& states, const EtcInput&,
                  const ForwardOptions&) const override {
    return head_->scores(tape, states.long_states, examples);
  }

  std::vector<std::string> loss_terms() const override { return {"phrases"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    counts[0] += labelled(example.features) ? 1 : 0;
  }

  double loss(Tape& tape, Examples examples, const EtcInput&, HeadOutput& logits,
              std::span<const double> counts) const override {
    if (counts[0] == 0) return 0;
    double sum = 0;
    std::int64_t first = 0;  // of the page's words in the batch
    std::vector<float> gradient;
    for (const data::LoadedExample& loaded : examples) {
      const data::Example& page = loaded.features;
      const std::int64_t words = num_words(page);
      if (labelled(page)) {
        const PhraseClasses classes = classes_of(page, scores_of_page(logits, first, words), scoring_);
        gradient.resize(tape.recording() ? classes.entries.size() : 0);
        sum += loss_of(page, classes, scoring_, 1 / counts[0], gradient);
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          Tensor& dz = logits[static_cast<std::size_t>(classes.scored_by[i] / words)].grad();
          dz.data()[first + classes.scored_by[i] % words] += gradient[i];
        }
      }
      first += words;
    }
    return sum / counts[0];
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    return std::make_unique<OpenkpPredictions>(request, scoring_, decode_);
  }

  std::string show(const data::RecordSlice&, const data::Example& example, const HeadOutput& logits) const override {
    const PhraseClasses classes = classes_of(example, scores_of_page(logits, 0, num_words(example)), scoring_);
    return shown_prediction(example, classes, decode(classes, feed::text(example, "text"), decode_));
  }

 private:
  EtcConfig model_;
  ScoringOptions scoring_;
  DecodeOptions decode_;
  bool visual_in_global_, visual_in_text_;
  std::int64_t extra_layers_;
  bool global_attention_;
  std::optional<VisualEmbedding> visual_;
  std::optional<Head> head_;
};

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const PhraseMap predicted = read_predictions(predictions);
  return evaluate(predicted, read_gold(gold), predictions.string());
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{
      {{"kp_max_length", 5, "words of the longest phrase that is predicted (K)"},
       {"visual_features_in_global", true, "add what an element looks like to its global token"},
       {"visual_features_in_text", true, "and to the tokens of its text"},
       {"extra_dense_feature_layers", 1, "0 or 1 more layer over sizes and places of elements"},
       {"global_attention", true, "false: ablation; nothing travels through global tokens, they only feed the head"},
       {"additive_smoothing_mass", 1e-4, "target mass spread over all phrases of a page"},
       {"parity_length", 0, "count phrases as the published code does for pages padded to this length; 0: real ones"},
       {"max_loss", false, "a phrase's score is the best one of its occurrences (needs first_occurrence in the data)"},
       {"max_position_predictions", 100, "best-scored phrases that are looked at for distinct ones", true},
       {"max_kp_predictions", 5, "most phrases predicted per page", true}},
      [](const Json& section, const EtcConfig& model) -> std::unique_ptr<Task> {
        return std::make_unique<OpenkpTask>(section, model);
      },
      score_files};
  return kKind;
}

}  // namespace etc::openkp
