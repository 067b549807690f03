#include "etc_core/base/buffer_heaps.h"

#include "etc_core/base/large_blocks.h"

namespace etc {

void BufferHeaps::charge(std::int64_t bytes) {
  const std::int64_t size = bytes < 0 ? -bytes : bytes;
  Heap& heap = size < large_blocks::kLeastBytes ? small_ : large_;
  const std::int64_t held = heap.held.fetch_add(bytes) + bytes;
  std::int64_t peak = heap.peak.load(std::memory_order_relaxed);
  while (held > peak && !heap.peak.compare_exchange_weak(peak, held)) continue;
}

void BufferHeaps::reset_peaks() {
  for (Heap* heap : {&small_, &large_}) heap->peak.store(heap->held.load());
}

std::int64_t BufferHeaps::sum_of_peaks() const {
  return small_.peak.load() + large_.peak.load();
}

void BufferHeaps::start_as(const BufferHeaps& other) {
  small_.held.store(other.small_.held.load());
  large_.held.store(other.large_.held.load());
  reset_peaks();
}

}  // namespace etc
