// Sorts tokens by id on the device, with Thrust.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"

namespace etc::ops::cuda {

// Sorts ids [M] on the device in place; tokens [M] = their original rows, in row order within one id. Ids outside [0,
// limit) come last, as `limit`. first [M + 1] = the start of each distinct id within [0, limit), then the end of the
// last one. Returns the number of these distinct ids.
std::int64_t sort_ids(const simt::Span<std::int32_t>& ids, std::int64_t limit, const simt::Span<std::int32_t>& tokens,
                      const simt::Span<std::int32_t>& first, void* stream);

}  // namespace etc::ops::cuda
