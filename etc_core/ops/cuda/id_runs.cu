// sort_ids with Thrust: on the device in programs, on Thrust's OpenMP system in tests. Integers only, because
// floating-point sums by Thrust depend on the device.
#include "etc_core/ops/cuda/id_runs.h"

#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include "etc_core/ops/cuda/thrust_policy.h"

namespace etc::ops::cuda {

namespace {

// Negative ids and those from `limit` on become `limit`.
struct Clamp {
  std::int32_t limit;
  __host__ __device__ std::int32_t operator()(std::int32_t id) const { return id < 0 || id > limit ? limit : id; }
};

// Whether a distinct id begins at sorted position i.
struct Begins {
  const std::int32_t* ids;
  __host__ __device__ bool operator()(std::int32_t i) const { return i == 0 || ids[i] != ids[i - 1]; }
};

}  // namespace

std::int64_t sort_ids(const simt::Span<std::int32_t>& ids, std::int64_t limit, const simt::Span<std::int32_t>& tokens,
                      const simt::Span<std::int32_t>& first, void* stream) {
  return with_thrust("sort_ids", stream, [&](const auto& on) {
    // ids [M], tokens [M], first [M + 1]:
    //   1. ids outside [0, limit) become `limit`, so that they come last and one search finds where they begin
    //   2. a stable sort by id permutes the row numbers 0 … M-1, which stay in order within an id
    //   3. a distinct id begins at every position whose id differs from the one before it
    std::int32_t* const end = ids.data + ids.size;
    const auto most = static_cast<std::int32_t>(limit);
    thrust::transform(on, ids.data, end, ids.data, Clamp{most});
    thrust::sequence(on, tokens.data, tokens.data + tokens.size);
    thrust::stable_sort_by_key(on, ids.data, end, tokens.data);
    const auto kept = static_cast<std::int32_t>(thrust::lower_bound(on, ids.data, end, most) - ids.data);
    const thrust::counting_iterator<std::int32_t> zero(0);
    std::int32_t* const last = thrust::copy_if(on, zero, zero + kept, first.data, Begins{ids.data});
    thrust::sequence(on, last, last + 1, kept);  // one element: where the last id ends
    return static_cast<std::int64_t>(last - first.data);
  });
}

}  // namespace etc::ops::cuda
