#include "etc_core/nn/seq2seq/incremental_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "etc_core/base/counting.h"
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
    if (parent < -1 || parent >= rows_.count()) {
      fail(kDecoderInput, "hypothesis {}: parent: expected -1 … {}, got {}", i, rows_.count() - 1, parent);
    }
    if (parent >= 0 && rows_.sentence_of(parent) != sentence) {
      fail(kDecoderInput, "hypothesis {}: parent {}: expected one of sentence {}, got one of {}", i, parent, sentence,
           rows_.sentence_of(parent));
    }
  }
}

std::vector<OperatorBatch> IncrementalDecoder::tiles(std::span<const HypothesisStep> hypotheses,
                                                     const RowPlacement& placement) const {
  // Unused rows between two hypotheses become the keys of an example without queries.
  std::vector<std::int64_t> queries{0}, keys{0};
  std::int64_t longest = 0;
  const auto add = [&](std::int64_t count, std::int64_t end) {
    queries.push_back(queries.back() + count);
    keys.push_back(end);
  };
  for (std::size_t r = 0; r < placement.first.size(); ++r) {
    if (placement.first[r] > keys.back()) add(0, placement.first[r]);
    add(1, placement.first[r] + placement.read[r] + 1);
    longest = std::max(longest, placement.read[r]);
  }
  if (placement.rows > keys.back()) add(0, placement.rows);
  sparse::CausalSequence causal;
  causal.examples = std::ssize(queries) - 1;
  causal.offsets = queries.data();
  causal.key_offsets = keys.data();
  causal.reach = longest;
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

// Copies the cached rows as the placement says and appends the new row of each hypothesis.
void IncrementalDecoder::put(const RowPlacement& placement, const Columns& fresh, Tensor& cache) const {
  const Tensor& product = fresh.var.value();
  const Device device = product.device();
  const std::int64_t width = decoder_.config().attention_size();
  const Tensor before = cache;
  if (placement.elsewhere) cache = Tensor::empty({placement.rows, width}, Purpose::activations, device);
  if (counting()) return;  // reserved pages that are never touched take no memory
  const auto copy = [&](std::int64_t to, const float* from, std::int64_t rows) {
    copy_bytes(device, cache.data() + to * width, device, from,
               rows * width * static_cast<std::int64_t>(sizeof(float)));
  };
  for (const auto& [from, to, rows] : placement.copies) copy(to, before.data() + from * width, rows);
  for (std::size_t r = 0; r < placement.first.size(); ++r) {
    const float* const row = product.columns(fresh.first) + static_cast<std::int64_t>(r) * product.cols();
    copy(placement.first[r] + placement.read[r], row, 1);
  }
}

Tensor IncrementalDecoder::step(std::span<const HypothesisStep> hypotheses) {
  check(hypotheses);
  const RowPlacement placement = rows_.place(hypotheses);
  std::vector<std::int32_t> ids;
  for (const std::int64_t i : placement.order) ids.push_back(hypotheses[static_cast<std::size_t>(i)].token);
  Tape tape(Recording::off);
  const PoolUse pooled(tape);
  Seq2SeqRun& run = decoder_.run();
  const ForwardOptions options;
  StackPass pass = run.pass(tiles(hypotheses, placement), rows_of(hypotheses.size()), run.setting(tape, options));
  pass.keys = [&](Tape&, std::int64_t layer, bool across, const KeyColumns& fresh) -> KeyColumns {
    Cached& own = layers_[static_cast<std::size_t>(layer)];
    if (across) return own.source;
    put(placement, fresh.k, own.keys);
    put(placement, fresh.v, own.values);
    return {{Var(own.keys), 0}, {Var(own.values), 0}};
  };
  const Var x = run.embed(tape, {ids, placement.read, "target_ids"}, pass);
  const Tensor by_slots = run.layers(tape, x, pass, options).value();
  const Device device = by_slots.device();
  const Tensor states = Tensor::empty(by_slots.shape(), Purpose::activations, device);
  const std::int64_t width = states.cols(), bytes = width * static_cast<std::int64_t>(sizeof(float));
  for (std::size_t r = 0; r < placement.order.size(); ++r) {
    copy_bytes(device, states.data() + placement.order[r] * width, device,
               by_slots.data() + static_cast<std::int64_t>(r) * width, bytes);
  }
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
