// Chooses the number of threads for short loops by measuring which number is fastest.
//
// A second processor does not always help. It may be the other hardware thread of the same core, a core so far away
// that moving a layer's rows costs more than computing them, or in use by other programs, so that the loop waits for
// their time slices. No counter of the system shows all of this, but the loops' own times do. So now and then a few
// milliseconds of short loops run on half or twice the threads, and the number with the shorter time is kept. Results
// do not depend on it (parallel.h).
#pragma once

#include <array>
#include <cstdint>

namespace etc {

class TeamSize {
 public:
  // Begins a loop: the number of threads to run it on, 1 … most. `kind`: the same for loops of about the same work.
  // `now`: nanoseconds on a steady clock. Loops do not overlap.
  int begin(std::uint64_t kind, int most, std::int64_t now);

  // The loop is over.
  void end(std::int64_t now);

  // Loops that take longer on all threads always run on all of them: trials would cost too much, and waiting is a small
  // part of their time.
  static constexpr std::int64_t kShort = 2'000'000;
  static constexpr std::int64_t kWarmUp = 1'000'000;  // time of a trial's first loops: threads wake up, caches fill
  static constexpr std::int64_t kTrial = 5'000'000;   // time of the trial's loops that are compared
  static constexpr std::int64_t kFirstPause = 100'000'000;      // before the first trial and after a change
  static constexpr std::int64_t kLongestPause = 2'000'000'000;  // pauses double as long as trials change nothing
  static constexpr double kGain = 0.95;                         // another count is kept below this share of the time

 private:
  // Measurements of one kind of loop.
  struct Kind {
    std::uint64_t key = 0;
    bool run = false;                   // has run before, on any number of threads
    std::int64_t usual = 0;             // nanoseconds on all threads, of the fastest recent loops
    std::int64_t loops = 0, total = 0;  // number and nanoseconds of loops on the current number of threads
  };

  static bool is_short(const Kind& kind);
  Kind* find(std::uint64_t key);
  void restart(int most, std::int64_t now);
  void start_trial();
  void finish_trial(std::int64_t now);

  static constexpr std::int64_t kKnown = 4;     // loops of a kind before its mean is used
  static constexpr std::int64_t kSlowRise = 8;  // of a longer time, 1/kSlowRise of the difference is added
  static constexpr std::int64_t kMean = 64;     // loops after which the older ones count half in the mean

  static constexpr std::size_t kNear = 8;  // table entries in which a kind may be stored
  std::array<Kind, 1024> kinds_{};
  int most_ = 0, size_ = 0;
  int trial_ = 0;         // threads of the current trial; 0: none
  bool upwards_ = false;  // whether the next trial uses more threads, if both directions are possible
  std::int64_t next_trial_ = 0, pause_ = kFirstPause;
  double expected_ = 0, measured_ = 0;  // nanoseconds of the trial's loops: at size_, at trial_
  std::int64_t warmed_up_ = 0;          // nanoseconds of the trial's warm-up loops

  // The current loop.
  Kind* kind_ = nullptr;
  int threads_ = 0;
  bool tried_ = false;  // the loop belongs to a trial
  std::int64_t start_ = 0;
};

}  // namespace etc
