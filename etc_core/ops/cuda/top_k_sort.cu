// sort_top_k with Thrust: one stable sort by (list, number), so that among equal numbers the lower row stays first.
#include "etc_core/ops/cuda/top_k_sort.h"

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>

#include <cstring>

#include "etc_core/ops/cuda/thrust_policy.h"

namespace etc::ops::cuda {

namespace {

// A rank that is smaller for numbers that come first: 0 for non-finite numbers, then descending numbers. The bits of
// floats of one sign are ordered like their magnitudes. Those of positive numbers are inverted, since larger numbers
// come first; the sign bit puts negative numbers last.
__host__ __device__ inline std::uint32_t rank_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr std::uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
  if ((bits & kInfinity) == kInfinity) return 0;
  if (bits == kSign) bits = 0;  // -0 equals 0
  return bits & kSign ? bits : ~(bits | kSign);
}

// Key and row of an element before the sort.
struct MakeKey {
  TopKSort args;
  __host__ __device__ void operator()(std::int64_t element) const {
    // The segment that owns the row: the last one that begins at or before it.
    std::int64_t segment = 0, end = args.segments;
    while (end - segment > 1) {
      const std::int64_t middle = (segment + end) / 2;
      (args.offsets.data[middle] <= element / args.cols ? segment : end) = middle;
    }
    // Elements of a segment are laid out list by list: column 0's rows, then column 1's, …
    const std::int64_t begin = args.offsets.data[segment], length = args.offsets.data[segment + 1] - begin;
    const std::int64_t within = element - begin * args.cols, column = within / length, row = within % length;
    const auto list = static_cast<std::uint64_t>(segment * args.cols + column);
    args.keys.data[element] = list << 32 | rank_of(args.z.data[(begin + row) * args.cols + column]);
    args.rows.data[element] = static_cast<std::int32_t>(row);
  }
};

// An entry of the result after the sort.
struct TakeEntry {
  TopKSort args;
  __host__ __device__ void operator()(std::int64_t entry) const {
    const std::int64_t list = entry / args.k, place = entry % args.k;
    const std::int64_t segment = list / args.cols, column = list % args.cols;
    const std::int64_t begin = args.offsets.data[segment], length = args.offsets.data[segment + 1] - begin;
    Ranked ranked;
    if (place < length) {
      ranked.row = args.rows.data[begin * args.cols + column * length + place];
      ranked.value = args.z.data[(begin + ranked.row) * args.cols + column];
    }
    args.top.data[entry] = ranked;
  }
};

}  // namespace

void sort_top_k(const TopKSort& args, void* stream) {
  const thrust::counting_iterator<std::int64_t> zero(0);
  with_thrust("sort_top_k", stream, [&](const auto& on) {
    // keys [T·n]: the list number in the high bits, the rank in the low bits. So one sort keeps the lists separate and
    // orders each of them.
    thrust::for_each_n(on, zero, args.keys.size, MakeKey{args});
    thrust::stable_sort_by_key(on, args.keys.data, args.keys.data + args.keys.size, args.rows.data);
    thrust::for_each_n(on, zero, args.top.size, TakeEntry{args});
  });
}

}  // namespace etc::ops::cuda
