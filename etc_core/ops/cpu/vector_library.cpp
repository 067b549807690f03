// Highway's version, recorded with a run, because another version may compute exp or tanh with other bits.
#include <hwy/highway.h>

#include "etc_core/ops/library_versions.h"

#include <fmt/format.h>

namespace etc::ops {

std::string vector_library() {
  return fmt::format("Highway {}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

}  // namespace etc::ops
