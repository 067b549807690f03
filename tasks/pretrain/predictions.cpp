#include "tasks/pretrain/predictions.h"

#include <algorithm>
#include <cmath>

#include "tasks/feed/features.h"
#include "tasks/pretrain/loss.h"
#include "tasks/span/loss.h"
#include "tasks/text/json_field.h"
#include "tasks/text/shown_piece.h"

namespace etc::pretrain {

namespace {

using feed::numbers;

// The input of the product with the token table, on the table's device.
Tensor transformed(const HeadOutput& outputs, const Head& head) {
  return outputs.at(kTransformed).value().to(head.vocabulary().table->value.device());
}

// The probability of the first of two logits on the host.
double probability_of_first(const float* logits) {
  return 1 / (1 + std::exp(static_cast<double>(logits[1]) - static_cast<double>(logits[0])));
}

}  // namespace

PretrainPredictions::PretrainPredictions(const PredictionRequest& request, const Predictor& predictor)
    : predictor_(predictor), n_best_(request) {
  if (!request.output.empty()) file_.emplace(request.output);
}

void PretrainPredictions::add(Examples examples, const EncoderInput&, const HeadOutput& outputs) {
  const Batch batch = batch_of(examples, predictor_.options, predictor_.pieces);
  const Tensor rows = transformed(outputs, predictor_.head);  // [P, E_w]
  const VocabularyResult result = vocabulary_loss(rows, predictor_.head.vocabulary(), batch.labels);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    sums_.masked.add(result.best[i] == batch.labels[i], result.losses[i]);
  }
  if (predictor_.options.nsp()) add_next_sentences(examples, outputs);
  if (predictor_.options.cpc()) add_hidden_sentences(outputs);
  if (file_) write(examples, batch, result, outputs);
  if (n_best_.count() > 0) write_n_best(examples, batch, rows);
}

void PretrainPredictions::add_next_sentences(Examples examples, const HeadOutput& outputs) {
  const Tensor logits = outputs.at(kNextSentence).value().to(Device::cpu);  // [B, 2]
  std::vector<std::int64_t> labels;
  for (const data::LoadedExample& loaded : examples) {
    labels.push_back(feed::number(loaded.features, "next_sentence_label"));
  }
  const std::vector<double> losses = span::class_losses({logits.data(), 2, labels});
  for (std::size_t b = 0; b < labels.size(); ++b) {
    const float* row = logits.data() + 2 * b;
    sums_.next_sentence.add((row[1] > row[0] ? 1 : 0) == labels[b], losses[b]);
  }
}

void PretrainPredictions::add_hidden_sentences(const HeadOutput& outputs) {
  const Tensor predicted = outputs.at(kPredicted).value().to(Device::cpu);  // [m, H]
  const Tensor target = outputs.at(kTarget).value().to(Device::cpu);        // [m, H]
  const std::int64_t m = predicted.rows();
  if (m < 2) return;  // nothing to choose from
  CpcLoss args{.sentences = m, .width = predicted.cols(), .predicted = predicted.data(), .target = target.data()};
  args.similarity = predictor_.options.cpc_similarity;
  args.temperature = predictor_.options.temperature();
  const CpcResult result = cpc_loss(args);
  for (std::size_t i = 0; i < result.losses.size(); ++i) {
    sums_.hidden_sentence.add(result.own_is_best[i], result.losses[i]);
  }
  sums_.sentence_choices += m * m;
}

void PretrainPredictions::write(Examples examples, const Batch& batch, const VocabularyResult& result,
                                const HeadOutput& outputs) {
  const data::Tokenizer& vocabulary = *predictor_.vocabulary;
  const bool nsp = predictor_.options.nsp();
  const Tensor follows = nsp ? outputs.at(kNextSentence).value().to(Device::cpu) : Tensor();  // [B, 2]
  std::size_t row = 0;  // index among the batch's masked positions
  for (std::size_t b = 0; b < examples.size(); ++b) {
    Json masked = Json::array();
    for (const std::int64_t position : batch.masks[b].positions) {
      masked.push_back({{"position", position},
                        {"label", vocabulary.piece(batch.labels[row])},
                        {"predicted", text::shown_piece(vocabulary, result.best[row])},
                        {"probability", std::exp(result.best_log_p[row])}});
      ++row;
    }
    Json line = {{"id", feed::text(examples[b].features, "id")}, {"masked", std::move(masked)}};
    if (nsp) line["follows"] = probability_of_first(follows.data() + 2 * b);
    file_->write(text::one_line(line) + "\n");
  }
}

void PretrainPredictions::write_n_best(Examples examples, const Batch& batch, const Tensor& rows) {
  const VocabularyLayer& layer = predictor_.head.vocabulary();
  const std::int64_t count = std::min(n_best_.count(), layer.table->shape[0]);
  const auto choices = vocabulary_choices(rows, layer, count);
  auto row = choices.begin();
  for (std::size_t b = 0; b < examples.size(); ++b) {
    Json answers = Json::array();
    for (std::size_t i = 0; i < batch.masks[b].positions.size(); ++i, ++row) {
      Json& of_position = answers.emplace_back(Json::array());
      for (const VocabularyChoice& choice : *row) {
        of_position.push_back(
            {{"piece", text::shown_piece(*predictor_.vocabulary, choice.id)}, {"probability", choice.probability}});
      }
    }
    n_best_.add(feed::text(examples[b].features, "id"), answers);
  }
}

void PretrainPredictions::finish() {
  if (file_) file_->finish();
  n_best_.finish();
}

namespace {

constexpr std::int64_t kContext = 8;  // pieces before and behind a masked one

// The pieces around a position, which is in double brackets; other masked pieces are shown as the model saw them.
std::string passage(const std::vector<std::int64_t>& seen, std::int64_t position, const data::Tokenizer& vocabulary,
                    const std::string& label) {
  const std::int64_t begin = std::max<std::int64_t>(0, position - kContext);
  const std::int64_t end = std::min(std::ssize(seen), position + kContext + 1);
  std::string text = begin > 0 ? "…" : "";
  for (std::int64_t i = begin; i < end; ++i) {
    text += text.empty() ? "" : " ";
    text += i == position ? "[[" + label + "]]"
                          : vocabulary.piece(static_cast<std::int32_t>(seen[static_cast<std::size_t>(i)]));
  }
  return text + (end < std::ssize(seen) ? " …" : "");
}

}  // namespace

std::string shown_prediction(const data::LoadedExample& example, const Predictor& predictor,
                             const HeadOutput& outputs) {
  constexpr std::int64_t kShown = 3;
  const Batch batch = batch_of({&example, 1}, predictor.options, predictor.pieces);
  const VocabularyLayer& layer = predictor.head.vocabulary();
  const auto choices =
      vocabulary_choices(transformed(outputs, predictor.head), layer, std::min(kShown, layer.table->shape[0]));
  const Masks& masks = batch.masks.front();
  std::vector<std::int64_t> seen = numbers(example.features, "long_token_ids");
  for (std::size_t i = 0; i < masks.positions.size(); ++i) {
    seen[static_cast<std::size_t>(masks.positions[i])] = masks.input_ids[i];
  }
  std::string shown = feed::text(example.features, "id") + "\n";
  for (std::size_t i = 0; i < masks.positions.size(); ++i) {
    shown += fmt::format("  {}\n", passage(seen, masks.positions[i], *predictor.vocabulary,
                                           predictor.vocabulary->piece(batch.labels[i])));
    for (const VocabularyChoice& choice : choices[i]) {
      shown += fmt::format("  {:6.2f} %  {}{}\n", 100 * choice.probability,
                           text::shown_piece(*predictor.vocabulary, choice.id),
                           choice.id == batch.labels[i] ? "  <- as it was" : "");
    }
  }
  if (!predictor.options.nsp()) return shown;
  const Tensor follows = outputs.at(kNextSentence).value().to(Device::cpu);  // [1, 2]
  const bool random = feed::number(example.features, "next_sentence_label") == 1;
  return shown + fmt::format("  the second text follows the first: {:.2f} %  <- {}\n",
                             100 * probability_of_first(follows.data()), random ? "it is a random one" : "it does");
}

}  // namespace etc::pretrain
