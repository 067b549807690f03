// Tokens sorted by id, on the device, with Thrust.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"

namespace etc::ops::cuda {

// ids [M] on the device are sorted in place, tokens [M] = the rows they came from, in row order within one id; ids
// outside [0, limit) come last, as `limit`. first [M + 1] = where each distinct id inside begins, then where they end.
// Returns how many distinct ids there are.
std::int64_t sort_ids(const simt::Span<std::int32_t>& ids, std::int64_t limit, const simt::Span<std::int32_t>& tokens,
                      const simt::Span<std::int32_t>& first, void* stream);

}  // namespace etc::ops::cuda
