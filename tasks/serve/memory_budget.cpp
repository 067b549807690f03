#include "tasks/serve/memory_budget.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "etc_core/base/byte_size.h"
#include "tasks/serve/scheduler.h"

namespace etc::serve {

namespace {
constexpr auto kLook = std::chrono::milliseconds(20);  // interval for checking whether the client is still connected
constexpr std::int64_t kLeastFreed = 8'000'000;
}  // namespace

std::optional<MemoryBudget::Part> MemoryBudget::take_free(std::int64_t bytes) {
  if (taken_ + bytes > bytes_) return std::nullopt;
  taken_ += bytes;
  return Part(this, bytes);
}

std::optional<MemoryBudget::Part> MemoryBudget::try_take(std::int64_t bytes) {
  if (bytes_ <= 0) return Part();
  if (bytes > bytes_) {
    throw Refused(413, fmt::format("the request's text may take {} of memory while it is read, more than the {} that "
                                   "the memory limit leaves: expected a shorter text",
                                   byte_size_text(bytes), byte_size_text(bytes_)));
  }
  const std::lock_guard lock(mutex_);
  return take_free(bytes);
}

MemoryBudget::Part MemoryBudget::take(std::int64_t bytes, const std::function<bool()>& left) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    if (auto part = try_take(bytes)) return std::move(*part);
    if (left && left()) throw Refused(kClientLeft, "the client left");
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > wait_seconds_)
      throw Refused(503,
                    fmt::format("the request waited {} seconds for memory, the most: try again later", wait_seconds_));
    std::unique_lock lock(mutex_);
    given_back_.wait_for(lock, kLook);
  }
}

// Each thread's malloc heap keeps small freed blocks; with many threads these add up to a multiple of the budget. So
// freed pages are returned to the system, before others take the part, once parts of half the budget were freed.
void MemoryBudget::give_back(std::int64_t bytes) {
  bool trim = false;
  {
    const std::lock_guard lock(mutex_);
    freed_ += bytes;
    trim = freed_ >= std::max(kLeastFreed, bytes_ / 2);
    if (trim) freed_ = 0;
  }
  if (trim) ::malloc_trim(0);
  {
    const std::lock_guard lock(mutex_);
    taken_ -= bytes;
  }
  given_back_.notify_all();
}

}  // namespace etc::serve
