// Progress of long work on stderr: a bar with rate and remaining time on a terminal, plain lines otherwise. On a narrow
// terminal a line is shortened until it does not wrap: first the bar, then rate, note and time go.
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
  // total <= 0: unknown, no remaining time. unit: "records", "steps", "MB". before: done by an earlier process; it does
  // not count as speed.
  Progress(std::string what, std::int64_t total, std::string unit, std::int64_t before = 0);
  ~Progress();

  // done: how much in all; note: shown behind the numbers (a loss, say). Cheap: redraws at most ten times a second on a
  // terminal, prints at most one line in ten seconds otherwise.
  void update(std::int64_t done, const std::string& note = "");
  // The same, drawn at once: at the beginning of parts that take long, so that nobody waits without knowing for what.
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

// A rate as people write it, without an exponent: three digits, or all of them before the decimal point; "1140", "5.2",
// "0.042".
std::string rate_text(double rate);

}  // namespace etc
