// Decides which waiting requests are computed together, and when.
//
// Two threads compute, on a device one. The first takes the request that has waited longest, with later ones of its kind, up to a number
// of tokens. Requests that arrive meanwhile form the next batch, so batches grow with the rate of requests, and no
// request waits for a batch to fill. If half of the waiting tokens is enough for a batch, the first thread takes only
// that half: while the other half is computed, the first half's clients read their answers and send new requests, so
// the processors do not become idle. The second thread works only while the first computes a long request, and takes
// only short ones, so that they are not delayed. Requests of clients that left are dropped when their turn comes, or
// when their place is needed.
//
// An answer's bits do not depend on its batch (inference/answer.h); its latency does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

// A request that is refused: the HTTP status of the answer, and the reason.
class Refused : public std::runtime_error {
 public:
  Refused(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// Status of a Refused whose client left, a number used in the logs of other servers; the answer is not read by anyone.
inline constexpr int kClientLeft = 499;

// The computation of one request.
class Job {
 public:
  virtual ~Job() = default;

  // Only jobs of equal kind go into one batch.
  virtual int kind() const = 0;
  // Computes jobs of this job's kind (this one is among them), in parts of at most this many tokens and, if bytes > 0,
  // bytes at a time; an item that exceeds them is computed alone. Errors are thrown, or set for single jobs with
  // fail().
  virtual void run(std::span<Job* const> jobs, std::int64_t tokens, std::int64_t bytes) = 0;

  std::int64_t tokens = 0;         // of all its items
  std::int64_t bytes = 0;          // memory that all of them take at a time
  std::int64_t largest_bytes = 0;  // memory of its largest item
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
  std::int64_t half_tokens = 2048;  // half of the waiting tokens is a batch of its own from this number on
  std::int64_t waiting = 256;       // jobs at most
  std::int64_t memory = 0;          // bytes that jobs may take at a time; 0: without limit
  double wait_seconds = 300;        // longest waiting time of a job
  bool second_thread = true;        // false on a device, which only one thread may use
};

struct SchedulerCounts {
  std::int64_t waiting = 0, computing = 0;                          // current numbers of jobs
  std::int64_t batches = 0, jobs = 0, tokens = 0, beside_long = 0;  // totals; beside_long: batches of the second thread
  std::int64_t left = 0, late = 0;                                  // numbers of dropped jobs
};

class Scheduler : NotCopied {
 public:
  explicit Scheduler(const SchedulerLimits& limits);
  ~Scheduler();  // call stop() first

  // A job of at most this many tokens is short.
  std::int64_t short_tokens() const { return limits_.batch_tokens / 3; }

  // Queues the job. Throws Refused: 413, it needs more memory than the whole budget; 429, too many wait; 503, stopped.
  void submit(Job& job);
  // Returns when the job was computed. Throws Refused: its failure; 499, its client left; 503, it waited too long.
  void wait(Job& job);

  // Accepts no more jobs; those that wait are still computed.
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
