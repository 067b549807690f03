// Which waiting requests are computed together, and when.
//
// Two threads compute. The first takes the request that has waited longest, with others of its kind behind it, up to a
// number of tokens; what comes meanwhile is the next batch, so batches grow as requests come faster and nobody waits for
// one to fill. It leaves half of what waits to the next batch, where a half is worth computing: while that is computed,
// the first half's clients read and ask again, and the processors do not wait for them. The second thread only works while the first is at a long request, and takes short ones alone: they are
// not held up. Requests of clients that left are dropped when their turn comes, or when room is needed.
//
// What is in a batch does not touch an answer's bits (inference/answer.h); how long it takes does depend on it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

// A request that is not answered as it was meant: the status of the answer, and why.
class Refused : public std::runtime_error {
 public:
  Refused(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// Of a Refused whose client left, as other servers' logs have it; nobody reads the answer.
inline constexpr int kClientLeft = 499;

// The computation of one request.
class Job {
 public:
  virtual ~Job() = default;

  // Of those that go into one batch: equal.
  virtual int kind() const = 0;
  // Computes jobs of this one's kind, which is among them, in parts of at most so many tokens and, where bytes > 0, bytes
  // at a time, one of an item that has more. What goes wrong is thrown, or put into single jobs by fail().
  virtual void run(std::span<Job* const> jobs, std::int64_t tokens, std::int64_t bytes) = 0;

  std::int64_t tokens = 0;         // of all its items
  std::int64_t bytes = 0;          // of memory that all of them take at a time
  std::int64_t largest_bytes = 0;  // that its largest item takes
  std::function<bool()> left;      // whether its client has left; empty: it stays

  void fail(int status, const std::string& message) { status_ = status, message_ = message; }

 private:
  friend class Scheduler;
  std::chrono::steady_clock::time_point since_;
  int status_ = 0;  // 0: computed
  std::string message_;
  bool over_ = false;
  std::condition_variable ended_;
};

struct SchedulerLimits {
  std::int64_t batch_tokens = 16384;
  std::int64_t half_tokens = 2048;  // half of what waits is a batch of its own from so many tokens on
  std::int64_t waiting = 256;       // jobs at most
  std::int64_t memory = 0;          // bytes that jobs may take at a time; 0: without limit
  double wait_seconds = 300;        // that a job waits at most
};

struct SchedulerCounts {
  std::int64_t waiting = 0, computing = 0;                          // jobs now
  std::int64_t batches = 0, jobs = 0, tokens = 0, beside_long = 0;  // so far; batches of the second thread
  std::int64_t left = 0, late = 0;                                  // jobs that were dropped
};

class Scheduler : NotCopied {
 public:
  explicit Scheduler(const SchedulerLimits& limits);
  ~Scheduler();  // after stop()

  // A job of at most so many tokens is short.
  std::int64_t short_tokens() const { return limits_.batch_tokens / 3; }

  // Queues the job. Throws Refused: 413, it takes more memory than there ever is; 429, too many wait; 503, stopped.
  void submit(Job& job);
  // Returns when the job was computed. Throws Refused: as it failed; 499, its client left; 503, it waited too long.
  void wait(Job& job);

  // Takes no more jobs; those that wait are computed.
  void stop();

  SchedulerCounts counts() const;

 private:
  using Batch = std::vector<Job*>;

  bool is_short(const Job& job) const { return job.tokens <= short_tokens(); }
  void work(bool beside);
  std::int64_t tokens_of_next(bool beside) const;
  Batch next_batch(bool beside, std::int64_t& bytes);
  void drop_some();
  void end(Job& job, int status, const std::string& message);
  void compute(const Batch& batch, std::int64_t bytes);

  const SchedulerLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job*> waiting_;
  std::int64_t bytes_in_use_ = 0;
  bool long_in_work_ = false, warm_ = false, stopped_ = false;
  SchedulerCounts counts_;
  std::vector<std::thread> threads_;
};

}  // namespace etc::serve
