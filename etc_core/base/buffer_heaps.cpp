#include "etc_core/base/buffer_heaps.h"

#include <atomic>

#include "etc_core/base/large_blocks.h"

namespace etc::buffer_heaps {

namespace {

struct Heap {
  std::atomic<std::int64_t> held{0}, peak{0};
};
Heap g_small, g_large;

}  // namespace

void charge(std::int64_t bytes) {
  const std::int64_t size = bytes < 0 ? -bytes : bytes;
  Heap& heap = size < large_blocks::kLeastBytes ? g_small : g_large;
  const std::int64_t held = heap.held.fetch_add(bytes) + bytes;
  std::int64_t peak = heap.peak.load(std::memory_order_relaxed);
  while (held > peak && !heap.peak.compare_exchange_weak(peak, held)) continue;
}

void reset_peaks() {
  for (Heap* heap : {&g_small, &g_large}) heap->peak.store(heap->held.load());
}

std::int64_t sum_of_peaks() {
  return g_small.peak.load() + g_large.peak.load();
}

}  // namespace etc::buffer_heaps
