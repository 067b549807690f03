// Counts buffers by where they are allocated: small ones on malloc's heap, large ones as memory mappings
// (large_blocks.h).
//
// malloc's heap does not shrink when small buffers are freed. For example, the base model's training step peaks in the
// update, when 40 MB of small activations are free but still belong to the process. The process therefore needs the sum
// of both peaks, even if they occur at different times.
#pragma once

#include <atomic>
#include <cstdint>

namespace etc {

// Part of a ledger (memory_ledger.h). Thread-safe.
class BufferHeaps {
 public:
  // Counts one buffer; negative when it is freed.
  void charge(std::int64_t bytes);
  void reset_peaks();

  // The sum of the two peaks since reset_peaks().
  std::int64_t sum_of_peaks() const;

  // Starts with the other object's current bytes, which also become the peaks. Must be called before any other use.
  void start_as(const BufferHeaps& other);

 private:
  struct Heap {
    std::atomic<std::int64_t> held{0}, peak{0};
  };
  Heap small_, large_;
};

}  // namespace etc
