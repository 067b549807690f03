// Progress of long work on stderr: a bar with rate and remaining time on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace etc {

class Progress {
 public:
  // total <= 0: unknown, no remaining time. unit: "records", "steps", "MB". before: done by an earlier process; it does
  // not count as speed.
  Progress(std::string what, std::int64_t total, std::string unit, std::int64_t before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done: how much in all; note: shown behind the numbers (a loss, say). Cheap: redraws at most ten times a second on a
  // terminal, prints at most one line in ten seconds otherwise.
  void update(std::int64_t done, const std::string& note = "");
  void finish();  // the last state, once; the destructor calls it

 private:
  void draw(bool last);
  using Clock = std::chrono::steady_clock;
  std::string what_, unit_, note_;
  std::int64_t total_, before_, done_;
  bool terminal_, updated_ = false, finished_ = false;
  Clock::time_point start_, last_draw_;
};

}  // namespace etc
