// Shadow memory of the emulator: which thread wrote and read which word, and when.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace etc::simt {

// One thread at one moment, for ordering: a block barrier ends an interval for all threads of the block, a warp barrier
// for the lanes of its warp.
struct Moment {
  std::uint16_t thread = 0;
  std::uint16_t interval = 0;       // block barriers passed; where it wraps, a race may be reported that is none
  std::uint32_t warp_interval = 0;  // warp barriers passed, of this thread's warp
  std::uint32_t warp() const { return thread / 32u; }
  bool operator==(const Moment&) const = default;
};

// Whether no barrier orders the earlier access `a` before `b`.
inline bool unordered(const Moment& a, const Moment& b) {
  if (a.thread == b.thread || a.interval != b.interval) return false;
  return a.warp() != b.warp() || a.warp_interval == b.warp_interval;
}

enum class Trouble { none, uninitialised, in_flight, race };

// What is wrong with an access, and the other thread of a conflict.
struct Conflict {
  Trouble trouble = Trouble::none;
  std::uint32_t other = 0;
};

// Two bytes of shared memory. Kept small, because a block's cells should fit into the host's cache.
class SharedCell {
 public:
  static constexpr std::uint32_t kBlocks = std::uint32_t{1} << 28;

  // A block's memory begins unwritten. Cells are reset at the first access of a block, numbered from 1 to kBlocks - 1 over
  // all launches, because most kernels access few of the cells that they reserve.
  SharedCell& of_block(std::uint32_t block) {
    if (block_ != block) {
      *this = SharedCell();
      block_ = block & (kBlocks - 1);
    }
    return *this;
  }
  Conflict read(const Moment& now);
  Conflict write(const Moment& now);
  // A copy_async of this thread will write the cell; no thread may access it until the copy has completed.
  Conflict begin_copy(const Moment& now);
  void land(const Moment& now);

 private:
  std::uint32_t block_ : 28 = 0;
  std::uint32_t written_ : 1 = 0;
  std::uint32_t in_flight_ : 1 = 0;
  std::uint32_t reader_count_ : 2 = 0;
  // Warps that have read in the interval of the last reader. Within one warp the last two different threads are enough: one
  // of them is not the writer, and the earlier readers were ordered before both.
  std::uint32_t reading_warps_ = 0;
  std::array<Moment, 2> readers_{};  // the last one first
  Moment writer_;
};

// Defined here because these functions, inlined, take most of the time of a kernel's emulation.
inline Conflict SharedCell::read(const Moment& now) {
  if (in_flight_) return {Trouble::in_flight, writer_.thread};
  if (!written_) return {Trouble::uninitialised};
  if (unordered(writer_, now)) return {Trouble::race, writer_.thread};
  if (reader_count_ > 0 && readers_[0] == now) return {};  // nothing of the following would change
  if (reader_count_ == 0 || readers_[0].interval != now.interval) {
    reading_warps_ = 0;
    reader_count_ = 0;
  }
  reading_warps_ |= 1u << now.warp();
  if (reader_count_ == 0 || readers_[0].thread != now.thread) {
    readers_[1] = readers_[0];
    reader_count_ = reader_count_ == 0 ? 1 : 2;
  }
  readers_[0] = now;
  return {};
}

inline Conflict SharedCell::write(const Moment& now) {
  if (in_flight_) return {Trouble::in_flight, writer_.thread};
  if (written_ && unordered(writer_, now)) return {Trouble::race, writer_.thread};
  for (std::size_t i = 0; i < reader_count_; ++i) {
    if (unordered(readers_[i], now)) return {Trouble::race, readers_[i].thread};
  }
  // Two readers of this warp may have replaced a reader of another warp in readers_.
  if (reader_count_ > 0 && readers_[0].interval == now.interval && (reading_warps_ & ~(1u << now.warp())) != 0) {
    return {Trouble::race, readers_[0].thread};
  }
  written_ = 1;
  writer_ = now;
  return {};
}

inline Conflict SharedCell::begin_copy(const Moment& now) {
  const Conflict conflict = write(now);
  in_flight_ = 1;
  return conflict;
}

inline void SharedCell::land(const Moment& now) {
  in_flight_ = 0;
  written_ = 1;
  writer_ = now;
}

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

inline GlobalShadow::Store* GlobalShadow::find(std::uintptr_t address) {
  const std::uintptr_t page = address / kPageBytes;
  Remembered& slot = remembered_[page % remembered_.size()];
  if (slot.page != page) {
    const auto found = pages_.find(page);
    slot = {page, found == pages_.end() ? nullptr : &found->second};
  }
  return slot.place == nullptr ? nullptr : &slot.place->words[address % kPageBytes / 4];
}

}  // namespace etc::simt
