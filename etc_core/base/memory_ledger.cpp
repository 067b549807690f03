#include "etc_core/base/memory_ledger.h"

#include <atomic>
#include <fstream>
#include <mutex>

#include "etc_core/base/buffer_heaps.h"
#include "etc_core/base/error.h"

namespace etc {

namespace {

std::array<std::atomic<std::int64_t>, kPurposeCount> g_current{};
std::atomic<std::int64_t> g_total{0};
std::atomic<std::int64_t> g_peak{0};
std::mutex g_peak_mutex;
std::array<std::int64_t, kPurposeCount> g_at_peak{};  // guarded by g_peak_mutex

void take_peak(std::int64_t total) {
  const std::scoped_lock lock(g_peak_mutex);
  if (total <= g_peak.load()) return;
  g_peak.store(total);
  for (int i = 0; i < kPurposeCount; ++i) g_at_peak[i] = g_current[i].load();
}

}  // namespace

const char* purpose_name(Purpose purpose) {
  static constexpr const char* kNames[kPurposeCount] = {"weights", "gradients", "moments", "activations",
                                                        "scores",  "labels",    "scratch", "data"};
  return kNames[static_cast<int>(purpose)];
}

namespace memory_ledger {

void charge(Purpose purpose, std::int64_t bytes) {
  buffer_heaps::charge(bytes);
  g_current[static_cast<int>(purpose)].fetch_add(bytes);
  const std::int64_t total = g_total.fetch_add(bytes) + bytes;
  if (total > g_peak.load(std::memory_order_relaxed)) take_peak(total);
}

MemoryReport report() {
  MemoryReport result;
  const std::scoped_lock lock(g_peak_mutex);
  for (int i = 0; i < kPurposeCount; ++i) result.current[i] = g_current[i].load();
  result.at_peak = g_at_peak;
  result.total = g_total.load();
  result.peak = g_peak.load();
  return result;
}

void reset_peak() {
  buffer_heaps::reset_peaks();
  const std::scoped_lock lock(g_peak_mutex);
  g_peak.store(g_total.load());
  for (int i = 0; i < kPurposeCount; ++i) g_at_peak[i] = g_current[i].load();
}

std::string table() {
  const MemoryReport r = report();
  std::string text = fmt::format("{:<12}{:>16}{:>16}\n", "bytes", "now", "at peak");
  for (int i = 0; i < kPurposeCount; ++i) {
    text += fmt::format("{:<12}{:>16}{:>16}\n", purpose_name(static_cast<Purpose>(i)), r.current[i], r.at_peak[i]);
  }
  return text + fmt::format("{:<12}{:>16}{:>16}\n", "total", r.total, r.peak);
}

std::int64_t process_peak_bytes() {
  // Not getrusage(): its figure begins with that of the program that started this one.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace memory_ledger
}  // namespace etc
