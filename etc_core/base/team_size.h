// On how many threads short loops run: on as many as make them fast, found by trying.
//
// A second processor is not always a gain. It may be the same core's other hardware thread, a core so far away that
// passing a layer's rows costs more than computing them, or wanted by other programs, for whose time slice the loop then
// waits. No counter of the system tells all of this, the loops' own times do. So now and then a few milliseconds of
// short loops run on half or twice the threads, and the count whose loops take less time is kept. Results do not
// depend on it (parallel.h).
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

  // Loops that take longer on all threads always run on all of them: trying costs too much, and waiting is little.
  static constexpr std::int64_t kShort = 2'000'000;
  static constexpr std::int64_t kWarmUp = 1'000'000;  // time of a trial's first loops: threads wake up, caches fill
  static constexpr std::int64_t kTrial = 5'000'000;   // and of those that it compares
  static constexpr std::int64_t kFirstPause = 100'000'000;      // before the first trial and after a change
  static constexpr std::int64_t kLongestPause = 2'000'000'000;  // pauses double as long as trials change nothing
  static constexpr double kGain = 0.95;                         // time by which another count has to be better

 private:
  // What is known of one kind of loop.
  struct Kind {
    std::uint64_t key = 0;
    bool run = false;                   // at any count
    std::int64_t usual = 0;             // nanoseconds on all threads: of the fastest lately
    std::int64_t loops = 0, total = 0;  // at the present count, nanoseconds
  };

  static bool is_short(const Kind& kind);
  Kind* find(std::uint64_t key);
  void restart(int most, std::int64_t now);
  void start_trial();
  void finish_trial(std::int64_t now);

  static constexpr std::int64_t kKnown = 4;     // loops of a kind before its mean is used
  static constexpr std::int64_t kSlowRise = 8;  // the share of a longer time that counts
  static constexpr std::int64_t kMean = 64;     // and after which older ones count half

  static constexpr std::size_t kNear = 8;  // places a kind may have
  std::array<Kind, 1024> kinds_{};
  int most_ = 0, size_ = 0;
  int trial_ = 0;         // threads of the trial under way; 0: none
  bool upwards_ = false;  // the next trial, where both ways are open
  std::int64_t next_trial_ = 0, pause_ = kFirstPause;
  double expected_ = 0, measured_ = 0;  // nanoseconds of the trial's loops: at size_, at trial_
  std::int64_t warmed_up_ = 0;          // of its first ones

  // The loop under way.
  Kind* kind_ = nullptr;
  int threads_ = 0;
  bool tried_ = false;  // it is one of the trial's
  std::int64_t start_ = 0;
};

}  // namespace etc
