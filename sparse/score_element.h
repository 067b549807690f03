// The number types of running scores. All code that stores, adds or reads C uses these types.
//
// ScoreElement: 32-bit fixed point with step 2^-20. Sums and differences are exact, so rewinding C layer by layer in
// backward (C = C - s) restores every layer's C to the last bit, and recomputation equals the first pass. RESULTS.md
// compares it with fp32. The range is limited: |s| or |C| above kScoreLimit at a visible pair is an Error; at masked
// pairs the integer may wrap.
//
// HalfScore: IEEE binary16, for inference with half the memory (CPU). Inference never rewinds, so sums need not be
// exact: C + s is computed in fp32, the logits use this sum, and the value stored for the next layer is rounded to
// nearest even. With |C| <= kScoreLimit each rounding error is at most 2^-11 |C|, or 2^-25 near 0.
#pragma once

#include <cstdint>

namespace etc::sparse {

using ScoreElement = std::int32_t;

using HalfScore = std::uint16_t;

// About 1e-6; half of it is the largest rounding error of one layer's score.
inline constexpr float kScoreStep = 0x1p-20f;
inline constexpr float kScoreStepsPerUnit = 0x1p20f;
inline constexpr float kScoreLimit = 1024.0f;

inline float score_to_float(ScoreElement element) {
  return static_cast<float>(element) * kScoreStep;
}

}  // namespace etc::sparse
