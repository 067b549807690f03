#include "tasks/serve/scheduler.h"

#include <algorithm>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"

namespace etc::serve {

Scheduler::Scheduler(const SchedulerLimits& limits) : limits_(limits) {
  const SignalsBlocked for_threads;
  threads_.emplace_back([this] { work(false); });
  if (limits.second_thread) threads_.emplace_back([this] { work(true); });
}

Scheduler::~Scheduler() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Scheduler::submit(Job& job) {
  const std::lock_guard lock(mutex_);
  if (stopped_) throw Refused(503, "the server is being stopped");
  if (limits_.memory > 0 && job.largest_bytes > limits_.memory) {
    throw Refused(413,
                  fmt::format("the request takes {} of memory beside the model's, more than the {} that the memory "
                              "limit leaves: expected a shorter text",
                              byte_size_text(job.largest_bytes), byte_size_text(limits_.memory)));
  }
  if (std::ssize(waiting_) >= limits_.waiting) drop_some();
  if (std::ssize(waiting_) >= limits_.waiting) {
    throw Refused(429, fmt::format("{} requests are waiting, the most: try again later", limits_.waiting));
  }
  job.since_ = std::chrono::steady_clock::now();
  waiting_.push_back(&job);
  arrived_.notify_all();
}

void Scheduler::wait(Job& job) {
  std::unique_lock lock(mutex_);
  job.ended_.wait(lock, [&] { return job.over_; });
  if (job.status_ != 0) throw Refused(job.status_, job.message_);
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  arrived_.notify_all();
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  SchedulerCounts counts = counts_;
  counts.waiting = std::ssize(waiting_);
  return counts;
}

void Scheduler::end(Job& job, int status, const std::string& message) {
  if (status != 0) job.fail(status, message);
  job.over_ = true;
  job.ended_.notify_one();
}

// Removes the jobs whose client has left, or that have waited too long.
void Scheduler::drop_some() {
  const auto oldest =
      std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(limits_.wait_seconds));
  const auto dropped = [&](Job* job) {
    if (job->left && job->left()) {
      ++counts_.left;
      end(*job, kClientLeft, "the client left");
    } else if (job->since_ < oldest) {
      ++counts_.late;
      end(*job, 503, fmt::format("the request waited {} seconds, the most: try again later", limits_.wait_seconds));
    } else {
      return false;
    }
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), dropped), waiting_.end());
}

// The most tokens of the next batch: half of the waiting tokens, unless that is too little.
std::int64_t Scheduler::tokens_of_next(bool beside) const {
  std::int64_t all = 0;
  for (const Job* job : waiting_) all += beside && !is_short(*job) ? 0 : job->tokens;
  return std::min(limits_.batch_tokens, std::max(limits_.half_tokens, (all + 1) / 2));
}

// The jobs to compute next, empty if there are none for this thread; bytes: their memory.
Scheduler::Batch Scheduler::next_batch(bool beside, std::int64_t& bytes) {
  Batch batch;
  bytes = 0;
  if (beside && !(long_in_work_ && warm_)) return batch;
  if (!waiting_.empty()) drop_some();
  // The part of the memory that the first thread may use, so that some is left for the second.
  const std::int64_t share = beside ? limits_.memory : limits_.memory - limits_.memory / 4;
  const std::int64_t most = tokens_of_next(beside);
  std::int64_t tokens = 0, wanted = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Job& job = **at;
    const bool fits = limits_.memory == 0 || bytes_in_use_ + job.largest_bytes <= limits_.memory;
    const bool first = batch.empty() && (!beside || is_short(job)) && fits;
    const bool next = !batch.empty() && job.kind() == batch.front()->kind() &&
                      is_short(job) == is_short(*batch.front()) && tokens + job.tokens <= most &&
                      (limits_.memory == 0 || bytes_in_use_ + wanted + job.bytes <= std::max(share, bytes));
    if (!first && !next) {
      // The oldest job goes first, even if later ones would fit.
      if (batch.empty() && !beside && !fits) return batch;
      ++at;
      continue;
    }
    tokens += job.tokens;
    wanted += job.bytes;
    bytes = std::max(bytes, job.largest_bytes);
    batch.push_back(&job);
    at = waiting_.erase(at);
  }
  if (limits_.memory > 0) bytes = std::max(bytes, std::min(wanted, share - bytes_in_use_));
  counts_.tokens += tokens;
  return batch;
}

void Scheduler::work(bool beside) {
  std::unique_lock lock(mutex_);
  while (true) {
    Batch batch;
    std::int64_t bytes = 0;
    arrived_.wait(lock, [&] {
      batch = next_batch(beside, bytes);
      return !batch.empty() || (stopped_ && waiting_.empty());
    });
    if (batch.empty()) return;
    const auto jobs = std::ssize(batch);
    ++counts_.batches;
    counts_.jobs += jobs;
    counts_.computing += jobs;
    counts_.beside_long += beside ? 1 : 0;
    bytes_in_use_ += bytes;
    if (!beside) long_in_work_ = !is_short(*batch.front());
    if (long_in_work_) arrived_.notify_all();
    lock.unlock();
    compute(batch, bytes);
    lock.lock();
    bytes_in_use_ -= bytes;
    counts_.computing -= jobs;
    if (!beside) long_in_work_ = false;
    warm_ = true;  // one-time work of the model's first call is done, so two threads may compute
    for (Job* job : batch) end(*job, 0, "");
    arrived_.notify_all();
  }
}

void Scheduler::compute(const Batch& batch, std::int64_t bytes) {
  const auto failed = [](Job& job, const std::string& why) { job.fail(500, why); };
  try {
    batch.front()->run(batch, limits_.batch_tokens, bytes);
    return;
  } catch (const std::bad_alloc&) {
    for (Job* job : batch) failed(*job, "out of memory");
    return;
  } catch (const std::exception& error) {
    if (batch.size() == 1) return failed(*batch.front(), error.what());
  }
  // One of them fails: compute them one by one so that the others succeed.
  for (Job* job : batch) {
    try {
      job->status_ = 0;
      job->run({&job, 1}, limits_.batch_tokens, bytes);
    } catch (const std::exception& error) {
      failed(*job, error.what());
    }
  }
}

}  // namespace etc::serve
