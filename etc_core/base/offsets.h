// Checks of the offsets at which runs of rows begin: run i owns rows offsets[i] … offsets[i+1]-1.
#pragma once

#include <cstdint>

namespace etc {

// Throws Error "where: name: …" if offsets [count+1] decrease anywhere.
void check_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t count);

// The same for the offsets [B+1] of a batch's examples; also if they are null or do not start at 0.
void check_batch_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t examples);

}  // namespace etc
