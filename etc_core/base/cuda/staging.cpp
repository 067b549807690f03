// Copies between host arrays and the device, through pinned memory.
//
//   to the device    host array ─memcpy─▶ pinned ─queue of copies─▶ device ring ─compute queue─▶ its place
//   to the host      its place ─compute queue─▶ pinned ─memcpy─▶ host array
//
// Copies to the device use a separate queue, so that they proceed while kernels run: only the short copy from the ring
// to its destination is ordered with the kernels. The host waits when the ring is full, not for kernels.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/cuda/late_checks.h"
#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/memory_ledger.h"

namespace etc::simt {

namespace {

constexpr std::int64_t kRing = 16 << 20;  // bytes of pinned memory, and as many on the device
constexpr std::int64_t kChunk = 4 << 20;  // a long array is sent in chunks: one is copied while the next is prepared
constexpr std::int64_t kStraight = 64 << 10;  // up to this size two queues cost more than they save
constexpr std::int64_t kAlignment = 256;

// A ring buffer in pinned memory and on the device; chunks are allocated and freed in order.
class Staging {
 public:
  Staging() {
    wait();  // the device's part is usable by the other queue only after its allocation on the compute queue is done
    pinned_ = static_cast<std::byte*>(allocate_pinned(kRing));
    memory_ledger::charge(Purpose::scratch, kRing);
  }

  void send(std::byte* to, const std::byte* from, std::int64_t bytes) {
    for_chunks(bytes, [&](std::int64_t first, std::int64_t count) {
      Chunk chunk = take(count);
      std::byte* const pinned = pinned_ + chunk.begin;
      std::memcpy(pinned, from + first, static_cast<std::size_t>(count));
      if (bytes <= kStraight) {
        queue_copy(Queue::compute, to + first, pinned, count);
        record(chunk.read, Queue::compute);
      } else {
        std::byte* const device = static_cast<std::byte*>(device_.data()) + chunk.begin;
        queue_copy(Queue::copies, device, pinned, count);
        record(chunk.read, Queue::copies);
        wait_on_queue(Queue::compute, chunk.read);
        queue_copy(Queue::compute, to + first, device, count);
      }
      record(chunk.placed, Queue::compute);
      in_flight_.push_back(chunk);
    });
  }

  // All work queued on the compute queue before is done when this returns.
  void receive(std::byte* to, const std::byte* from, std::int64_t bytes) {
    for_chunks(bytes, [&](std::int64_t first, std::int64_t count) {
      Chunk chunk = take(count);
      queue_copy(Queue::compute, pinned_ + chunk.begin, from + first, count);
      record(chunk.read, Queue::compute);
      record(chunk.placed, Queue::compute);
      chunk.to = to + first;
      chunk.count = count;
      in_flight_.push_back(chunk);
    });
    while (!in_flight_.empty()) take_back();
  }

  // After a failure: copies in flight never arrive, and the host arrays they were for must not be touched again.
  void forget() { in_flight_.clear(); }

 private:
  struct Chunk {
    std::int64_t begin = 0, end = 0;  // of the ring
    Event read = nullptr;             // done when the pinned memory is free again
    Event placed = nullptr;           // done when the device's part of the ring is free again
    std::byte* to = nullptr;          // destination on the host, when the data come from the device
    std::int64_t count = 0;
  };

  template <typename Body>
  static void for_chunks(std::int64_t bytes, Body body) {
    for (std::int64_t first = 0; first < bytes; first += kChunk) body(first, std::min(kChunk, bytes - first));
  }

  // Allocates space in the ring that no copy uses any more.
  Chunk take(std::int64_t count) {
    const std::int64_t size = round_up(count, kAlignment);
    if (next_ + size > kRing) {
      while (!in_flight_.empty() && in_flight_.front().begin >= next_) take_back();  // of the previous pass
      next_ = 0;
    }
    while (!in_flight_.empty() && overlaps(in_flight_.front(), next_, next_ + size)) take_back();
    Chunk chunk;
    chunk.begin = next_;
    chunk.end = next_ += size;
    chunk.read = event();
    chunk.placed = event();
    return chunk;
  }

  static bool overlaps(const Chunk& chunk, std::int64_t begin, std::int64_t end) {
    return chunk.begin < end && begin < chunk.end;
  }

  void take_back() {
    const Chunk chunk = in_flight_.front();
    in_flight_.pop_front();
    wait_on_host(chunk.read);
    wait_on_queue(Queue::copies, chunk.placed);
    if (chunk.to != nullptr) std::memcpy(chunk.to, pinned_ + chunk.begin, static_cast<std::size_t>(chunk.count));
    events_.push_back(chunk.read);
    events_.push_back(chunk.placed);
  }

  Event event() {
    if (events_.empty()) return make_event();
    const Event used = events_.back();
    events_.pop_back();
    return used;
  }

  Bytes device_ = device_bytes(kRing, Purpose::scratch);
  std::byte* pinned_ = nullptr;
  std::int64_t next_ = 0;        // next free offset in the ring
  std::deque<Chunk> in_flight_;  // oldest first
  std::vector<Event> events_;    // free, for reuse
};

std::mutex g_one_at_a_time;

Staging& staging() {
  static auto* const only = new Staging;  // never destroyed: lives as long as the device's runtime
  return *only;
}

// Calls body(ring) under a lock.
template <typename Body>
void with_staging(Body body) {
  const std::lock_guard lock(g_one_at_a_time);
  Staging& ring = staging();
  try {
    body(ring);
  } catch (...) {
    ring.forget();
    forget_late_checks();
    throw;
  }
}

}  // namespace

void reserve_copies() {
  with_staging([](Staging&) {});
}

void copy_to_device(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  with_staging(
      [&](Staging& ring) { ring.send(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes); });
}

void copy_to_host(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) {
    wait();
  } else {
    with_staging(
        [&](Staging& ring) { ring.receive(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes); });
  }
  run_late_checks();
}

}  // namespace etc::simt
