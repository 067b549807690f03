#include "tasks/openkp/openkp_task.h"

#include <optional>

#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/answer.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/head.h"
#include "tasks/openkp/prediction_file.h"
#include "tasks/openkp/predictions.h"
#include "tasks/openkp/schema.h"
#include "tasks/openkp/show.h"
#include "tasks/openkp/visual.h"

namespace etc::openkp {

namespace {

// The section `task`.
struct Options : ScoringOptions, DecodeOptions {
  bool visual_in_global = true;
  bool visual_in_text = true;
  std::int64_t extra_layers = 1;
  bool global_attention = true;
};

const FieldList<Options>& fields() {
  constexpr double kMostWords = 64;  // the preparation's bound
  static const FieldList<Options> kFields{
      {"kp_max_length",
       &Options::longest_phrase,
       "words of the longest phrase that is predicted (K)",
       {.least = 1, .most = kMostWords}},
      {"visual_features_in_global", &Options::visual_in_global, "add what an element looks like to its global token"},
      {"visual_features_in_text", &Options::visual_in_text, "add what an element looks like to the tokens of its text"},
      {"extra_dense_feature_layers",
       &Options::extra_layers,
       "0 or 1 more layer over sizes and places of elements",
       {.least = 0, .most = 1}},
      {"global_attention", &Options::global_attention,
       "false: ablation; nothing travels through global tokens, they only feed the head"},
      {"additive_smoothing_mass",
       &Options::smoothing_mass,
       "target mass spread over all phrases of a page",
       {.least = 0}},
      {"parity_length",
       &Options::parity_length,
       "count phrases as the published code does for pages padded to this length; 0: real ones",
       {.least = 0}},
      {"max_loss", &Options::max_loss,
       "a phrase's score is the best one of its occurrences (needs first_occurrence in the data)"},
      {"max_position_predictions",
       &Options::max_positions,
       "best-scored phrases that are searched for distinct ones",
       {.least = 1},
       kDecoding},
      {"max_kp_predictions", &Options::max_phrases, "most phrases predicted per page", {.least = 1}, kDecoding},
  };
  return kFields;
}

class OpenkpTask final : public Task {
 public:
  OpenkpTask(const Json& section, const EncoderConfig& model)
      : model_(model), options_(fields().read(section, "config", "task.")) {
    if (options_.visual_in_global) feed::require_global_tokens(model, "task.visual_features_in_global: true");
    if (!options_.global_attention) feed::require_global_tokens(model, "task.global_attention: false");
  }

  const data::Schema& schema() const override { return openkp::schema(); }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return openkp::feed(examples, *model_, options_.global_attention, where);
  }

  void add_parameters(ParameterSet& parameters) override {
    if (options_.visual_in_global || options_.visual_in_text)
      visual_.emplace(*model_, options_.extra_layers == 1, parameters);
    head_.emplace(*model_, options_.longest_phrase, parameters);
  }

  void add_to_embeddings(Tape& tape, Examples examples, EncoderInput& input) const override {
    if (!visual_) return;
    const Var of_elements = visual_->forward(tape, examples);  // [U, H]
    if (options_.visual_in_global) input.global_embedding_adder = of_elements;
    if (options_.visual_in_text)
      input.long_embedding_adder = spread_segments(tape, of_elements, tokens_of_elements(examples));
  }

  HeadOutput head(Tape& tape, Examples examples, const EncoderStates& states, const EncoderInput&,
                  const ForwardOptions&) const override {
    return head_->scores(tape, states.long_states, examples);
  }

  std::vector<std::string> loss_terms() const override { return {"phrases"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    counts[0] += labelled(example.features) ? 1 : 0;
  }

  double loss(Tape& tape, Examples examples, const EncoderInput&, HeadOutput& logits,
              std::span<const double> counts) const override {
    if (counts[0] == 0) return 0;
    double sum = 0;
    std::int64_t first = 0;  // the page's first word in the batch
    std::vector<float> gradient;
    for (const data::LoadedExample& loaded : examples) {
      const data::Example& page = loaded.features;
      const std::int64_t words = num_words(page);
      if (labelled(page)) {
        const PhraseClasses classes = classes_of(page, scores_of_page(logits, first, words), options_);
        gradient.resize(tape.recording() ? classes.entries.size() : 0);
        sum += loss_of(page, classes, options_, 1 / counts[0], gradient);
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
    return std::make_unique<OpenkpPredictions>(request, options_, options_);
  }

  std::unique_ptr<RecordAnswer> start_answer() const override {
    return std::make_unique<OpenkpAnswer>(options_, options_);
  }

  std::string show(const data::RecordSlice&, const data::Example& example, const HeadOutput& logits) const override {
    const PhraseClasses classes = classes_of(example, scores_of_page(logits, 0, num_words(example)), options_);
    return shown_prediction(example, classes, decode(classes, feed::text(example, "text"), options_));
  }

 private:
  ModelConfig model_;
  Options options_;
  std::optional<VisualEmbedding> visual_;
  std::optional<Head> head_;
};

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const PhraseMap predicted = read_predictions(predictions);
  return evaluate(predicted, read_gold(gold), predictions.string());
}

}  // namespace

const TaskKind& task_kind() {
  // The published settings of the base model.
  static const TaskKind kKind{.keys = fields(),
                              .make = made<OpenkpTask>,
                              .score = score_files,
                              .training = {{"batch_size", 64}, {"epochs", 2.0}, {"learning_rate", 5e-5}}};
  return kKind;
}

}  // namespace etc::openkp
