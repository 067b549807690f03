#include "etc_core/base/team_size.h"

#include <algorithm>

namespace etc {

bool TeamSize::is_short(const Kind& kind) {
  return kind.run && kind.usual < kShort;
}

// If all kNear entries are occupied by other kinds, the first one is replaced.
TeamSize::Kind* TeamSize::find(std::uint64_t key) {
  Kind* const first = &kinds_[key % (kinds_.size() - kNear)];
  Kind* const found =
      std::find_if(first, first + kNear, [&](const Kind& kind) { return !kind.run || kind.key == key; });
  Kind* const kind = found == first + kNear ? first : found;
  if (!kind->run || kind->key != key) *kind = {.key = key};
  return kind;
}

int TeamSize::begin(std::uint64_t kind, int most, std::int64_t now) {
  if (most != most_) restart(most, now);
  kind_ = find(kind);
  if (trial_ == 0 && most_ > 1 && now >= next_trial_) start_trial();
  tried_ = trial_ != 0 && is_short(*kind_) && kind_->loops >= kKnown;
  threads_ = tried_ ? trial_ : is_short(*kind_) ? size_ : most_;
  start_ = now;
  return threads_;
}

void TeamSize::end(std::int64_t now) {
  Kind& kind = *kind_;
  const std::int64_t time = now - start_;
  // A single thread without a processor makes any loop long, so the fast runs show the loop's size. A run on fewer
  // threads gives a lower bound for the time on all threads.
  const std::int64_t on_all = time * threads_ / most_;
  kind.usual = kind.run && on_all > kind.usual ? kind.usual + (on_all - kind.usual) / kSlowRise : on_all;
  kind.run = true;
  if (tried_ && warmed_up_ < kWarmUp) {
    warmed_up_ += time;
  } else if (tried_) {
    expected_ += static_cast<double>(kind.total) / static_cast<double>(kind.loops);
    measured_ += static_cast<double>(time);
    if (measured_ >= kTrial) finish_trial(now);
  } else if (threads_ == size_) {
    ++kind.loops;
    kind.total += time;
    if (kind.loops == kMean) {
      kind.loops /= 2;
      kind.total /= 2;
    }
  }
}

void TeamSize::restart(int most, std::int64_t now) {
  most_ = size_ = most;
  trial_ = 0;
  pause_ = kFirstPause;
  next_trial_ = now + pause_;
  kinds_.fill({});
}

void TeamSize::start_trial() {
  const bool up = size_ == 1 || (size_ < most_ && upwards_);
  upwards_ = !up;
  trial_ = up ? std::min(2 * size_, most_) : size_ / 2;
  expected_ = measured_ = 0;
  warmed_up_ = 0;
}

void TeamSize::finish_trial(std::int64_t now) {
  pause_ = std::min(2 * pause_, kLongestPause);
  if (measured_ < kGain * expected_) {
    size_ = trial_;
    pause_ = kFirstPause;
    for (Kind& kind : kinds_) kind.loops = kind.total = 0;
  }
  trial_ = 0;
  next_trial_ = now + pause_;
}

}  // namespace etc
