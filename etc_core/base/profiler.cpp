#include "etc_core/base/profiler.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::profiler {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostEvents = 1'000'000;  // of the trace: 40 MB

struct Event {
  const char* name;
  std::size_t thread;
  double begin, seconds;  // begin counts from start()
};

struct Recording {
  std::mutex mutex;
  Clock::time_point begin, end;
  bool ended = false;
  std::map<std::string, Row, std::less<>> rows;
  std::vector<Event> events;
};

std::atomic<bool> g_running = false;

Recording& recording() {
  static Recording instance;
  return instance;
}

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void start() {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  to.rows.clear();
  to.events.clear();
  to.begin = Clock::now();
  to.ended = false;
  g_running = true;
}

void stop() {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  to.end = Clock::now();
  to.ended = true;
  g_running = false;
}

bool running() {
  return g_running.load(std::memory_order_relaxed);
}

Scope::Scope(const char* name, Work work) : name_(running() ? name : nullptr), work_(work) {
  if (name_ != nullptr) begin_ = Clock::now();
}

Scope::~Scope() {
  if (name_ == nullptr || !running()) return;
  try {
    wait_for_devices();
  } catch (const Error&) {
    return;  // a destructor must not throw; the next call to a lost device reports the error
  }
  const Clock::time_point end = Clock::now();
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  Row& row = to.rows[name_];
  if (row.calls == 0) row.name = name_;
  ++row.calls;
  row.seconds += seconds(end - begin_);
  row.work.operations += work_.operations;
  row.work.bytes += work_.bytes;
  if (to.events.size() < kMostEvents) {
    const std::size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id()) % 100'000;
    to.events.push_back({name_, thread, seconds(begin_ - to.begin), seconds(end - begin_)});
  }
}

std::vector<Row> rows() {
  Recording& from = recording();
  const std::lock_guard lock(from.mutex);
  std::vector<Row> result;
  for (const auto& [name, row] : from.rows) result.push_back(row);
  std::stable_sort(result.begin(), result.end(), [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return result;
}

double elapsed() {
  Recording& from = recording();
  const std::lock_guard lock(from.mutex);
  return seconds((from.ended ? from.end : Clock::now()) - from.begin);
}

void write_trace(const std::filesystem::path& path) {
  Recording& from = recording();
  const std::lock_guard lock(from.mutex);
  AtomicFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  const char* separator = "\n";
  for (const Event& event : from.events) {
    file.write(fmt::format("{}{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
                           separator, event.name, event.thread, event.begin * 1e6, event.seconds * 1e6));
    separator = ",\n";
  }
  file.write("\n]}\n");
  file.commit();
}

}  // namespace etc::profiler
