// Where the time of a run goes, operator by operator. Off unless started; then every operator call is one entry.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace etc::profiler {

// The minimum work of a call: useful operations (2 per multiply-add), and bytes it must read and write.
struct Work {
  double operations = 0;
  double bytes = 0;
};

// Sums over the calls of one operator.
struct Row {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;
  Work work;
};

void start();  // forgets what was recorded before
void stop();
bool running();

// Records the time from here to the end of the block as a call of `name`, a string that must outlive the program's run.
// When nothing is recorded, the cost is reading one flag. While recording, it waits for work on another device.
// Thread-safe.
class Scope {
 public:
  Scope(const char* name, Work work);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const char* name_;  // null: not recorded
  Work work_;
  std::chrono::steady_clock::time_point begin_;
};

// The operators recorded since start(), the longest total time first.
std::vector<Row> rows();

// Seconds between start() and stop(), or now.
double elapsed();

// A file for chrome://tracing or Perfetto: one event per call, the first million of them. Written whole or not at all.
void write_trace(const std::filesystem::path& path);

}  // namespace etc::profiler
