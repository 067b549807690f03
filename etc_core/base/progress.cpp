#include "etc_core/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "etc_core/base/log_receiver.h"
#include "etc_core/base/silence.h"

namespace etc {

namespace {

constexpr std::size_t kAnyWidth = std::string::npos;

thread_local std::shared_ptr<const ProgressReceiver::Receive> t_receiver;

std::string duration_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// The terminal's current number of columns, which the user may change at any time; if unknown, a large number.
std::size_t terminal_columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kAnyWidth;
}

// The parts of a progress line, and their selection for a given number of columns.
struct Line {
  std::string count, rate, time, note;
  std::optional<double> share;  // 0 … 1, drawn as a bar

  std::string fitted(const std::string& what, std::size_t columns) {
    // Text in the last column makes some terminals wrap to the next line.
    const std::size_t width = columns == kAnyWidth ? columns : columns - 1;
    for (std::string* part : {&rate, &note, &time}) {
      if (size(what) > width) part->clear();
    }
    return (what + " " + bar(width - std::min(width, size(what))) + count + rate + time + note).substr(0, width);
  }

 private:
  std::size_t size(const std::string& what) const {
    return what.size() + 1 + count.size() + rate.size() + time.size() + note.size();
  }

  // "[######....] " within `room` columns; none if it would be too short to be useful.
  std::string bar(std::size_t room) const {
    constexpr std::size_t kFrame = 3, kLeast = 8, kMost = 24;
    if (!share || room < kFrame + kLeast) return "";
    const std::size_t length = std::min(kMost, room - kFrame);
    const auto filled = static_cast<std::size_t>(*share * static_cast<double>(length));
    return "[" + std::string(filled, '#') + std::string(length - filled, '.') + "] ";
  }
};

}  // namespace

ProgressReceiver::ProgressReceiver(Receive receive) : before_(std::move(t_receiver)) {
  t_receiver = std::make_shared<const Receive>(std::move(receive));
}

ProgressReceiver::~ProgressReceiver() {
  t_receiver = std::move(before_);
}

std::shared_ptr<const ProgressReceiver::Receive> ProgressReceiver::current() {
  return t_receiver;
}

Progress::Progress(std::string what, std::int64_t total, std::string unit, std::int64_t before)
    : receiver_(ProgressReceiver::current()),
      what_(std::move(what)),
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
  if (receiver_) return report();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  const auto now = Clock::now();
  if (now - last_draw_ < pause) return;
  last_draw_ = now;
  draw(false);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (updated_ && !receiver_) draw(true);
}

void Progress::announce(std::int64_t done, const std::string& note) {
  updated_ = true;
  done_ = done;
  note_ = note;
  if (receiver_) return report();
  last_draw_ = Clock::now();
  draw(false);
}

void Progress::report() const {
  (*receiver_)({what_, unit_, note_, done_, std::max<std::int64_t>(0, total_)});
}

void Progress::draw(bool last) {
  if (is_silent()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - before_) / seconds : 0;
  Line line;
  line.count = total_ > 0 ? fmt::format("{}/{} {}", done_, total_, unit_) : fmt::format("{} {}", done_, unit_);
  if (done_ != before_) line.rate = fmt::format(", {} {}/s", rate_text(rate), unit_);
  if (last) {
    line.time = ", " + duration_text(seconds);
  } else if (total_ > 0 && rate > 0) {
    line.time = ", " + duration_text(static_cast<double>(total_ - done_) / rate) + " left";
  }
  if (!note_.empty()) line.note = ", " + note_;
  if (terminal_ && total_ > 0)
    line.share = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
  const std::string text = line.fitted(what_, terminal_ ? terminal_columns() : kAnyWidth);
  std::fprintf(stderr, terminal_ ? (last ? "\r\033[K%s\n" : "\r\033[K%s") : "%s\n", text.c_str());
  std::fflush(stderr);
}

std::string rate_text(double rate) {
  if (!(rate > 0)) return "0";
  constexpr int kDigits = 3, kMostDecimals = 9;
  const int before_point = static_cast<int>(std::floor(std::log10(rate))) + 1;  // digits; <= 0: zeros after the point
  std::string text = fmt::format("{:.{}f}", rate, std::clamp(kDigits - before_point, 0, kMostDecimals));
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace etc
