// Check of the offsets at which runs of rows begin.
#pragma once

#include <cstdint>

namespace etc::ops {

// Throws Error "where: name: …" if offsets [count+1] decrease anywhere.
void check_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t count);

}  // namespace etc::ops
