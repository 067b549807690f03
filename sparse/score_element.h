// The number type of running scores, behind one door: everything that stores, adds or reads C goes through here.
//
// Fixed point with step 2^-20 in 32 bits. Sums and differences are exact, so walking C back layer by layer in backward
// (C = C - s) gives every layer's C to the last bit, and recomputation equals the first pass. fp32 was measured beside
// it, see README.md. The price is a range: |s| and |C| may not exceed kScoreLimit at a visible pair (an Error); at
// masked pairs the integer may wrap.
#pragma once

#include <cstdint>

namespace etc::sparse {

using ScoreElement = std::int32_t;

// About 1e-6: half of it is the largest error a score of one layer can get by rounding.
inline constexpr float kScoreStep = 0x1p-20f;
inline constexpr float kScoreStepsPerUnit = 0x1p20f;
inline constexpr float kScoreLimit = 1024.0f;

inline float score_to_float(ScoreElement element) {
  return static_cast<float>(element) * kScoreStep;
}

}  // namespace etc::sparse
