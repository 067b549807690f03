#include "etc_core/base/interruption.h"

#include <atomic>
#include <utility>

namespace etc {

namespace {
thread_local InterruptionWatch* t_watch = nullptr;
std::atomic<StopQuery::Ask> stop_query = nullptr;
}  // namespace

InterruptionWatch::InterruptionWatch(std::function<void()> ask)
    : ask_(std::move(ask)), asked_(std::chrono::steady_clock::now()), before_(std::exchange(t_watch, this)) {}

InterruptionWatch::~InterruptionWatch() {
  t_watch = before_;
}

void check_interruption() {
  InterruptionWatch* const watch = t_watch;
  if (watch == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - watch->asked_ < InterruptionWatch::kPause) return;
  watch->ask_();
  watch->asked_ = std::chrono::steady_clock::now();  // not `now`: asking may have taken long
}

StopQuery::StopQuery(Ask ask) : before_(stop_query.exchange(ask)) {}

StopQuery::~StopQuery() {
  stop_query = before_;
}

bool told_to_stop() {
  const StopQuery::Ask ask = stop_query;
  return ask != nullptr && ask();
}

}  // namespace etc
