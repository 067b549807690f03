#include "tasks/translation/translation_task.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

#include "etc_core/autograd/vocabulary.h"
#include "etc_core/base/error.h"
#include "etc_core/nn/seq2seq/admin_profile.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/first_batch.h"
#include "tasks/span/pieces.h"
#include "tasks/train/released_model.h"
#include "tasks/translation/bleu_pass.h"
#include "tasks/translation/schema.h"
#include "tasks/translation/score.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

namespace {

const Seq2SeqConfig& decoder_config(const EncoderConfig& model) {
  if (const auto* const config = dynamic_cast<const Seq2SeqConfig*>(&model)) return *config;
  fail_usage("config", "model.kind: task translation trains an encoder-decoder: expected seq2seq, got {}",
             model_kind_of(model.to_json()));
}

// The pieces to predict, concatenated over all examples.
std::vector<std::int32_t> labels_of(Examples examples) {
  std::vector<std::int32_t> labels;
  for (const data::LoadedExample& loaded : examples) {
    feed::append(labels, feed::numbers(loaded.features, "target_ids"));
  }
  return labels;
}

// The decoder's input: </s> y_1 … y_T of each example. </s> is the last label, whatever its id in the vocabulary.
DecoderInput decoder_input(Examples examples, const EncoderInput& source) {
  DecoderInput target{source.long_offsets};
  for (const data::LoadedExample& loaded : examples) {
    const feed::Numbers& ids = feed::numbers(loaded.features, "target_ids");
    target.target_ids.push_back(static_cast<std::int32_t>(ids.back()));
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) target.target_ids.push_back(static_cast<std::int32_t>(ids[i]));
    target.target_offsets.push_back(std::ssize(target.target_ids));
  }
  target.sample_ordinals = source.sample_ordinals;
  return target;
}

// The losses of pieces, with and without label smoothing.
VocabularyResult losses_of(const Var& states, const VocabularyLayer& layer, const std::vector<std::int32_t>& labels,
                           double smoothing) {
  return vocabulary_loss(states.value().to(layer.table->value.device()), layer, labels, smoothing);
}

// Per piece, in bits (translation 6): "nll", and "loss" with label smoothing; and the metrics of span::Perplexity.
class EvaluationPass final : public Predictions {
 public:
  EvaluationPass(const VocabularyLayer& output, double smoothing, std::unique_ptr<BleuPass> bleu)
      : output_(output), smoothing_(smoothing), bleu_(std::move(bleu)) {}

  void add(Examples examples, const EncoderInput& input, const HeadOutput& states) override {
    const std::vector<std::int32_t> labels = labels_of(examples);
    const VocabularyResult result = losses_of(states.at(0), output_, labels, smoothing_);
    perplexity_.add(result, labels);
    const std::vector<double>& losses = smoothing_ > 0 ? result.smoothed : result.losses;
    nats_ += std::accumulate(losses.begin(), losses.end(), 0.0);
    pieces_ += static_cast<double>(labels.size());
    if (bleu_) bleu_->add(examples, input.long_offsets, states.at(1).value());
  }
  Metrics metrics() const override {
    Metrics all = perplexity_.metrics();
    if (!all.empty()) {
      const double loss = nats_ / std::numbers::ln2 / pieces_, nll = perplexity_.bits() / pieces_;
      // Behind the first metric, which chooses the best checkpoint.
      all.insert(all.begin() + 1, {{"loss", loss}, {"nll", nll}});
    }
    if (bleu_) std::ranges::copy(bleu_->metrics(), std::back_inserter(all));
    return all;
  }
  void finish() override {}

 private:
  VocabularyLayer output_;
  const double smoothing_;
  double nats_ = 0, pieces_ = 0;
  span::Perplexity perplexity_;
  std::unique_ptr<BleuPass> bleu_;  // null: no BLEU
};

// The head is the decoder. Its output, a product with the token table, is computed in slices together with the loss.
class TranslationTask final : public Task, public SetsWeightsFromData, public PacksHead {
 public:
  TranslationTask(const Json& section, const EncoderConfig& model)
      : config_(decoder_config(model)), keys_(task_fields().read(section, "config", "task.")) {}

  const data::Schema& schema() const override { return translation::schema(); }

  bool needs_vocabulary() const override { return keys_.bleu_beam > 0; }
  void use_vocabulary(std::shared_ptr<const data::Tokenizer> tokenizer) override {
    const std::int64_t rows = other_table_rows(config_, *tokenizer);
    if (rows > 0) {
      fail_usage("config",
                 "token tables: expected {} rows, one for each piece of the vocabulary, as translating needs, got {} "
                 "(leave vocab_size and target_vocab_size out: --vocab says them)",
                 tokenizer->vocab_size(), rows);
    }
    tokenizer_ = std::move(tokenizer);
  }

  EncoderInput feed(Examples examples, const std::string& where) const override {
    return feed::batch_input(examples, config_, true, [&](EncoderInput& input, const data::Example& example) {
      const feed::Examination examined(example, where);
      if (feed::numbers(example, "target_ids").empty()) {  // a target always has </s>
        fail("feed", "{}: the data set has no labels: expected one prepared with --target", where);
      }
      for (const char* side : {"source_ids", "target_ids"}) {
        examined.length(side);
        examined.token_ids(side, side[0] == 's' ? config_.vocab_size : config_.target_vocabulary());
      }
      const std::int64_t end = feed::numbers(example, "source_ids").back();
      const std::int64_t last = feed::numbers(example, "target_ids").back();
      if (last != end) {
        examined.reject("target_ids", "expected </s> at the end, {} as in source_ids, got {}", end, last);
      }
      feed::append(input.token_ids, feed::numbers(example, "source_ids"));
      return sparse::AttentionStructure();
    });
  }

  void add_parameters(ParameterSet& parameters) override {
    decoder_ = std::make_unique<Seq2SeqDecoder>(config_, parameters);
  }

  void release_head(ComputeType compute) override {
    decoder_->release_kernels(compute);
    rounded_ = compute != ComputeType::fp32;
  }

  HeadOutput head(Tape& tape, Examples examples, const EncoderStates& states, const EncoderInput& input,
                  const ForwardOptions& options) const override {
    HeadOutput all{decoder_->forward(tape, states.long_states, decoder_input(examples, input), options)};  // [T, H]
    if (keys_.bleu_beam > 0 && !options.training) all.push_back(states.long_states);                       // [S, H]
    return all;
  }

  std::vector<std::string> loss_terms() const override { return {"pieces"}; }

  void count(const data::LoadedExample& example, std::span<double> counts) const override {
    counts[0] += static_cast<double>(feed::numbers(example.features, "target_ids").size());
  }

  double loss(Tape& tape, Examples examples, const EncoderInput&, HeadOutput& states,
              std::span<const double> counts) const override {
    return span::piece_loss(tape, states.at(0), decoder_->output(), labels_of(examples), 1 / counts[0],
                            keys_.label_smoothing);
  }

  std::string set_weights(Encoder& encoder, Examples examples, const EncoderInput& input,
                          const ForwardOptions& options) const override {
    if (config_.norm != Seq2SeqConfig::Norm::admin) return "";
    const auto profile = profile_admin(dynamic_cast<Seq2SeqEncoder&>(encoder), *decoder_, input,
                                       decoder_input(examples, input), options);
    return "ADMIN: the numbers on the skips, encoder first:\n" + admin_profile_text(profile);
  }

  std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const override {
    if (!request.output.empty() || !request.n_best_output.empty()) {
      fail_usage("etc predict", "task translation: sentences are translated by `etc translate`");
    }
    auto bleu = keys_.bleu_beam > 0 ? std::make_unique<BleuPass>(*decoder_, tokenizer_, keys_) : nullptr;
    return std::make_unique<EvaluationPass>(output_layer(), keys_.label_smoothing, std::move(bleu));
  }

  // Memory does not depend on the special pieces' ids.
  void count_predictions(Examples examples, const EncoderInput& input, const HeadOutput& states) const override {
    losses_of(states.at(0), output_layer(), labels_of(examples), keys_.label_smoothing);
    if (keys_.bleu_beam == 0) return;
    SearchOptions search;
    search.beam = keys_.bleu_beam;
    std::vector<SearchSentence> sentences;
    for (std::size_t b = 0; b + 1 < input.long_offsets.size(); ++b)
      sentences.push_back({input.long_offsets[b + 1] - input.long_offsets[b], {}});
    searched_translations({*decoder_, states.at(1).value(), input.long_offsets}, sentences, search);
  }

  std::string no_show() const override { return "sentences are translated by `etc translate`"; }
  std::string show(const data::RecordSlice&, const data::Example&, const HeadOutput&) const override {
    fail_usage("etc predict", "--show: {}", no_show());
  }

 private:
  VocabularyLayer output_layer() const { return rounded_ ? decoder_->packed_output() : decoder_->output(); }

  const Seq2SeqConfig config_;
  const TaskKeys keys_;
  std::unique_ptr<Seq2SeqDecoder> decoder_;
  bool rounded_ = false;  // the output layer's weights are packed, as in `etc translate`
  std::shared_ptr<const data::Tokenizer> tokenizer_;
};

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{
      .keys = task_fields(),
      .make = made<TranslationTask>,
      .score = [](const std::filesystem::path& predictions,
                  const std::vector<std::filesystem::path>& gold) { return score_files(predictions, gold, {}); },
      .score_with = score_files};
  return kKind;
}

}  // namespace etc::translation
