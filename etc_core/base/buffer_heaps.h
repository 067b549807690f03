// Where buffers lie: small ones on malloc's heap, large ones in mappings of their own (large_blocks.h).
//
// The heap keeps what small buffers once took, while large ones take what they take: the base model's training step
// peaks in the update, when 40 MB of small activations are free but still the process's. So the process takes the peaks
// of both, which may be at different times.
#pragma once

#include <atomic>
#include <cstdint>

namespace etc {

// Part of a ledger (memory_ledger.h). Thread-safe.
class BufferHeaps {
 public:
  // Of one buffer, negative when it is given back.
  void charge(std::int64_t bytes);
  void reset_peaks();

  // What the two peaks since reset_peaks() are in sum.
  std::int64_t sum_of_peaks() const;

  // Holds what the other does, and has its peaks there. Before others use it.
  void start_as(const BufferHeaps& other);

 private:
  struct Heap {
    std::atomic<std::int64_t> held{0}, peak{0};
  };
  Heap small_, large_;
};

}  // namespace etc
