// Which requests are computed together and which are refused, with jobs that do nothing but wait.
#include "tasks/serve/scheduler.h"

#include <atomic>
#include <memory>
#include <thread>

#include "etc_core/base/error.h"
#include "tasks/serve/memory_budget.h"
#include "tests/support/catch.h"

using namespace etc;
using serve::Job;
using serve::Refused;
using serve::Scheduler;
using serve::SchedulerLimits;

namespace {

// Jobs that end once the gate is opened, and record their batch.
struct Gate {
  std::mutex mutex;
  std::condition_variable opened, begun;
  bool open = false;
  int running = 0;
  std::vector<std::size_t> batches;  // their sizes
};

class WaitingJob : public Job {
 public:
  WaitingJob(Gate& gate, std::int64_t size, bool waits = false, int kind = 0)
      : gate_(gate), waits_(waits), kind_(kind) {
    tokens = size;
  }
  int kind() const override { return kind_; }
  void run(std::span<Job* const> jobs, std::int64_t, std::int64_t most_bytes) override {
    std::unique_lock lock(gate_.mutex);
    gate_.batches.push_back(jobs.size());
    granted = most_bytes;
    ++gate_.running;
    gate_.begun.notify_all();
    if (waits_) gate_.opened.wait(lock, [&] { return gate_.open; });
    --gate_.running;
  }
  std::int64_t granted = 0;

 private:
  Gate& gate_;
  bool waits_;
  int kind_;
};

class FailingJob final : public Job {
 public:
  explicit FailingJob(bool fails) : fails_(fails) { tokens = 1; }
  int kind() const override { return 7; }
  void run(std::span<Job* const> jobs, std::int64_t, std::int64_t) override {
    for (Job* job : jobs) {
      if (static_cast<FailingJob*>(job)->fails_) throw Error("this one cannot be computed");
    }
    computed = true;
  }
  bool computed = false;

 private:
  bool fails_;
};

void wait_until_running(Gate& gate, int jobs) {
  std::unique_lock lock(gate.mutex);
  REQUIRE(gate.begun.wait_for(lock, std::chrono::seconds(10), [&] { return gate.running >= jobs; }));
}

void open(Gate& gate) {
  const std::lock_guard lock(gate.mutex);
  gate.open = true;
  gate.opened.notify_all();
}

int status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Refused& refused) {
    return refused.status();
  }
  return 200;
}

// The two threads compute concurrently once a first batch was computed.
void warm_up(Scheduler& scheduler, Gate& gate) {
  WaitingJob first(gate, 1);
  scheduler.submit(first);
  scheduler.wait(first);
  gate.batches.clear();
}

}  // namespace

TEST_CASE("what comes while a batch is computed is the next batch, up to its tokens and by its kind", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 100});
  WaitingJob busy(gate, 10, true);
  scheduler.submit(busy);
  wait_until_running(gate, 1);
  WaitingJob a(gate, 30), b(gate, 30), other(gate, 30, false, 1), c(gate, 30), d(gate, 30);
  for (WaitingJob* job : {&a, &b, &other, &c, &d}) scheduler.submit(*job);
  CHECK(scheduler.counts().waiting == 5);
  open(gate);
  for (WaitingJob* job : {&busy, &a, &b, &other, &c, &d}) scheduler.wait(*job);
  CHECK(gate.batches == std::vector<std::size_t>{1, 3, 1, 1});  // a, b and c; the other kind; d
  CHECK(scheduler.counts().jobs == 6);
}

TEST_CASE(
    "half of what waits is left to the next batch where a half is worth it, so that clients can ask again meanwhile",
    "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 1000, .half_tokens = 100});
  WaitingJob busy(gate, 10, true);
  scheduler.submit(busy);
  wait_until_running(gate, 1);
  std::vector<std::unique_ptr<WaitingJob>> jobs;
  for (int n = 0; n < 8; ++n) jobs.push_back(std::make_unique<WaitingJob>(gate, 50));
  for (const auto& job : jobs) scheduler.submit(*job);
  open(gate);
  for (const auto& job : jobs) scheduler.wait(*job);
  CHECK(gate.batches == std::vector<std::size_t>{1, 4, 2, 2});  // of 400, 200 and 100 tokens
}

TEST_CASE("a short request is not held up behind a long one", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 300});
  warm_up(scheduler, gate);
  WaitingJob first_long(gate, 290, true), second_long(gate, 290), brief(gate, 100);
  scheduler.submit(first_long);
  wait_until_running(gate, 1);
  scheduler.submit(second_long);
  scheduler.submit(brief);
  scheduler.wait(brief);  // although a long one is queued before it, and another is being computed
  CHECK(scheduler.counts().beside_long == 1);
  CHECK(scheduler.counts().waiting == 1);
  open(gate);
  scheduler.wait(first_long);
  scheduler.wait(second_long);
}

TEST_CASE("without a second thread, as on a device, one batch is computed at a time", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 300, .second_thread = false});
  warm_up(scheduler, gate);
  WaitingJob long_job(gate, 290, true), brief(gate, 100);
  scheduler.submit(long_job);
  wait_until_running(gate, 1);
  scheduler.submit(brief);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(scheduler.counts().waiting == 1);
  open(gate);
  scheduler.wait(long_job);
  scheduler.wait(brief);
  CHECK(scheduler.counts().beside_long == 0);
}

TEST_CASE("requests beyond the most that wait are refused, those of clients that left make room", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 100, .waiting = 2});
  WaitingJob busy(gate, 1, true), a(gate, 90), b(gate, 90), c(gate, 90);
  std::atomic<bool> left{false};
  b.left = [&] { return left.load(); };
  scheduler.submit(busy);
  wait_until_running(gate, 1);
  scheduler.submit(a);
  scheduler.submit(b);
  CHECK(status_of([&] { scheduler.submit(c); }) == 429);
  left = true;
  scheduler.submit(c);
  CHECK(status_of([&] { scheduler.wait(b); }) == serve::kClientLeft);
  CHECK(scheduler.counts().left == 1);
  open(gate);
  for (WaitingJob* job : {&busy, &a, &c}) scheduler.wait(*job);
  CHECK(gate.batches.size() == 3);  // b was never computed
  scheduler.stop();
  WaitingJob after(gate, 1);
  CHECK(status_of([&] { scheduler.submit(after); }) == 503);
}

TEST_CASE("a request that has waited too long is told so", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 100, .wait_seconds = 0.01});
  WaitingJob busy(gate, 1, true), late(gate, 1);
  scheduler.submit(busy);
  wait_until_running(gate, 1);
  scheduler.submit(late);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  open(gate);
  scheduler.wait(busy);
  CHECK(status_of([&] { scheduler.wait(late); }) == 503);
}

TEST_CASE("memory is shared by what is computed side by side, and what never fits is refused", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 300, .memory = 1000});
  warm_up(scheduler, gate);
  WaitingJob too_large(gate, 10);
  too_large.bytes = too_large.largest_bytes = 1001;
  CHECK(status_of([&] { scheduler.submit(too_large); }) == 413);
  WaitingJob tall(gate, 250, true), first(gate, 10), second(gate, 10);
  tall.bytes = 5000;  // in parts of 600 and less
  tall.largest_bytes = 600;
  first.bytes = first.largest_bytes = 200;
  second.bytes = second.largest_bytes = 200;
  scheduler.submit(tall);
  wait_until_running(gate, 1);
  CHECK(tall.granted == 750);  // a quarter is left for short ones
  scheduler.submit(first);
  scheduler.wait(first);
  scheduler.submit(second);
  scheduler.wait(second);
  CHECK(gate.batches == std::vector<std::size_t>{1, 1, 1});
  open(gate);
  scheduler.wait(tall);
}

TEST_CASE("a request that cannot be computed does not take the others of its batch with it", "[serve]") {
  Gate gate;
  Scheduler scheduler({.batch_tokens = 100});
  WaitingJob busy(gate, 1, true);
  scheduler.submit(busy);
  wait_until_running(gate, 1);
  FailingJob good(false), bad(true), fine(false);
  for (FailingJob* job : {&good, &bad, &fine}) scheduler.submit(*job);
  open(gate);
  scheduler.wait(busy);
  scheduler.wait(good);
  CHECK(status_of([&] { scheduler.wait(bad); }) == 500);
  scheduler.wait(fine);
  CHECK(good.computed);
  CHECK(fine.computed);
}

TEST_CASE("memory for reading is shared: what never fits is refused, what others have is waited for", "[serve]") {
  constexpr double kSeconds = 0.2;
  serve::MemoryBudget budget(100, kSeconds);
  const auto never = [] { return false; };
  CHECK(status_of([&] { budget.take(101, never); }) == 413);
  CHECK(status_of([&] { budget.try_take(101); }) == 413);
  auto most = std::make_unique<serve::MemoryBudget::Part>(budget.take(70, never));
  CHECK(budget.try_take(30));
  CHECK_FALSE(budget.try_take(31));
  CHECK(status_of([&] { budget.take(31, never); }) == 503);
  CHECK(status_of([&] { budget.take(31, [] { return true; }); }) == serve::kClientLeft);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    most.reset();
  });
  CHECK(status_of([&] { budget.take(100, never); }) == 200);
  other.join();
  CHECK(budget.try_take(100));
  serve::MemoryBudget without_limit(0, kSeconds);
  CHECK(without_limit.try_take(std::int64_t{1} << 60));
}
