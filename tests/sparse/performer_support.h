// Cases of linear attention, one forward and backward call on any device, and the reference for its gradients.
#pragma once

#include <cmath>

#include "etc_core/base/buffer.h"
#include "sparse/performer.h"
#include "sparse/performer_projection.h"
#include "tests/reference/performer.h"
#include "tests/support/numbers.h"

namespace etc::test {

using Floats = std::vector<float>;
using Lengths = std::vector<std::int64_t>;

struct PerformerCase {
  std::string name;
  Lengths queries, keys;  // of each example
  std::int64_t heads = 2, head_size = 8, features = 20;
  bool causal = false, stabilised = true;
  float magnitude = 1.0f;
  Device device = Device::cpu;  // or a device that reads host memory
  float scale = 0;              // of q·k; 0: 1/sqrt(D)
};

inline Lengths offsets_of(const Lengths& lengths) {
  Lengths offsets(1, 0);
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// The arrays of one forward and backward call. Rows have 3 floats of padding that kernels must not touch.
struct PerformerRun {
  PerformerCase setup;
  Lengths query_offsets, key_offsets;
  Floats q, k, v, dout, projection;
  Floats out, denominators, dq, dk, dv;

  std::int64_t stride() const { return setup.heads * setup.head_size + 3; }
  Floats rows(std::int64_t count, std::uint64_t seed) const {
    return random_floats(count * stride(), seed, setup.magnitude);
  }
  explicit PerformerRun(const PerformerCase& c)
      : setup(c), query_offsets(offsets_of(c.queries)), key_offsets(offsets_of(c.keys)) {
    q = rows(query_offsets.back(), 1);
    k = rows(key_offsets.back(), 2);
    v = rows(key_offsets.back(), 3);
    dout = rows(query_offsets.back(), 4);
    projection.resize(static_cast<std::size_t>(c.features * c.head_size));
    sparse::draw_projection({c.features, c.head_size, sparse::PerformerDraw::Norms::chi, 11}, projection.data());
  }

  sparse::Rows of(const Floats& values, std::int64_t count) const { return {values.data(), stride(), count}; }
  sparse::MutableRows to(Floats& values, std::int64_t count) const {
    values.assign(static_cast<std::size_t>(count * stride()), kGuard);
    return {values.data(), stride(), count};
  }
  sparse::PerformerInputs inputs() const {
    const std::int64_t queries = query_offsets.back(), keys = key_offsets.back();
    return {
        setup.heads,          setup.head_size,    setup.features,    of(q, queries),
        of(k, keys),          of(v, keys),        projection.data(), static_cast<std::int64_t>(setup.queries.size()),
        query_offsets.data(), key_offsets.data(), setup.causal,      setup.stabilised,
        setup.scale};
  }

  void run() {
    const std::int64_t queries = query_offsets.back(), keys = key_offsets.back();
    const sparse::PerformerInputs in = inputs();
    Buffer<float> state(sparse::performer_state_floats(in), Purpose::activations);
    Bytes forward(sparse::performer_forward_scratch_bytes(setup.device, in), Purpose::scratch);
    denominators.assign(static_cast<std::size_t>(setup.heads * queries), kGuard);
    sparse::performer_forward(setup.device, {in, to(out, queries), denominators.data(), state.data(), forward.data()});
    Bytes backward(sparse::performer_backward_scratch_bytes(setup.device, in), Purpose::scratch);
    sparse::performer_backward(
        setup.device, {in, of(out, queries), denominators.data(), state.data(), of(dout, queries), to(dq, queries),
                       to(dk, keys), to(dv, keys), backward.data()});
  }

  // Without the padding.
  std::vector<double> dense(const Floats& values) const {
    std::vector<double> result;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (static_cast<std::int64_t>(i) % stride() < stride() - 3) result.push_back(values[i]);
    }
    return result;
  }
  bool guards_intact() const {
    for (const Floats* values : {&out, &dq, &dk, &dv}) {
      for (std::size_t i = 0; i < values->size(); ++i) {
        if (static_cast<std::int64_t>(i) % stride() >= stride() - 3 && (*values)[i] != kGuard) return false;
      }
    }
    return true;
  }
  reference::Performer reference() const {
    return {setup.heads,   setup.head_size,  setup.features,
            query_offsets, key_offsets,      dense(q),
            dense(k),      dense(v),         {projection.begin(), projection.end()},
            setup.causal,  setup.stabilised, setup.scale};
  }

  static constexpr float kGuard = -12345.0f;
};

inline const std::vector<PerformerCase>& performer_cases() {
  static const std::vector<PerformerCase> cases = {
      {"one token", {1}, {1}, 1, 4, 5},
      {"ragged", {20, 0, 3, 70}, {20, 0, 3, 70}},
      {"ragged, causal", {20, 0, 3, 70}, {20, 0, 3, 70}, 2, 8, 20, true},
      {"another sequence", {5, 9, 0, 4}, {30, 0, 7, 66}},
      {"several chunks", {1100, 30}, {1100, 30}, 1, 6, 10},
      {"several chunks, causal", {1100, 30}, {1100, 30}, 1, 6, 10, true},
      {"D = 1", {40}, {40}, 2, 1, 4},
      {"D = 64", {70}, {70}, 1, 64, 266},
      {"D = 64, causal", {150}, {150}, 1, 64, 266, true},
      {"exact", {40, 9}, {40, 9}, 2, 10, 33, false, false},
      {"exact, causal", {40, 9}, {40, 9}, 2, 10, 33, true, false},
      {"large inputs", {40}, {40}, 1, 8, 16, false, true, 4.0f},
      {"a scale of its own", {40, 9}, {40, 9}, 2, 10, 33, false, true, 1.0f, Device::cpu, 0.15f},
  };
  return cases;
}

// The loss of the reference with one number of q, k or v changed.
inline double loss(const PerformerRun& run, reference::Performer p) {
  const std::vector<double> out = reference::performer(p), dout = run.dense(run.dout);
  double sum = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
  return sum;
}

// Compares some numbers of a gradient with central differences. Returns the largest error relative to the gradient's
// largest number.
inline double worst_difference(const PerformerRun& run, std::vector<double> reference::Performer::*input,
                               const Floats& gradient) {
  const std::vector<double> got = run.dense(gradient);
  double largest = 0.0, worst = 0.0;
  for (const double g : got) largest = std::max(largest, std::fabs(g));
  // In long cases only a few positions, with a stride that is coprime to all sizes.
  const std::size_t step = got.size() > 3000 ? got.size() / 12 * 2 / 2 + 1 : got.size() > 200 ? 37 : 1;
  for (std::size_t i = 0; i < got.size(); i += step) {
    double difference = 0.0;
    for (const double sign : {1.0, -1.0}) {
      reference::Performer p = run.reference();
      (p.*input)[i] += sign * 1e-5;
      difference += sign * loss(run, p);
    }
    const double error = std::fabs(difference / 2e-5 - got[i]);
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst / (largest + 1e-3);
}

}  // namespace etc::test
