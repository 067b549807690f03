// Attention layers that carry their scores, and a single attention on concatenated queries and keys, both computed by
// the operator on a tape (relative-positions 9).
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "etc_core/nn/backends.h"
#include "etc_core/nn/blocks/encoder_pass.h"
#include "etc_core/nn/dense_config.h"
#include "sparse/self_attention.h"

namespace etc::test {

// One layer's queries, keys and values: [N, T, d], as in the golden files.
struct LayerHeads {
  std::vector<float> q, k, v;
};

enum class Carry { none, sum, mean };

struct AttentionSizes {
  std::int64_t heads = 0, size = 0;         // N, d
  std::vector<std::int64_t> offsets = {0};  // [B+1] of the T tokens
  const std::uint8_t* labels = nullptr;     // [T, 2n-1] which tokens see which (n: longest example); null: all

  std::int64_t tokens() const { return offsets.back(); }
};

// [N, T, d] of several layers side by side, times `factor`, in the operator's layout: [T, N·width], padded with zeros.
inline Var columns_of(const std::vector<const std::vector<float>*>& parts, const AttentionSizes& sizes,
                      std::int64_t width, float factor) {
  const std::int64_t T = sizes.tokens(), d = sizes.size;
  Tensor columns = Tensor::empty({T, sizes.heads * width}, Purpose::activations);
  std::fill_n(columns.data(), columns.size(), 0.0f);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::int64_t i = 0; i < sizes.heads * T * d; ++i) {
      const std::int64_t head = i / d / T, token = i / d % T, at = static_cast<std::int64_t>(part) * d + i % d;
      columns.data()[(token * sizes.heads + head) * width + at] = factor * (*parts[part])[static_cast<std::size_t>(i)];
    }
  }
  return Var(columns);
}

// The operator's batch with heads of `width`, and its running scores over `layers` layers.
inline std::shared_ptr<AttentionBatch> batch_of(const AttentionSizes& sizes, std::int64_t width, std::int64_t layers,
                                                Carry carry, const ForwardOptions& options) {
  register_cpu_backend();
  DenseConfig config;
  config.num_attention_heads = sizes.heads;
  config.att_size_per_head = width;
  config.num_hidden_layers = layers;
  config.use_residual_attention = carry != Carry::none;
  config.use_running_mean = carry == Carry::mean;
  sparse::SequenceLabels labels;
  labels.examples = std::ssize(sizes.offsets) - 1;
  labels.offsets = sizes.offsets.data();
  labels.radius = sparse::SequenceLabels::kFull;
  labels.labels = sizes.labels;
  auto batch = std::make_shared<AttentionBatch>();
  batch->operators.push_back({sparse::build_self_tiles(labels), false});
  std::vector<std::int64_t> ordinals(sizes.offsets.size() - 1);
  const PassSetting setting{config, Device::cpu, false, ComputeType::fp32, options};
  prepare_attention(*batch, setting, {sparse::kSelf, sparse::kSelfAttention.types[1]}, ordinals);
  return batch;
}

// The columns of each head that hold values: [N, T, count] of [T, N·width].
inline std::vector<float> heads_of(const Tensor& out, const AttentionSizes& sizes, std::int64_t width,
                                   std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < sizes.heads * sizes.tokens() * count; ++i) {
    const std::int64_t head = i / count / sizes.tokens(), token = i / count % sizes.tokens();
    values.push_back(out.data()[(token * sizes.heads + head) * width + i % count]);
  }
  return values;
}

// Runs the operator on these columns; it divides by sqrt(width).
inline Tensor attended(const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, const Var& q, const Var& k,
                       const Var& v) {
  Tape tape(Recording::off);
  const Columns none = {Var(Tensor::empty({0, q.value().cols()}, Purpose::activations)), 0};
  const AttentionInputs inputs{{q, 0}, {{{{k, 0}, {v, 0}}, {none, none}}}, {}};
  return attention(tape, sparse::kSelfAttention, batch, layer, Pass::forward, inputs).value();
}

// Outputs [N, T, d] of every layer, with scores carried from layer to layer.
struct CarriedRun {
  std::vector<std::vector<float>> outputs;
  std::vector<Tensor> scores;  // running scores after each layer, [N, T, 2n-1]; none without carry
};

inline CarriedRun carried(const std::vector<LayerHeads>& layers, const AttentionSizes& sizes, Carry carry) {
  CarriedRun run;
  ForwardOptions options;
  options.watch = [&](std::int64_t, const Tensor&, const Tensor&, const ExternalScores& scores) {
    if (const Tensor self = scores.of("self")) run.scores.push_back(self);
  };
  const std::int64_t d = sizes.size;
  const auto batch = batch_of(sizes, d, std::ssize(layers), carry, options);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerHeads& own = layers[layer];
    const auto columns = [&](const std::vector<float>& x) { return columns_of({&x}, sizes, d, 1); };
    const Tensor out =
        attended(batch, static_cast<std::int64_t>(layer), columns(own.q), columns(own.k), columns(own.v));
    run.outputs.push_back(heads_of(out, sizes, d, d));
    report_layer(options.watch, static_cast<std::int64_t>(layer), {Var(out)}, *batch);
  }
  return run;
}

// The probabilities [N, n, n] of every layer for one sequence: outputs with unit vectors of n components as values, in
// heads that are wide enough for them. Queries are scaled to compensate for the larger divisor.
inline std::vector<std::vector<float>> probabilities(const std::vector<LayerHeads>& layers, AttentionSizes sizes,
                                                     Carry carry) {
  const std::int64_t n = sizes.tokens(), d = sizes.size, width = std::max(n, d);
  const float factor = std::sqrt(static_cast<float>(width) / static_cast<float>(d));
  std::vector<LayerHeads> wide;
  for (const LayerHeads& own : layers) {
    LayerHeads one;
    for (std::int64_t i = 0; i < sizes.heads * n * width; ++i) {
      const std::int64_t row = i / width, column = i % width;
      const auto at = static_cast<std::size_t>(row * d + column);
      one.q.push_back(column < d ? factor * own.q[at] : 0);
      one.k.push_back(column < d ? own.k[at] : 0);
      one.v.push_back(row % n == column ? 1.0f : 0.0f);
    }
    wide.push_back(one);
  }
  sizes.size = width;
  std::vector<std::vector<float>> all;
  for (const std::vector<float>& output : carried(wide, sizes, carry).outputs) {
    std::vector<float>& of_layer = all.emplace_back();
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (static_cast<std::int64_t>(i) % width < n) of_layer.push_back(output[i]);
    }
  }
  return all;
}

// The output [N, T, d] of layer `last` as one attention without carry on the queries and keys of all layers up to it:
// heads of (last + 1)·d, the old scale 1/sqrt(d), for the mean a further 1/(last + 1).
inline std::vector<float> concatenated(const std::vector<LayerHeads>& layers, std::size_t last,
                                       const AttentionSizes& sizes, Carry carry) {
  std::vector<const std::vector<float>*> queries, keys;
  for (std::size_t layer = 0; layer <= last; ++layer) {
    queries.push_back(&layers[layer].q);
    keys.push_back(&layers[layer].k);
  }
  const std::int64_t width = static_cast<std::int64_t>(last + 1) * sizes.size;
  const double count = static_cast<double>(last + 1);
  const double factor = std::sqrt(count) / (carry == Carry::mean ? count : 1);  // the operator divides by sqrt(width)
  const auto batch = batch_of(sizes, width, 1, Carry::none, {});
  const Tensor out = attended(batch, 0, columns_of(queries, sizes, width, static_cast<float>(factor)),
                              columns_of(keys, sizes, width, 1), columns_of({&layers[last].v}, sizes, width, 1));
  return heads_of(out, sizes, width, sizes.size);
}

}  // namespace etc::test
