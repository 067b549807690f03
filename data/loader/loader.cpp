#include "data/loader/loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "data/loader/sample_order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"

namespace etc::data {

namespace {

// More than any run uses, yet ordinals cannot overflow.
constexpr std::int64_t kMostSamples = std::int64_t{1} << 60;

void require_at_least(const char* name, std::int64_t lowest, std::int64_t value) {
  if (value < lowest) fail("loader", "{}: expected {} or more, got {}", name, lowest, value);
}

}  // namespace

// produce() runs on one thread only, the reader thread if there is one; `mutex` guards the queue between the threads.
struct Loader::Impl {
  std::shared_ptr<const DatasetReader> reader;
  LoaderOptions options;
  std::int64_t n = 0;

  // Used by the producing thread only.
  std::unique_ptr<SampleOrder> order;
  std::int64_t position = 0;  // ordinal at which the next batch starts

  // Shared by both threads. An entry without a batch marks the end; an exception ends the run, too.
  struct Entry {
    bool has_batch = false;
    LoadedBatch batch;
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> queue;
  bool stopping = false;
  std::thread thread;

  Entry produce() {
    Entry entry;
    try {
      const auto range = order->batch_at(position);
      if (!range) return entry;
      entry.batch = load(*range);
      position = range->end;
      entry.has_batch = true;
    } catch (...) {
      entry.error = std::current_exception();
    }
    return entry;
  }

  // The micro-batches of the whole batch are computed from lengths; only this rank's examples are read.
  LoadedBatch load(SampleRange range) {
    std::vector<std::int64_t> indices, example_tokens;
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      indices.push_back(order->index_of(s));
      example_tokens.push_back(order->tokens()[static_cast<std::size_t>(indices.back())]);
    }
    const std::vector<std::int64_t> sizes =
        cut_micro_batches(example_tokens, options.micro_batch_tokens, options.micro_batch_unit);
    const Share own = share_of(std::ssize(sizes), options.rank, options.ranks);
    LoadedBatch batch;
    batch.first_micro_batch = own.begin;
    batch.all_micro_batches = std::ssize(sizes);
    batch.all_examples = range.end - range.begin;
    batch.epoch = range.begin / n;
    batch.after.samples = range.end;
    std::int64_t first = std::accumulate(sizes.begin(), sizes.begin() + own.begin, std::int64_t{0});
    for (std::int64_t m = own.begin; m < own.end; ++m) {
      auto& micro_batch = batch.micro_batches.emplace_back();
      for (const std::int64_t end = first + sizes[static_cast<std::size_t>(m)]; first < end; ++first) {
        const std::int64_t index = indices[static_cast<std::size_t>(first)];
        const std::int64_t sample = range.begin + first;
        micro_batch.push_back({index, sample, reader->read(index), sample / n});
      }
      batch.examples += std::ssize(micro_batch);
    }
    return batch;
  }

  void read_ahead() {
    while (true) {
      Entry entry = produce();
      const bool last = !entry.has_batch;
      std::unique_lock lock(mutex);
      changed.wait(lock,
                   [&] { return stopping || static_cast<std::int64_t>(queue.size()) < options.prefetch_batches; });
      if (stopping) return;
      queue.push_back(std::move(entry));
      changed.notify_all();
      if (last) return;
    }
  }

  // Takes the oldest entry of the queue. The end entry stays, so that a further call returns the same result.
  Entry take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !queue.empty(); });
    if (!queue.front().has_batch) return {false, {}, queue.front().error};
    Entry entry = std::move(queue.front());
    queue.pop_front();
    changed.notify_all();
    return entry;
  }
};

Loader::Loader(std::shared_ptr<const DatasetReader> reader, LoaderOptions options, LoaderPosition start)
    : impl_(std::make_unique<Impl>()) {
  require_at_least("batch_examples", 1, options.batch_examples);
  require_at_least("batch_tokens", 0, options.batch_tokens);
  require_at_least("micro_batch_tokens", 0, options.micro_batch_tokens);
  require_at_least("micro_batch_unit", 0, options.micro_batch_unit);
  require_at_least("ranks", 1, options.ranks);
  require_at_least("rank", 0, options.rank);
  require_at_least("epochs", 0, options.epochs);
  require_at_least("prefetch_batches", 0, options.prefetch_batches);
  require_at_least("start.samples", 0, start.samples);
  if (start.samples > kMostSamples)
    fail("loader", "start.samples: expected a position in a run, got {}", start.samples);
  if (options.rank >= options.ranks)
    fail("loader", "expected a rank below {} (ranks), got {}", options.ranks, options.rank);
  const std::int64_t n = reader->size();
  if (n == 0) fail("loader", "the data set holds no examples (were all records rejected? see `etc info`)");
  if (options.epochs > INT64_MAX / n)
    fail("loader", "epochs: {} epochs of {} examples are too many", options.epochs, n);
  if (options.streams < 0 || options.streams > n)
    fail("loader", "streams: expected 0 (none) to {} (examples), got {}", n, options.streams);
  impl_->reader = std::move(reader);
  impl_->options = options;
  impl_->n = n;
  impl_->order = std::make_unique<SampleOrder>(*impl_->reader, options);
  impl_->position = start.samples;
  if (options.prefetch_batches > 0) {
    const SignalsBlocked blocked;  // for the new thread
    try {
      impl_->thread = std::thread([impl = impl_.get()] { impl->read_ahead(); });
    } catch (const std::system_error&) {  // the system gives no thread: next() reads itself
    }
  }
}

Loader::~Loader() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

bool Loader::next(LoadedBatch& batch) {
  Impl::Entry entry = impl_->thread.joinable() ? impl_->take() : impl_->produce();
  if (entry.error) std::rethrow_exception(entry.error);
  if (entry.has_batch) batch = std::move(entry.batch);
  return entry.has_batch;
}

std::int64_t Loader::batches_per_epoch() const {
  return impl_->order->batches_per_epoch();
}

}  // namespace etc::data
