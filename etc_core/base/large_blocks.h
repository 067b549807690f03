// Memory of large buffers: mappings of their own in huge pages, kept when they are freed, for the next buffers: cut where
// a smaller one is asked for, joined with their neighbours when they are freed.
//
// The promise: large buffers in use and kept blocks together never take more than the buffers in use once took at their
// peak. So what the ledger forecasts is what the process takes. (malloc's heap, with blocks of many sizes coming and
// going, grew to 1.25 times the peak of a training step.) Fresh pages are dear, a fault and a cleared page for every
// 4 KB; that is why blocks are kept, and why they are huge pages where the kernel agrees.
#pragma once

#include <cstdint>

namespace etc::large_blocks {

// Smaller buffers are malloc's.
inline constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

// At least 64-byte aligned memory with any contents; null when there is none. Thread-safe, as give().
void* take(std::int64_t bytes);

// Takes back what take(bytes) gave.
void give(void* block, std::int64_t bytes);

// Gives the kept blocks back to the system, and the promise starts anew: for whoever is done with much memory for good.
void release_kept();

struct Report {
  std::int64_t in_use = 0, kept = 0, most_in_use = 0;  // bytes
};
Report report();

}  // namespace etc::large_blocks
