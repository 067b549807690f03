// The SIMT emulator: runs a kernel written with etc_core/base/cuda/simt.h block by block, a block's threads as fibers,
// and throws Fault at the first operation that is an error on a device, or that works there only by luck:
//
//   barriers     some threads of a block (lanes of a warp) wait at one barrier, others at another, or have ended
//   memory       an access outside its span or tile, or not aligned to its size
//   shared       a read of memory that was not written in this block, or that a pending copy has yet to write
//   races        two threads access one location between barriers and one of them writes (shared memory; global memory
//                only if the write runs first)
//   blocks       two blocks store to one global address, or one reads what another stored in the same launch
//   limits       more than 1,024 threads, grid y or z over 65,535, dynamic shared memory above 48 KB that the kernel
//                has not declared, or above a block's limit
//
// Faults are found in whatever order threads run: a race is detected as a missing barrier, not as a wrong value.
// Not emulated: time, occupancy, bank conflicts, the memory model's fences between blocks.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace etc::simt {

class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::int64_t kSharedWithoutAttribute = 48 * 1024;
inline constexpr std::int64_t kSharedLimit = 163 * 1024;  // of a block on the smallest target device (sm_80)

// Kernels and blocks run since the process started, for tests that check that a kernel ran at all.
struct EmulatorCounts {
  std::int64_t launches = 0, blocks = 0;
};
EmulatorCounts emulator_counts();
// The number of launches of the kernel with this name.
std::int64_t launches_of(const std::string& kernel);

// Sets the total device memory, 1 TiB by default; exceeding it throws OutOfMemory.
void set_memory_capacity(std::int64_t bytes);
std::int64_t memory_in_use();  // device memory used by the whole process

}  // namespace etc::simt
