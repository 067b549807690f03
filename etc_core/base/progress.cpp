#include "etc_core/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace etc {

namespace {

constexpr int kBarWidth = 24;

std::string duration_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(std::string what, std::int64_t total, std::string unit, std::int64_t before)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      before_(before),
      done_(before),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_draw_(start_) {}

Progress::~Progress() {
  finish();
}

void Progress::update(std::int64_t done, const std::string& note) {
  updated_ = true;
  done_ = done;
  note_ = note;
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  const auto now = Clock::now();
  if (now - last_draw_ < pause) return;
  last_draw_ = now;
  draw(false);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (updated_) draw(true);
}

void Progress::draw(bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - before_) / seconds : 0;
  std::string line = what_ + " ";
  if (total_ > 0) {
    const double share = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    if (terminal_) {
      const int filled = static_cast<int>(share * kBarWidth);
      line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] ";
    }
    line += fmt::format("{}/{} {}", done_, total_, unit_);
  } else {
    line += fmt::format("{} {}", done_, unit_);
  }
  line += fmt::format(", {:.3g} {}/s", rate, unit_);
  if (last) {
    line += ", " + duration_text(seconds);
  } else if (total_ > 0 && rate > 0) {
    line += ", " + duration_text(static_cast<double>(total_ - done_) / rate) + " left";
  }
  if (!note_.empty()) line += ", " + note_;
  std::fprintf(stderr, terminal_ ? (last ? "\r\033[K%s\n" : "\r\033[K%s") : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace etc
