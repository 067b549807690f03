// Memory aligned to cache lines, as kernels receive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "etc_core/base/not_copied.h"

namespace etc::test {

struct Bytes64 : NotCopied {
  explicit Bytes64(std::int64_t size)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>((size + 63) / 64 * 64)))) {}
  ~Bytes64() { std::free(bytes); }
  std::byte* bytes;
};

}  // namespace etc::test
