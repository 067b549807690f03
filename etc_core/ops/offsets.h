// Where runs of rows begin, as operators are given it.
#pragma once

#include <cstdint>

namespace etc::ops {

// Throws Error "where: name: …" unless offsets [count+1] never decrease.
void check_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t count);

}  // namespace etc::ops
