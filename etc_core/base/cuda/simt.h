// The interface for writing kernels: the only header through which they access threads, memory and tensor cores.
//
// The same kernel text is compiled twice: by nvcc for devices (simt_device.h), and by any C++17 compiler against the
// emulator of tests/support/simt (simt_host.h), which checks every access. So a kernel touches memory only through
// these functions:
//
//   thread_index, lane_index, warp_index, block_x/y        position of the thread
//   sync_block, sync_warp                                  barriers
//   shuffle, shuffle_xor, any, all                         exchange within a warp
//   load, store, raise                                     global memory (raise: integer maximum, in any order)
//   SharedTile, SharedArena                                shared memory
//   copy_async, copy_async_commit, copy_async_wait<N>      global to shared; data are visible after the wait
//   load_matrix, load_matrix_transposed, mma               tensor-core tiles: ldmatrix x4, m16n8k16 bf16 -> fp32
//   pack_bf16, fma, multiply, add, exp2, nearest, …        arithmetic
//   launch<Kernel>(grid, params, stream)                   instead of <<<>>>
//
// A kernel is a struct with `Params`, `name()`, a static `run(const Params&)` and the block properties of BlockOf.
#pragma once

#ifdef __CUDACC__
#include "etc_core/base/cuda/simt_device.h"
#else
#include "etc_core/base/cuda/simt_host.h"
#endif

namespace etc::simt {

// Properties of a kernel's blocks: the number of threads, and the maximum bytes of dynamic shared memory, if the kernel
// may need more than every device has.
template <int kBlockThreads, std::int64_t kMaxSharedBytes = 0>
struct BlockOf {
  static constexpr int kThreads = kBlockThreads;
  static constexpr std::int64_t kMaxShared = kMaxSharedBytes;
};

}  // namespace etc::simt
