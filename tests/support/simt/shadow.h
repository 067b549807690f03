// Shadow memory of the emulator: which thread wrote and read which word, and when.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace etc::simt {

// One thread at one moment, for ordering: a block barrier ends an interval for all threads of the block, a warp barrier
// for the lanes of its warp.
struct Moment {
  std::uint32_t thread = 0;
  std::uint32_t interval = 0;       // block barriers passed
  std::uint32_t warp_interval = 0;  // warp barriers passed, of this thread's warp
  std::uint32_t warp() const { return thread / 32; }
};

// Whether no barrier orders the earlier access `a` before `b`.
inline bool unordered(const Moment& a, const Moment& b) {
  if (a.thread == b.thread || a.interval != b.interval) return false;
  return a.warp() != b.warp() || a.warp_interval == b.warp_interval;
}

enum class Trouble { none, uninitialised, in_flight, race };

// Two bytes of shared memory.
class SharedCell {
 public:
  void forget() { *this = SharedCell(); }
  Trouble read(const Moment& now);
  Trouble write(const Moment& now);
  // A copy_async of this thread will write the cell; no thread may access it until the copy has completed.
  Trouble begin_copy(const Moment& now);
  void land(const Moment& now);
  std::uint32_t other() const { return other_; }  // the other thread of the conflict

 private:
  bool written_ = false, in_flight_ = false;
  Moment writer_;
  // Warps that have read in `read_interval_`. Within one warp the last two different threads are enough: one of them is
  // not the writer, and the earlier readers were ordered before both.
  std::uint32_t read_interval_ = 0, reading_warps_ = 0;
  std::array<Moment, 2> readers_{};
  int reader_count_ = 0;
  std::uint32_t other_ = 0;
};

// Stores to global memory during one launch, by words of four bytes.
class GlobalShadow {
 public:
  struct Store {
    std::int64_t block = -1;  // -1: none
    Moment moment;
  };
  void forget();
  // The last store to the word at `address`; null if its page has none.
  Store* find(std::uintptr_t address);
  Store& at(std::uintptr_t address);

 private:
  static constexpr std::uintptr_t kPageBytes = 4096;
  struct Page {
    std::array<Store, kPageBytes / 4> words;
  };
  std::unordered_map<std::uintptr_t, Page> pages_;
  // Cache of looked-up pages, because most loads are from pages without stores.
  struct Remembered {
    std::uintptr_t page = ~std::uintptr_t{0};
    Page* place = nullptr;
  };
  std::array<Remembered, 256> remembered_{};
};

}  // namespace etc::simt
