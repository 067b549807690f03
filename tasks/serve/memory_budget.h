// A budget for the memory that requests take while they are read and answered, in addition to the memory of computing
// them. It is shared among the requests; each part is returned when its request is answered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "etc_core/base/not_copied.h"

namespace etc::serve {

// Thread-safe.
class MemoryBudget : NotCopied {
 public:
  // A reserved part, returned in the destructor; the budget must outlive it.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Part& operator=(Part&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Part() {
      if (budget_ != nullptr) budget_->give_back(bytes_);
    }

   private:
    friend class MemoryBudget;
    Part(MemoryBudget* budget, std::int64_t bytes) : budget_(budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  // bytes: the whole budget, 0: without limit. wait_seconds: the longest time take() waits.
  MemoryBudget(std::int64_t bytes, double wait_seconds) : bytes_(bytes), wait_seconds_(wait_seconds) {}

  // nullopt: not available now. Throws Refused 413 if it exceeds the whole budget.
  std::optional<Part> try_take(std::int64_t bytes);
  // Waits until the bytes are available. Also throws Refused: 499, the client left; 503, it waited too long.
  Part take(std::int64_t bytes, const std::function<bool()>& left);

 private:
  std::optional<Part> take_free(std::int64_t bytes);
  void give_back(std::int64_t bytes);

  const std::int64_t bytes_;
  const double wait_seconds_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::int64_t taken_ = 0, freed_ = 0;  // freed: since the last malloc_trim
};

}  // namespace etc::serve
