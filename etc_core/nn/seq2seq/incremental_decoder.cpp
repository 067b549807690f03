#include "etc_core/nn/seq2seq/incremental_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "etc_core/base/device_memory.h"
#include "etc_core/base/error.h"
#include "sparse/patterns/causal.h"
#include "sparse/seq2seq_attention.h"

namespace etc {

namespace {

// 0, 1, …, count
std::vector<std::int64_t> one_each(std::size_t count) {
  std::vector<std::int64_t> offsets(count + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

std::shared_ptr<const RaggedRows> rows_of(std::size_t count) {
  std::vector<std::int64_t> ordinals = one_each(count);
  ordinals.pop_back();
  return ragged_rows(one_each(count), ordinals);
}

}  // namespace

IncrementalDecoder::IncrementalDecoder(Seq2SeqDecoder& decoder, const Tensor& encoder_states,
                                       std::vector<std::int64_t> source_offsets)
    : decoder_(decoder), source_offsets_(std::move(source_offsets)) {
  if (encoder_states.rows() != source_offsets_.back()) {
    fail(kDecoderInput, "encoder_states: expected {} rows by source_offsets, got {}", source_offsets_.back(),
         encoder_states.shape_text());
  }
  Tape tape(Recording::off);
  Seq2SeqRun& run = decoder.run();
  const ForwardOptions options;
  const StackPass pass = run.pass({}, rows_of(0), run.setting(tape, options));
  for (std::int64_t layer = 0; layer < decoder.config().num_decoder_layers; ++layer) {
    layers_.push_back({Tensor(), Tensor(), run.cross_keys(tape, Var(encoder_states), layer, pass)});
  }
}

void IncrementalDecoder::check(std::span<const HypothesisStep> hypotheses) const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const auto& [sentence, parent, token] = hypotheses[i];
    if (sentence < last || sentence + 1 >= std::ssize(source_offsets_)) {
      fail(kDecoderInput, "hypothesis {}: sentence: expected {} … {}, got {}", i, last, source_offsets_.size() - 2,
           sentence);
    }
    last = sentence;
    if (parent < -1 || parent >= std::ssize(sentences_)) {
      fail(kDecoderInput, "hypothesis {}: parent: expected -1 … {}, got {}", i, std::ssize(sentences_) - 1, parent);
    }
    if (parent >= 0 && sentences_[static_cast<std::size_t>(parent)] != sentence) {
      fail(kDecoderInput, "hypothesis {}: parent {}: expected one of sentence {}, got one of {}", i, parent, sentence,
           sentences_[static_cast<std::size_t>(parent)]);
    }
  }
}

std::vector<OperatorBatch> IncrementalDecoder::tiles(std::span<const HypothesisStep> hypotheses) const {
  const std::vector<std::int64_t> offsets = one_each(hypotheses.size());
  sparse::CausalSequence causal;
  causal.examples = std::ssize(hypotheses);
  causal.offsets = offsets.data();
  causal.key_offsets = reading_.data();
  causal.op = &sparse::kDecoderSelfAttention;
  std::vector<std::int64_t> of_sentences(source_offsets_.size(), 0);  // [B+1]
  for (const HypothesisStep& hypothesis : hypotheses) ++of_sentences[static_cast<std::size_t>(hypothesis.sentence) + 1];
  std::partial_sum(of_sentences.begin(), of_sentences.end(), of_sentences.begin());
  const sparse::CrossSequences cross{std::ssize(source_offsets_) - 1, of_sentences.data(), source_offsets_.data()};
  std::vector<OperatorBatch> operators;
  operators.push_back({sparse::build_causal_tiles(causal), false});
  operators.push_back({sparse::build_cross_tiles(cross), false});
  return operators;
}

// What each hypothesis has read, its parent's rows and its own new one, in the order of the hypotheses.
Tensor IncrementalDecoder::moved(std::span<const HypothesisStep> hypotheses, const Tensor& read,
                                 const Columns& fresh) const {
  const Tensor& product = fresh.var.value();
  const Device device = product.device();
  const std::int64_t width = decoder_.config().attention_size();
  const Tensor all = Tensor::empty({reading_.back(), width}, Purpose::activations, device);
  const auto copy = [&](float* to, const float* from, std::int64_t rows) {
    copy_bytes(device, to, device, from, rows * width * static_cast<std::int64_t>(sizeof(float)));
  };
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    float* const to = all.data() + reading_[i] * width;
    std::int64_t before = 0;
    if (hypotheses[i].parent >= 0) {
      const auto parent = static_cast<std::size_t>(hypotheses[i].parent);
      before = read_[parent + 1] - read_[parent];
      if (before > 0) copy(to, read.data() + read_[parent] * width, before);
    }
    copy(to + before * width, product.columns(fresh.first) + static_cast<std::int64_t>(i) * product.cols(), 1);
  }
  return all;
}

Tensor IncrementalDecoder::step(std::span<const HypothesisStep> hypotheses) {
  check(hypotheses);
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> positions, sentences;
  reading_ = {0};
  for (const auto& [sentence, parent, token] : hypotheses) {
    const auto at = static_cast<std::size_t>(parent);
    positions.push_back(parent < 0 ? 0 : read_[at + 1] - read_[at]);
    reading_.push_back(reading_.back() + positions.back() + 1);
    ids.push_back(token);
    sentences.push_back(sentence);
  }
  Tape tape(Recording::off);
  const PoolUse pooled(tape);
  Seq2SeqRun& run = decoder_.run();
  const ForwardOptions options;
  StackPass pass = run.pass(tiles(hypotheses), rows_of(hypotheses.size()), run.setting(tape, options));
  pass.keys = [&](Tape&, std::int64_t layer, bool across, const KeyColumns& fresh) -> KeyColumns {
    Cached& own = layers_[static_cast<std::size_t>(layer)];
    if (across) return own.source;
    own.keys = moved(hypotheses, own.keys, fresh.k);
    own.values = moved(hypotheses, own.values, fresh.v);
    return {{Var(own.keys), 0}, {Var(own.values), 0}};
  };
  const Tensor states = run.layers(tape, run.embed(tape, {ids, positions, "target_ids"}, pass), pass, options).value();
  read_ = reading_;
  sentences_ = std::move(sentences);
  return states;
}

std::int64_t IncrementalDecoder::bytes() const {
  std::int64_t numbers = 0;
  for (const Cached& layer : layers_) {
    numbers += layer.source.k.var.value().size();
    if (layer.keys) numbers += layer.keys.size() + layer.values.size();
  }
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace etc
