#include "tests/support/simt/shadow.h"

namespace etc::simt {

Trouble SharedCell::read(const Moment& now) {
  other_ = writer_.thread;
  if (in_flight_) return Trouble::in_flight;
  if (!written_) return Trouble::uninitialised;
  if (unordered(writer_, now)) return Trouble::race;
  if (reader_count_ == 0 || read_interval_ != now.interval) {
    read_interval_ = now.interval;
    reading_warps_ = 0;
    reader_count_ = 0;
  }
  reading_warps_ |= 1u << now.warp();
  if (reader_count_ == 0 || readers_[0].thread != now.thread) {
    readers_[1] = readers_[0];
    reader_count_ = reader_count_ == 0 ? 1 : 2;
  }
  readers_[0] = now;
  return Trouble::none;
}

Trouble SharedCell::write(const Moment& now) {
  other_ = writer_.thread;
  if (in_flight_) return Trouble::in_flight;
  if (written_ && unordered(writer_, now)) return Trouble::race;
  for (int i = 0; i < reader_count_; ++i) {
    other_ = readers_[static_cast<std::size_t>(i)].thread;
    if (unordered(readers_[static_cast<std::size_t>(i)], now)) return Trouble::race;
  }
  // Two readers of this warp may have replaced a reader of another warp in readers_.
  if (reader_count_ > 0 && read_interval_ == now.interval && (reading_warps_ & ~(1u << now.warp())) != 0) {
    return Trouble::race;
  }
  written_ = true;
  writer_ = now;
  return Trouble::none;
}

Trouble SharedCell::begin_copy(const Moment& now) {
  const Trouble trouble = write(now);
  in_flight_ = true;
  return trouble;
}

void SharedCell::land(const Moment& now) {
  in_flight_ = false;
  written_ = true;
  writer_ = now;
}

void GlobalShadow::forget() {
  pages_.clear();
  remembered_.fill({});
}

GlobalShadow::Store* GlobalShadow::find(std::uintptr_t address) {
  const std::uintptr_t page = address / kPageBytes;
  Remembered& slot = remembered_[page % remembered_.size()];
  if (slot.page != page) {
    const auto found = pages_.find(page);
    slot = {page, found == pages_.end() ? nullptr : &found->second};
  }
  return slot.place == nullptr ? nullptr : &slot.place->words[address % kPageBytes / 4];
}

GlobalShadow::Store& GlobalShadow::at(std::uintptr_t address) {
  if (Store* found = find(address)) return *found;
  const std::uintptr_t page = address / kPageBytes;
  Page& place = pages_[page];  // references to elements of an unordered_map stay valid when it grows
  remembered_[page % remembered_.size()] = {page, &place};
  return place.words[address % kPageBytes / 4];
}

}  // namespace etc::simt
