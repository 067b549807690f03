#include "etc_core/ops/cpu/scratch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "etc_core/base/buffer.h"
#include "etc_core/base/integers.h"

namespace etc::ops::cpu {

namespace {
constexpr std::int64_t kAlignment = 64;  // a cache line, and the largest vector
}  // namespace

// The stack of one thread. Its chunks never move, since kernels hold pointers into them while more memory is taken.
struct Arena {
  std::vector<Bytes> chunks;
  std::int64_t chunk = 0;         // the one in use
  std::int64_t offset = 0;        // its first free byte
  std::int64_t wanted = 1 << 18;  // size of the next chunk, at least
};

namespace {

Arena& arena() {
  thread_local Arena own;
  return own;
}

}  // namespace

Scratch::Scratch() : chunk_(arena().chunk), offset_(arena().offset) {}

Scratch::~Scratch() {
  Arena& a = arena();
  a.chunk = chunk_;
  a.offset = offset_;
  if (chunk_ == 0 && offset_ == 0 && a.chunks.size() > 1) {
    // Nothing is in use: replace the chunks by one as large as all of them, so that the next call fits a single chunk.
    a.wanted = 0;
    for (const Bytes& chunk : a.chunks) a.wanted += chunk.size();
    a.chunks.clear();
  }
}

void* Scratch::take_bytes(std::int64_t size) {
  Arena& a = arena();
  size = round_up(size, kAlignment);
  const auto fits = [&] {
    return a.chunk < static_cast<std::int64_t>(a.chunks.size()) &&
           a.offset + size <= a.chunks[static_cast<std::size_t>(a.chunk)].size();
  };
  // If the rest of a chunk is too small, it stays unused until the stack is unwound below it.
  while (!fits()) {
    if (a.chunk >= static_cast<std::int64_t>(a.chunks.size())) {
      a.chunks.emplace_back(std::max(size, a.wanted), Purpose::scratch);
    } else {
      ++a.chunk;
    }
    a.offset = 0;
  }
  auto* start = static_cast<char*>(a.chunks[static_cast<std::size_t>(a.chunk)].data()) + a.offset;
  a.offset += size;
  return start;
}

CountingScratch::CountingScratch() : own_(std::make_unique<Arena>(std::exchange(arena(), {}))) {
  Arena& counted = arena();
  counted.wanted = own_->wanted;
  for (const Bytes& chunk : own_->chunks) {
    memory_ledger::charge(Purpose::scratch, -chunk.size());  // already charged as part of the memory the process holds
    counted.chunks.emplace_back(chunk.size(), Purpose::scratch);
  }
}

CountingScratch::~CountingScratch() {
  arena() = std::move(*own_);
}

}  // namespace etc::ops::cpu
