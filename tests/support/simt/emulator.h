// The SIMT emulator: runs a kernel written with etc_core/base/cuda/simt.h block by block, a block's threads as fibers,
// and throws Fault at the first thing no device forgives, or forgives only by luck:
//
//   barriers     some threads of a block (lanes of a warp) wait at one barrier, others at another, or have ended
//   memory       an access outside its span or tile, or not aligned to its size
//   shared       a read of memory nobody has written in this block, or that a copy under way has yet to write
//   races        two threads touch one place between barriers and one of them writes (shared memory; global memory
//                where the write comes first)
//   blocks       two blocks store to one global address, or one reads what another has stored in the same launch
//   limits       more than 1,024 threads, grid y or z over 65,535, dynamic shared memory above 48 KB that the kernel
//                has not declared, or above what a block may have
//
// A fault is found whatever the order in which threads run: a race is the absence of a barrier, not a wrong value.
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
inline constexpr std::int64_t kSharedLimit = 163 * 1024;  // of a block on the smallest device we compile for (sm_80)

// Kernels and blocks run since the process started, for tests that must know a kernel was run at all.
struct EmulatorCounts {
  std::int64_t launches = 0, blocks = 0;
};
EmulatorCounts emulator_counts();
// Launches of kernels of this name among them.
std::int64_t launches_of(const std::string& kernel);

// Device memory there is in all; more is an OutOfMemory. 1 TiB unless set.
void set_memory_capacity(std::int64_t bytes);
std::int64_t memory_in_use();  // of it, by the whole process

}  // namespace etc::simt
