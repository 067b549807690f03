#include "etc_core/base/memory_ledger.h"

#include <atomic>
#include <fstream>
#include <mutex>

#include "etc_core/base/buffer_heaps.h"
#include "etc_core/base/error.h"

namespace etc {

namespace memory_ledger {

struct Counters {
  Id id = 0;
  std::array<std::atomic<std::int64_t>, kPurposeCount> current{};
  std::atomic<std::int64_t> total{0};
  std::atomic<std::int64_t> peak{0};
  std::mutex peak_mutex;
  std::array<std::int64_t, kPurposeCount> at_peak{};  // guarded by peak_mutex
  BufferHeaps heaps;

  void take_peak(std::int64_t now) {
    const std::scoped_lock lock(peak_mutex);
    if (now <= peak.load()) return;
    peak.store(now);
    for (int i = 0; i < kPurposeCount; ++i) at_peak[i] = current[i].load();
  }

  void charge(Purpose purpose, std::int64_t bytes) {
    heaps.charge(bytes);
    current[static_cast<int>(purpose)].fetch_add(bytes);
    const std::int64_t now = total.fetch_add(bytes) + bytes;
    if (now > peak.load(std::memory_order_relaxed)) take_peak(now);
  }
};

}  // namespace memory_ledger

namespace {

memory_ledger::Counters g_process;
std::atomic<memory_ledger::Id> g_last_id{0};
thread_local memory_ledger::Counters* t_own = nullptr;  // of a ThreadLedger

memory_ledger::Counters& counters() {
  return t_own == nullptr ? g_process : *t_own;
}

}  // namespace

const char* purpose_name(Purpose purpose) {
  static constexpr const char* kNames[kPurposeCount] = {"weights", "gradients", "moments", "activations",
                                                        "scores",  "labels",    "scratch", "data"};
  return kNames[static_cast<int>(purpose)];
}

namespace memory_ledger {

void charge(Purpose purpose, std::int64_t bytes) {
  counters().charge(purpose, bytes);
}

MemoryReport report() {
  Counters& from = counters();
  MemoryReport result;
  const std::scoped_lock lock(from.peak_mutex);
  for (int i = 0; i < kPurposeCount; ++i) result.current[i] = from.current[i].load();
  result.at_peak = from.at_peak;
  result.total = from.total.load();
  result.peak = from.peak.load();
  return result;
}

void reset_peak() {
  Counters& of = counters();
  of.heaps.reset_peaks();
  const std::scoped_lock lock(of.peak_mutex);
  of.peak.store(of.total.load());
  for (int i = 0; i < kPurposeCount; ++i) of.at_peak[i] = of.current[i].load();
}

std::string table() {
  const MemoryReport r = report();
  std::string text = fmt::format("{:<12}{:>16}{:>16}\n", "bytes", "now", "at peak");
  for (int i = 0; i < kPurposeCount; ++i) {
    text += fmt::format("{:<12}{:>16}{:>16}\n", purpose_name(static_cast<Purpose>(i)), r.current[i], r.at_peak[i]);
  }
  return text + fmt::format("{:<12}{:>16}{:>16}\n", "total", r.total, r.peak);
}

std::int64_t sum_of_heap_peaks() {
  return counters().heaps.sum_of_peaks();
}

Id current() {
  return counters().id;
}

void give_back(Id ledger, Purpose purpose, std::int64_t bytes) {
  if (ledger == 0) return g_process.charge(purpose, -bytes);
  if (t_own != nullptr && t_own->id == ledger) t_own->charge(purpose, -bytes);
}

ThreadLedger::ThreadLedger() : counters_(std::make_unique<Counters>()) {
  if (t_own != nullptr) fail("memory", "counting mode is on already: expected one at a time");
  counters_->id = ++g_last_id;
  std::int64_t total = 0;
  for (int i = 0; i < kPurposeCount; ++i) {
    const std::int64_t held = g_process.current[i].load();
    counters_->current[i].store(held);
    counters_->at_peak[i] = held;
    total += held;
  }
  counters_->total.store(total);
  counters_->peak.store(total);
  counters_->heaps.start_as(g_process.heaps);
  t_own = counters_.get();
}

ThreadLedger::~ThreadLedger() {
  t_own = nullptr;
}

std::int64_t process_peak_bytes() {
  // Not getrusage(): its value includes the peak of the program that started this one.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace memory_ledger
}  // namespace etc
