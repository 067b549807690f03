#include "tests/support/simt/copy_queues.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/error.h"
#include "tests/support/simt/device_loss.h"
#include "tests/support/simt/device_space.h"

namespace etc::simt {

namespace {

// An event is complete once `position` work items of the queue are done.
struct Mark {
  Queue queue = Queue::compute;
  std::int64_t position = 0;
};

class WorkQueue {
 public:
  void put(std::function<void()> work) { waiting_.push_back(std::move(work)); }
  void drop() {
    done_ += static_cast<std::int64_t>(waiting_.size());
    waiting_.clear();
  }
  std::int64_t position() const { return done_ + static_cast<std::int64_t>(waiting_.size()); }
  void run_until(std::int64_t position) {
    while (done_ < position) {
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      work();
      ++done_;
    }
  }

 private:
  std::deque<std::function<void()>> waiting_;
  std::int64_t done_ = 0;
};

bool g_running = false;

WorkQueue& queue_of(Queue queue) {
  static auto* const queues = new std::array<WorkQueue, 2>;  // outlives tensors in static variables
  return (*queues)[static_cast<std::size_t>(queue)];
}

void run_until(const Mark& mark) {
  const bool nested = std::exchange(g_running, true);
  queue_of(mark.queue).run_until(mark.position);
  g_running = nested;
}

}  // namespace

void run_queued_work() {
  if (!g_running) run_until({Queue::compute, queue_of(Queue::compute).position()});
}

void drop_queued_work() {
  for (const Queue queue : {Queue::compute, Queue::copies}) queue_of(queue).drop();
}

void* allocate_pinned(std::int64_t bytes) {
  check_device("pinned memory");
  void* memory = std::malloc(static_cast<std::size_t>(bytes));
  if (memory == nullptr) fail("pinned memory", "cannot allocate {} bytes", bytes);
  return memory;
}

void queue_copy(Queue queue, void* to, const void* from, std::int64_t bytes) {
  if (!begin_operation("copy")) return;
  // Tests run kernels on host arrays, which are freed when they go out of scope and not in stream order.
  if (!is_device_memory(to) && !is_device_memory(from)) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  queue_of(queue).put([to, from, bytes] {
    const DeviceAccess access;
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
}

Event make_event() {
  return new Mark;
}

void record(Event event, Queue queue) {
  check_device("event");
  *static_cast<Mark*>(event) = {queue, queue_of(queue).position()};
}

void wait_on_host(Event event) {
  check_device("waiting for a copy");
  run_until(*static_cast<Mark*>(event));
}

void wait_on_queue(Queue queue, Event event) {
  check_device("event");
  queue_of(queue).put([mark = *static_cast<Mark*>(event)] { run_until(mark); });
}

}  // namespace etc::simt
