// The largest numbers of runs of rows on CUDA: sorted on the device; only the k largest are copied to the host.
#include "etc_core/ops/top_k.h"

#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/top_k_sort.h"

namespace etc::ops::cuda {

namespace {

void top_k(const TopK& args) {
  const std::int64_t numbers = args.offsets[args.segments] * args.cols, entries = args.segments * args.cols * args.k;
  const OnDevice<std::int64_t> offsets(args.offsets, args.segments + 1);  // [S+1]
  TopKSort sort{args.segments, args.cols, args.k, offsets.span(), {args.z, numbers}, {}, {}, {}};
  // keys [T·n], rows [T·n] and top [S, n, k] in one block: laid out first without memory to determine the size, then in
  // the block.
  const auto lay_out = [&](void* block) {
    simt::Carver carver(block);
    sort.keys = carver.take<std::uint64_t>(numbers);
    sort.rows = carver.take<std::int32_t>(numbers);
    sort.top = carver.take<Ranked>(entries);
    return carver.used();
  };
  Bytes memory = simt::device_bytes(lay_out(nullptr), Purpose::scratch);
  lay_out(memory.data());
  sort_top_k(sort, simt::stream());
  simt::copy_to_host(args.top, sort.top.data, entries * static_cast<std::int64_t>(sizeof(Ranked)));
}

}  // namespace

void register_top_k() {
  top_k_kernel.fill(Device::cuda, top_k);
}

}  // namespace etc::ops::cuda
