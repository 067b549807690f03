// Memory that requests take while they are read and answered, beside what computing them takes: shared among them, and
// given back when they are answered.
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
class Room : NotCopied {
 public:
  // Some of it, until the object's end; the room outlives it.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept : room_(std::exchange(other.room_, nullptr)), bytes_(other.bytes_) {}
    Part& operator=(Part&& other) noexcept {
      std::swap(room_, other.room_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Part() {
      if (room_ != nullptr) room_->give_back(bytes_);
    }

   private:
    friend class Room;
    Part(Room* room, std::int64_t bytes) : room_(room), bytes_(bytes) {}

    Room* room_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  // bytes: all there is, 0: without limit. wait_seconds: that take() waits at most.
  Room(std::int64_t bytes, double wait_seconds) : bytes_(bytes), wait_seconds_(wait_seconds) {}

  // nullopt: others have it now. Throws Refused 413 where there never is so much.
  std::optional<Part> try_take(std::int64_t bytes);
  // Waits for it. Throws Refused as well: 499, the client left; 503, it waited too long.
  Part take(std::int64_t bytes, const std::function<bool()>& left);

 private:
  std::optional<Part> take_free(std::int64_t bytes);
  void give_back(std::int64_t bytes);

  const std::int64_t bytes_;
  const double wait_seconds_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::int64_t taken_ = 0, freed_ = 0;  // freed: since malloc gave back what its heaps keep
};

}  // namespace etc::serve
