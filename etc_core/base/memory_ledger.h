// Counts every byte the engine allocates, by purpose.
//
// One process-wide ledger; counters are atomic integers, so any thread may charge it. A thread in counting mode has a
// ledger of its own (ThreadLedger), and the process's ledger is not charged. The peak of the total is kept together
// with the split by purpose at that moment (exact when one thread allocates at a time, which is how the trainer works;
// otherwise the split is a close approximation).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace etc {

enum class Purpose : int { weights, gradients, moments, activations, scores, labels, scratch, data };
inline constexpr int kPurposeCount = 8;

const char* purpose_name(Purpose purpose);

struct MemoryReport {
  std::array<std::int64_t, kPurposeCount> current{};  // bytes held now
  std::array<std::int64_t, kPurposeCount> at_peak{};  // bytes held when the total was largest
  std::int64_t total = 0;
  std::int64_t peak = 0;
};

namespace memory_ledger {

void charge(Purpose purpose, std::int64_t bytes);  // negative: given back
MemoryReport report();
void reset_peak();  // the peak restarts at what is held now

// One line per purpose with bytes now and at the peak, for logs and for out-of-memory messages.
std::string table();

// The sum of the peaks of small and of large buffers (buffer_heaps.h) since reset_peak().
std::int64_t sum_of_heap_peaks();

// The ledger that the calling thread charges; 0: the process's. A buffer stores this id, so that freeing it on any
// thread credits the same ledger; if that was a thread's own ledger that no longer exists, none is credited.
using Id = std::uint64_t;
Id current();
void give_back(Id ledger, Purpose purpose, std::int64_t bytes);

struct Counters;

// While the object lives, all functions above use a ledger of the calling thread, which starts with the process's
// current bytes, also as its peak. Not nested: throws Error.
class ThreadLedger {
 public:
  ThreadLedger();
  ~ThreadLedger();
  ThreadLedger(const ThreadLedger&) = delete;
  ThreadLedger& operator=(const ThreadLedger&) = delete;

 private:
  std::unique_ptr<Counters> counters_;
};

// The process's resident-set high-water mark in bytes as the kernel counts it (0 where unknown).
std::int64_t process_peak_bytes();

}  // namespace memory_ledger
}  // namespace etc
