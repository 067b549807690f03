#include "etc_core/base/thread_team.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "etc_core/base/ascii.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/run_delay.h"
#include "etc_core/base/signals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace etc {

namespace {

// bench/RESULTS.md, "Threads that wait": spin a few microseconds, longer while no other program wants the processor.
constexpr std::int64_t kSpins = 200;
constexpr std::chrono::microseconds kLongWait{1000};
constexpr std::int64_t kLooksPerClock = 20;
constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();

thread_local int t_thread = -1;

void pause_processor() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls done() up to `spins` times.
template <typename Done>
bool spin(std::int64_t spins, Done&& done) {
  for (std::int64_t i = 0; i < spins; ++i) {
    if (done()) return true;
    pause_processor();
  }
  return done();
}

// Spins until done() is true; false if the thread should sleep instead. Polls `spins.looks` times, then, if allowed and
// no other program wants this processor, for kLongWait.
template <typename Done>
bool spin(WaitSpins spins, Done&& done) {
  if (spin(spins.looks, done)) return true;
  if (!spins.longer) return false;
  thread_local RunDelay delay;
  if (delay.high()) return false;
  const auto end = std::chrono::steady_clock::now() + kLongWait;
  while (std::chrono::steady_clock::now() < end) {
    if (spin(kLooksPerClock, done)) return true;
  }
  return done();
}

std::atomic<ThreadTeam*> g_team{nullptr};

// Pools are never destroyed, because workers sleep on their members until the process ends.
bool make_team() {
  // A forked child has no worker threads, so it gets a new pool.
  ::pthread_atfork(nullptr, nullptr, [] { g_team.store(new ThreadTeam); });
  g_team.store(new ThreadTeam);
  return true;
}

std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool says_false(const char* value) {
  return value != nullptr && lower_ascii(value) == "false";
}

// GOMP_SPINCOUNT: a number with an optional letter k, M, G or T; or "infinity". -1: not valid.
std::int64_t parse_spin_count(std::string text) {
  std::erase(text, ' ');
  text = lower_ascii(std::move(text));
  if (text == "infinity" || text == "infinite") return kForEver;
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || count < 0 || unit.size() > 1) return -1;
  if (unit.empty()) return count;
  const std::size_t power = std::string("kmgt").find(unit);
  if (power == std::string::npos) return -1;
  for (std::size_t i = 0; i <= power; ++i) count = count > kForEver / 1000 ? kForEver : count * 1000;
  return count;
}

}  // namespace

WaitSpins spins_before_sleep(int threads, int processors, const char* spin_count, const char* wait_policy) {
  if (spin_count != nullptr) {
    if (const std::int64_t count = parse_spin_count(spin_count); count >= 0) return {count, false};
  }
  const std::string policy = lower_ascii(wait_policy != nullptr ? wait_policy : "");
  if (policy == "active") return {kForEver, false};
  if (policy == "passive" || threads > processors) return {0, false};
  return {kSpins, true};
}

ThreadTeam& ThreadTeam::get() {
  static const bool made = make_team();
  static_cast<void>(made);
  return *g_team.load(std::memory_order_acquire);
}

int ThreadTeam::current() {
  return t_thread;
}

bool ThreadTeam::run(int threads, std::int64_t tasks, void* context, Call call) {
  if (busy_.test_and_set(std::memory_order_acquire)) return false;
  static const bool fixed = says_false(std::getenv("OMP_DYNAMIC"));
  tasks_ = tasks;
  context_ = context;
  call_ = call;
  failed_.store(false);
  if (fixed) {
    run_on(threads);
  } else {
    // Loops of one kind come from one place in the program and have a similar number of tasks (same power of two).
    const auto place = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(call));
    const auto magnitude = static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(tasks)));
    const std::uint64_t mixed = (place ^ magnitude << 48) * 0x9e3779b97f4a7c15u;
    run_on(std::min(threads, size_.begin(mixed ^ mixed >> 32, thread_count(), now())));
    size_.end(now());
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  busy_.clear(std::memory_order_release);
  if (error) std::rethrow_exception(error);
  return true;
}

void ThreadTeam::run_on(int threads) {
  grow(threads - 1);
  share(threads);
  if (threads == 1) return work(0);
  most_workers_.store(std::min({workers_, threads - 1, static_cast<int>(kCount)}));
  const std::uint64_t number = (state_.load() / kNumber + 1) * kNumber;
  state_.store(number | kOpen);
  wake(threads - 1);
  work(0);
  state_.fetch_and(~kOpen);
  wait_for_workers();
}

// Thread n's share are the tasks n*tasks/threads …, so that successive loops over the same rows find them in the cache
// of the processor that wrote them.
void ThreadTeam::share(int threads) {
  if (std::ssize(shares_) < threads) shares_ = std::vector<Share>(static_cast<std::size_t>(threads));
  sharing_ = threads;
  for (std::int64_t n = 0; n < threads; ++n) {
    const auto first = static_cast<std::uint64_t>(n * tasks_ / threads);
    const auto end = static_cast<std::uint64_t>((n + 1) * tasks_ / threads);
    shares_[static_cast<std::size_t>(n)].tasks.store(end << kHalf | first);
  }
}

// Takes a task from the front of `thread`'s own share, else from the back of another share; -1: there are none left.
std::int64_t ThreadTeam::take(int thread) {
  for (int n = 0; n < sharing_; ++n) {
    std::atomic<std::uint64_t>& tasks = shares_[static_cast<std::size_t>((thread + n) % sharing_)].tasks;
    std::uint64_t left = tasks.load();
    while ((left & kFirst) < left >> kHalf) {
      const std::uint64_t rest = n == 0 ? left + 1 : left - (kFirst + 1);
      if (!tasks.compare_exchange_weak(left, rest)) continue;
      return static_cast<std::int64_t>(n == 0 ? left & kFirst : rest >> kHalf);
    }
  }
  return -1;
}

// Runs tasks of the current loop until there are none left.
void ThreadTeam::work(int thread) {
  set_flush_to_zero();
  t_thread = thread;
  for (std::int64_t task = take(thread); task >= 0; task = take(thread)) {
    if (failed_.load(std::memory_order_relaxed)) break;
    try {
      call_(context_, task, thread);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
  t_thread = -1;
}

WaitSpins ThreadTeam::spins() const {
  return {looks_.load(std::memory_order_relaxed), longer_.load(std::memory_order_relaxed)};
}

void ThreadTeam::wait_for_workers() {
  const auto all_left = [&] { return (state_.load() & kCount) == 0; };
  if (spin(spins(), all_left)) return;
  std::unique_lock lock(mutex_);
  left_.wait(lock, all_left);
}

// Starts missing workers. If the system refuses more threads, the pool continues with those it has.
void ThreadTeam::grow(int workers) {
  static const int processors = usable_processors();
  static const char* const spin_count = std::getenv("GOMP_SPINCOUNT");
  static const char* const wait_policy = std::getenv("OMP_WAIT_POLICY");
  const WaitSpins spins = spins_before_sleep(workers + 1, processors, spin_count, wait_policy);
  looks_.store(spins.looks, std::memory_order_relaxed);
  longer_.store(spins.longer, std::memory_order_relaxed);
  const SignalsBlocked blocked;  // inherited by the workers
  try {
    for (; workers_ < workers; ++workers_) std::thread([this] { serve(); }).detach();
  } catch (const std::system_error&) {
  }
}

void ThreadTeam::wake(int workers) {
  const int sleeping = sleeping_.load();
  if (sleeping == 0) return;
  { const std::lock_guard lock(mutex_); }  // every worker in `sleeping` now waits, or will see the new loop
  if (sleeping <= workers) return loop_.notify_all();
  for (int i = 0; i < workers; ++i) loop_.notify_one();
}

// ---- The workers' side. ----

void ThreadTeam::serve() {
  for (std::uint64_t seen = 0;;) {
    const std::uint64_t state = wait_for_loop(seen);
    seen = state / kNumber;
    const int thread = join(state);
    if (thread == 0) continue;
    work(thread);
    leave();
  }
}

// Waits for an open loop whose number is not `seen`; returns the state.
std::uint64_t ThreadTeam::wait_for_loop(std::uint64_t seen) {
  std::uint64_t state = 0;
  const auto new_loop = [&] {
    state = state_.load();
    return (state & kOpen) != 0 && state / kNumber != seen;
  };
  if (spin(spins(), new_loop)) return state;
  std::unique_lock lock(mutex_);
  sleeping_.fetch_add(1);
  loop_.wait(lock, new_loop);
  sleeping_.fetch_sub(1);
  return state;
}

// Joins the loop of `state`. Returns the worker's index in it, from 1 on; 0: the loop is over or has enough workers.
int ThreadTeam::join(std::uint64_t state) {
  const std::uint64_t number = state / kNumber;
  while ((state & kOpen) != 0 && state / kNumber == number) {
    const auto joined = static_cast<int>(state / kJoined & kCount);
    if (joined >= most_workers_.load()) return 0;
    if (state_.compare_exchange_weak(state, state + kJoined + kActive)) return joined + 1;
  }
  return 0;
}

void ThreadTeam::leave() {
  const std::uint64_t before = state_.fetch_sub(kActive);
  if ((before & kCount) != 1 || (before & kOpen) != 0) return;
  { const std::lock_guard lock(mutex_); }  // the caller now waits, or will see that all workers have left
  left_.notify_one();
}

}  // namespace etc
