// The largest numbers of runs of rows. Comparisons of two rows, so the order is total and the result unique.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/top_k.h"

namespace etc::ops::cpu {

namespace {

void top_k(const TopK& args) {
  // A list is one column of one segment: z[begin … begin + length) of column list % n.
  parallel_for(args.segments * args.cols, [&](std::int64_t list) {
    const std::int64_t segment = list / args.cols, begin = args.offsets[segment];
    const std::int64_t length = args.offsets[segment + 1] - begin;
    const auto value = [&](std::int32_t row) { return args.z[(begin + row) * args.cols + list % args.cols]; };
    const auto before = [&](std::int32_t a, std::int32_t b) {
      const float x = value(a), y = value(b);
      if (std::isfinite(x) != std::isfinite(y)) return std::isfinite(y);  // nan, inf and -inf first
      return std::isfinite(x) && x != y ? x > y : a < b;
    };
    Scratch scratch;
    auto* const rows = scratch.take<std::int32_t>(length);  // [length] the first k of them in order afterwards
    std::iota(rows, rows + length, 0);
    const std::int64_t kept = std::min(args.k, length);
    std::partial_sort(rows, rows + kept, rows + length, before);
    Ranked* const top = args.top + list * args.k;  // [k]
    for (std::int64_t j = 0; j < args.k; ++j) top[j] = j < kept ? Ranked{rows[j], value(rows[j])} : Ranked{};
  });
}

}  // namespace

// Decides on later sizes.
void register_top_k() {
  fill_slot_computing(top_k_kernel, top_k);
}

}  // namespace etc::ops::cpu
