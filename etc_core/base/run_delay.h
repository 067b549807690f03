// Detects whether other programs want the processor that a thread runs on.
#pragma once

#include <cstdint>

namespace etc {

// Watches the run delay of the calling thread: the time in which it was runnable but had no processor
// (/proc/thread-self/schedstat). One object per thread. Counting involuntary context switches does not work instead,
// because an idle machine also has 200 a second, of a microsecond each.
class RunDelay {
 public:
  // Whether the thread waited for a processor for at least kShare of the last window of kWindow, or of a window within
  // the last kMemory. True where the system does not tell. Asks the system once per kWindow.
  bool high();

  // The rule alone. now: time on a steady clock; delay: the thread's run delay so far; both in nanoseconds.
  bool high(std::int64_t now, std::int64_t delay);

  static constexpr double kShare = 0.2;  // one other busy program: 0.13 to 0.4; the loader beside two threads: 0.05
  static constexpr std::int64_t kWindow = 20'000'000;
  static constexpr std::int64_t kMemory = 200'000'000;

 private:
  bool in_window(std::int64_t now) const { return started_ && now - start_ < kWindow; }

  bool started_ = false;
  std::int64_t start_ = 0, delay_ = 0;  // of the window
  std::int64_t until_ = 0;              // high until then
};

}  // namespace etc
