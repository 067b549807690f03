// The number types of running scores, behind one door: everything that stores, adds or reads C goes through here.
//
// ScoreElement: fixed point with step 2^-20 in 32 bits. Sums and differences are exact, so walking C back layer by layer in backward
// (C = C - s) gives every layer's C to the last bit, and recomputation equals the first pass. fp32 was measured beside
// it, see README.md. The price is a range: |s| and |C| may not exceed kScoreLimit at a visible pair (an Error); at
// masked pairs the integer may wrap.
//
// HalfScore: IEEE binary16, for an inference that asks for half the memory (CPU). Nothing walks back, so sums need not be
// exact: C + s is computed in fp32, logits are made of it, and what the next layer reads is rounded to nearest even. With
// |C| <= kScoreLimit each rounding is off by at most 2^-11 |C|, or 2^-25 near 0.
#pragma once

#include <cstdint>

namespace etc::sparse {

using ScoreElement = std::int32_t;

using HalfScore = std::uint16_t;

// About 1e-6: half of it is the largest error a score of one layer can get by rounding.
inline constexpr float kScoreStep = 0x1p-20f;
inline constexpr float kScoreStepsPerUnit = 0x1p20f;
inline constexpr float kScoreLimit = 1024.0f;

inline float score_to_float(ScoreElement element) {
  return static_cast<float>(element) * kScoreStep;
}

}  // namespace etc::sparse
