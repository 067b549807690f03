// Allocator for large buffers. Each buffer is a memory mapping in huge pages. Freed blocks are kept for later buffers:
// they are split for smaller requests and merged with free neighbours, and huge pages of several blocks are moved to adjacent
// addresses for a larger request.
//
// Guarantee: large buffers in use and kept blocks together never take more memory than the buffers in use took at their
// peak. So the process takes what the ledger forecasts. (malloc's heap, with blocks of many sizes allocated and freed,
// grew to 1.25 times the peak of a training step.) New memory is expensive, with a page fault and a cleared page for
// every 4 KB. Therefore blocks are kept, and huge pages are used where the kernel supports them.
#pragma once

#include <cstdint>

namespace etc::large_blocks {

// Smaller buffers are allocated with malloc.
inline constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

// Uninitialised memory with at least 64-byte alignment; null when there is none. Thread-safe, like give().
void* take(std::int64_t bytes);

// Takes back what take(bytes) gave.
void give(void* block, std::int64_t bytes);

// Returns the kept blocks to the system and resets the peak to the memory in use now. For callers that have finished a
// phase with high memory use.
void release_kept();

struct Report {
  std::int64_t in_use = 0, kept = 0, most_in_use = 0;  // bytes
};
Report report();

}  // namespace etc::large_blocks
