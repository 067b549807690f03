#include "etc_core/base/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "etc_core/base/integers.h"

namespace etc::large_blocks {

namespace {

constexpr std::int64_t kPage = 4096, kHugePage = std::int64_t{2} << 20;

struct Block {
  void* data;
  std::int64_t bytes;
};

struct State {
  std::mutex mutex;
  std::vector<Block> kept;  // the one freed first is at the front
  Report sums;
};

State& state() {
  static State* const instance = new State;  // never destroyed: buffers of other statics are freed after it would be
  return *instance;
}

std::int64_t whole_pages(std::int64_t bytes) {
  return round_up(bytes, kPage);
}

// A mapping that starts at a huge page's border: one a huge page longer, less what lies before and behind.
void* map(std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes + kHugePage);
  void* const mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(mapped);
  const std::int64_t before =
      (kHugePage - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first)) % kHugePage) % kHugePage;
  char* const block = first + before;
  if (before > 0) ::munmap(first, static_cast<std::size_t>(before));
  if (before < kHugePage) ::munmap(block + bytes, static_cast<std::size_t>(kHugePage - before));
  ::madvise(block, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a wish: a kernel without them says no
  return block;
}

// Gives kept blocks back to the kernel, the ones freed first before the others, until at most `most` bytes are kept.
void keep_at_most(State& s, std::int64_t most) {
  auto end = s.kept.begin();
  for (; end != s.kept.end() && s.sums.kept > most; ++end) {
    ::munmap(end->data, static_cast<std::size_t>(end->bytes));
    s.sums.kept -= end->bytes;
  }
  s.kept.erase(s.kept.begin(), end);
}

}  // namespace

void* take(std::int64_t bytes) {
  bytes = whole_pages(bytes);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  void* data = nullptr;
  // The one freed last is the likeliest to be in a cache.
  const auto same = std::find_if(s.kept.rbegin(), s.kept.rend(), [&](const Block& b) { return b.bytes == bytes; });
  if (same != s.kept.rend()) {
    data = same->data;
    s.sums.kept -= bytes;
    s.kept.erase(std::next(same).base());
  } else {
    keep_at_most(s, std::max<std::int64_t>(0, s.sums.most_in_use - s.sums.in_use - bytes));
    data = map(bytes);
    if (data == nullptr) {
      keep_at_most(s, 0);
      data = map(bytes);
    }
  }
  if (data == nullptr) return nullptr;
  s.sums.in_use += bytes;
  s.sums.most_in_use = std::max(s.sums.most_in_use, s.sums.in_use);
  return data;
}

void give(void* block, std::int64_t bytes) {
  bytes = whole_pages(bytes);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.sums.in_use -= bytes;
  s.sums.kept += bytes;
  s.kept.push_back({block, bytes});
}

void release_kept() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  keep_at_most(s, 0);
  s.sums.most_in_use = s.sums.in_use;
}

Report report() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.sums;
}

}  // namespace etc::large_blocks
