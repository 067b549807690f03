// The largest numbers of runs of rows. The order is total, so the result is unique. A list is scanned once with the
// best numbers so far in a heap; vector comparisons skip numbers that are not better than the worst of these.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/top_k_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cmath>
#include <limits>

#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/top_k.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first index from `first` on whose number is above `least` or not finite; `count` if there is none.
// z: numbers `stride` apart.
HWY_INLINE std::int64_t next_above(const float* z, std::int64_t stride, std::int64_t first, std::int64_t count,
                                   float least) {
  std::int64_t i = first;
  if (stride == 1) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto most = hn::Set(d, least), lowest = hn::Set(d, std::numeric_limits<float>::lowest());
    for (; i + lanes <= count; i += lanes) {
      const auto some = hn::LoadU(d, z + i);
      if (!hn::AllTrue(d, hn::And(hn::Le(some, most), hn::Ge(some, lowest)))) break;
    }
  }
  while (i < count && z[i * stride] <= least && z[i * stride] >= std::numeric_limits<float>::lowest()) ++i;
  return i;
}

// The k largest of one list of `count` numbers, z[0], z[stride], …   top [k]
void top_of_list(const float* z, std::int64_t stride, std::int64_t count, std::int64_t k, Ranked* top) {
  const auto before = [](const Ranked& a, const Ranked& b) {
    if (std::isfinite(a.value) != std::isfinite(b.value)) return std::isfinite(b.value);  // nan, inf and -inf first
    return std::isfinite(a.value) && a.value != b.value ? a.value > b.value : a.row < b.row;
  };
  const std::int64_t kept = std::min(k, count);
  for (std::int64_t i = 0; i < kept; ++i) top[i] = {static_cast<std::int32_t>(i), z[i * stride]};
  std::fill(top + kept, top + k, Ranked{});
  std::make_heap(top, top + kept, before);  // the front is the worst of them
  // Once the worst kept number is not finite, no later number can come before it.
  for (std::int64_t i = kept; kept > 0 && std::isfinite(top[0].value); ++i) {
    i = next_above(z, stride, i, count, top[0].value);
    if (i == count) break;
    std::pop_heap(top, top + kept, before);
    top[kept - 1] = {static_cast<std::int32_t>(i), z[i * stride]};
    std::push_heap(top, top + kept, before);
  }
  std::sort_heap(top, top + kept, before);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

void top_k(const TopK& args) {
  // A list is one column of one segment: z[begin … begin + length) of column list % n.
  parallel_for(args.segments * args.cols, [&](std::int64_t list) {
    const std::int64_t segment = list / args.cols, begin = args.offsets[segment];
    ETC_DISPATCH(top_of_list)
    (args.z + begin * args.cols + list % args.cols, args.cols, args.offsets[segment + 1] - begin, args.k,
     args.top + list * args.k);
  });
}

}  // namespace

// Computes in counting mode, too: the result affects the sizes of later calls.
void register_top_k() {
  fill_slot_computing(top_k_kernel, top_k);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
