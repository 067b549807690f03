// Progress of long work on stderr: a bar with rate and remaining time on a terminal, plain lines otherwise. On a narrow
// terminal a line is shortened until it does not wrap: the bar is dropped first, then rate, note and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc {

struct ProgressReport;  // log_receiver.h

class Progress : NotCopied {
 public:
  // total <= 0: unknown, no remaining time. unit: "records", "steps", "MB". before: work done by an earlier process,
  // which does not count for the rate.
  Progress(std::string what, std::int64_t total, std::string unit, std::int64_t before = 0);
  ~Progress();

  // done: total so far; note: shown after the numbers (for example, a loss). Cheap: redraws at most ten times a second
  // on a terminal, prints at most one line in ten seconds otherwise.
  void update(std::int64_t done, const std::string& note = "");
  // The same, drawn at once: for the beginning of long parts, so that the user sees what is being done.
  void announce(std::int64_t done, const std::string& note);
  void finish();  // the last state, once; the destructor calls it

 private:
  void draw(bool last);
  void report() const;
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<const std::function<void(const ProgressReport&)>> receiver_;  // null: drawn on stderr
  std::string what_, unit_, note_;
  std::int64_t total_, before_, done_;
  bool terminal_, updated_ = false, finished_ = false;
  Clock::time_point start_, last_draw_;
};

// A rate as text without an exponent: three significant digits, or all digits before the decimal point; "1140", "5.2",
// "0.042".
std::string rate_text(double rate);

}  // namespace etc
