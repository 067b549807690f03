// Computations on a step of 16 queries by 8 keys that both backward kernels share: probabilities and ds. They run the
// same code on the same numbers, so that ds of keys and of queries agree to the last bit.
//
//   forward: p = softmax(c·C), out = sum_j dropout(p)_j v_j; so with dp = dropout'(dout·v)
//     dC (+)= c p (dp - dout·out)
//   forward: s = (q·k + q·rel[label] + rel_bias[label]) / sqrt(D); so ds = dC / sqrt(D)
//   rewind: C = C - s, where s is computed by the same instructions as in forward
#pragma once

#include <cstdint>

#include "sparse/cuda/score_terms.h"

namespace etc::sparse::cuda {

// Statistics of the lane's two rows, lane/4 and lane/4 + 8.
struct RowStatistics {
  float lse[2] = {0.0f, 0.0f};  // base 2; any finite number if the row sees no key
  float delta[2] = {0.0f, 0.0f};
};

// Statistics of 16 queries of a head from first_row on, of which `valid` exist. For missing ones p is 0 with any
// values.
template <typename Params>
ETC_DEVICE RowStatistics load_row_statistics(const Params& p, std::int64_t head, std::int64_t first_row, int valid) {
  RowStatistics rows;
  ETC_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = simt::lane_index() / 4 + 8 * half;
    if (row >= valid) continue;
    const std::int64_t at = head * p.sizes.queries + first_row + row;
    // A query without a visible key has a log-sum-exp of -inf; with any finite value its probabilities are 0.
    const float lse = simt::load(p.lse, at);
    rows.lse[half] = lse == -simt::infinity() ? 0.0f : lse * kLog2E;
    rows.delta[half] = simt::load(p.delta, at);
  }
  return rows;
}

// A step's pairs: type, head, columns, and bit e: whether dropout keeps pair e.
struct StepPairs {
  int type = 0;
  std::int64_t head = 0, column = 0;
  unsigned kept = 15;
};

// Gradients of the four pairs of a lane.
struct StepGradients {
  float weights[4];  // probabilities after dropout
  float ds[4];       // dC / sqrt(D)
};

// Only one of the two kernels may store dC and rewind C; otherwise the other would read partly updated values.
enum class ScoreUse { reads, updates };

// Computes them from the scores s of a step (unused for carried scores that are not rewound) and dp = dout·v.
template <ScoreUse kUse, typename Params>
ETC_DEVICE StepGradients step_gradients(const Params& p, const StepPairs& step, const RowStatistics& rows,
                                        const float (&s)[4], const float (&dp)[4]) {
  StepGradients result;
  const TypeView& type = p.work.types[step.type];
  const ScoreView& scores = p.scores[step.type];
  const bool carried = scores.gradient_mode != ScoreGradientMode::none;
  const unsigned visible = visible_pairs(type, step.column);
  ETC_UNROLL
  for (int e = 0; e < 4; ++e) {
    const bool seen = (visible >> e & 1u) != 0, keep = (step.kept >> e & 1u) != 0;
    const std::int64_t place = score_place(type, step.head, step.column, e);
    std::int32_t running = 0;
    float logit, c = 1.0f;
    if (carried) {
      // p from C, which includes this layer's s; s itself is needed only to rewind.
      running = simt::load(scores.running, place);
      c = scores.logit_scale;
      logit = running_value(running) * (kLog2E * c);
    } else {
      logit = s[e] * kLog2E;
    }
    // Base 2 throughout; lse is at least every logit, so the power is at most 1.
    const float probability = seen ? simt::exp2(logit - rows.lse[e / 2]) : 0.0f;
    result.weights[e] = keep ? probability * p.dropout.kept_scale : 0.0f;
    const float kept_dp = keep ? dp[e] * p.dropout.kept_scale : 0.0f;
    // forward: p = softmax(c·C)
    float dc = seen ? probability * (kept_dp - rows.delta[e / 2]) * c : 0.0f;
    if (scores.gradient_mode == ScoreGradientMode::inner) dc += simt::load(scores.gradient, place);
    if (kUse == ScoreUse::updates && carried) {
      simt::store(scores.gradient, place, dc);
      if (scores.rewind) {
        simt::store(scores.running, place, wrapping_subtract(running, simt::nearest(s[e] * kScoreStepsPerUnit)));
      }
    }
    result.ds[e] = dc * p.sizes.scale;
  }
  return result;
}

// Replaces q·k of a step by s = q·k / sqrt(D) + terms.
template <typename Terms>
ETC_DEVICE void add_terms(const Terms& terms, const TypeView& type, std::int64_t column, float scale, float (&s)[4]) {
  float term[4];
  terms.of_step(type, column, term);
  ETC_UNROLL
  for (int e = 0; e < 4; ++e) s[e] = simt::fma(s[e], scale, term[e]);
}

}  // namespace etc::sparse::cuda
