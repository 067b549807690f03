// Dropout of hidden states, and residual sums through it (etc-core 6.1, 6.4).
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"
#include "etc_core/base/random.h"

namespace etc::ops {

// Defines the random numbers that a ragged [M, H] block of hidden states draws. Element (token t of example b, column
// c) is kept iff word (0, t, c) of stream dropout_key(seed, sample_ordinals[b], layer, site) is >=
// dropout_threshold(rate), and is then multiplied by 1/(1-rate). The mask is a pure function of these members: backward
// calls and recomputation pass the same values, so no mask is stored. Both arrays lie on the host.
struct HiddenDropout {
  float rate = 0;          // in [0, 1); 0: identity, no other member is read
  std::uint64_t seed = 0;  // of the run
  std::uint32_t layer = 0;
  DropoutSite site = DropoutSite::head;
  std::int64_t examples = 0;              // B
  const std::int64_t* offsets = nullptr;  // [B+1] example b owns rows offsets[b] … offsets[b+1]-1; offsets[B] = M
  const std::uint64_t* sample_ordinals = nullptr;  // [B] ordinal of each sample in the run
};

// Residual sum, or dropout alone.
//   y = base + dropout(a)        base null: y = dropout(a)
//   a, base, y   [M, H] without gaps, on the device; y may be a or base itself
// With base = y the call accumulates (y += dropout(a)). The backward is the same call: da = dropout(dy).
// Rules: same bits alone or in a batch and for any thread count. Cost: O(M*H), one Philox call per 4 elements.
struct DropoutAdd {
  std::int64_t rows = 0, cols = 0;
  const float* a = nullptr;
  const float* base = nullptr;
  float* y = nullptr;
  HiddenDropout dropout = {};
};
void dropout_add(Device device, const DropoutAdd& args);

// Throws Error when rate, offsets or counts are invalid; `where` names the operator.
void check_dropout(const char* where, const HiddenDropout& dropout, std::int64_t rows);

extern KernelSlot<void(const DropoutAdd&)> dropout_add_kernel;

}  // namespace etc::ops
