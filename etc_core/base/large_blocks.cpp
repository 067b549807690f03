#include "etc_core/base/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "etc_core/base/integers.h"

namespace etc::large_blocks {

namespace {

constexpr std::int64_t kPage = 4096, kHugePage = std::int64_t{2} << 20;
// Every gathered huge page may be a mapping of its own, of which the kernel allows a process 65,530.
constexpr std::int64_t kMostGathered = std::int64_t{32} << 30;

struct Kept {
  std::int64_t bytes;
  std::uint64_t freed;  // ordinal of the latest give() that changed the block
};

struct State {
  std::mutex mutex;
  std::map<char*, Kept> kept;  // by address; never adjacent, because neighbours are merged
  std::uint64_t gives = 0;
  Report sums;
};

State& state() {
  static State* const instance = new State;  // never destroyed, because static buffers may be freed later
  return *instance;
}

std::int64_t whole_pages(std::int64_t bytes) {
  return round_up(bytes, kPage);
}

std::int64_t address_of(const char* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
}

// A mapping that starts at a huge page boundary: maps one huge page more and unmaps the excess before and after it.
char* map(std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes + kHugePage);
  void* const mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(mapped);
  const std::int64_t before = (kHugePage - address_of(first) % kHugePage) % kHugePage;
  char* const block = first + before;
  if (before > 0) ::munmap(first, static_cast<std::size_t>(before));
  if (before < kHugePage) ::munmap(block + bytes, static_cast<std::size_t>(kHugePage - before));
  ::madvise(block, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a hint: fails on kernels without huge pages
  return block;
}

// Adds a block, merged with the kept blocks on both sides of it.
void keep(State& s, char* data, std::int64_t bytes, std::uint64_t freed) {
  s.sums.kept += bytes;
  auto after = s.kept.lower_bound(data);
  if (after != s.kept.end() && data + bytes == after->first) {
    bytes += after->second.bytes;
    after = s.kept.erase(after);
  }
  if (after != s.kept.begin()) {
    auto& [begin, before] = *std::prev(after);
    if (begin + before.bytes == data) {
      before = {before.bytes + bytes, freed};
      return;
    }
  }
  s.kept.emplace_hint(after, data, Kept{bytes, freed});
}

// Takes memory from the start of the smallest kept block that is large enough (best fit) and keeps the rest. Of equal
// blocks it takes the one freed last, which is the most likely to be in a cache. Null when none is large enough.
char* take_kept(State& s, std::int64_t bytes) {
  auto best = s.kept.end();
  for (auto block = s.kept.begin(); block != s.kept.end(); ++block) {
    if (block->second.bytes < bytes) continue;
    const auto order = [](const Kept& kept) { return std::pair(-kept.bytes, kept.freed); };
    if (best == s.kept.end() || order(block->second) > order(best->second)) best = block;
  }
  if (best == s.kept.end()) return nullptr;
  const auto [data, block] = *best;
  const auto next = s.kept.erase(best);
  if (block.bytes > bytes) s.kept.emplace_hint(next, data + bytes, Kept{block.bytes - bytes, block.freed});
  s.sums.kept -= bytes;
  return data;
}

// Unmaps kept memory, the block freed first before the others, until at most `most` bytes are kept. If only part of a
// block must go, its end is unmapped from a huge page boundary on, because the kernel keeps partly used huge pages.
void keep_at_most(State& s, std::int64_t most) {
  while (s.sums.kept > most) {
    const auto oldest = std::min_element(s.kept.begin(), s.kept.end(),
                                         [](const auto& a, const auto& b) { return a.second.freed < b.second.freed; });
    auto& [data, block] = *oldest;
    const std::int64_t end = (address_of(data) + block.bytes - (s.sums.kept - most)) / kHugePage * kHugePage;
    const std::int64_t stays = std::max<std::int64_t>(0, end - address_of(data)), goes = block.bytes - stays;
    ::munmap(data + stays, static_cast<std::size_t>(goes));
    s.sums.kept -= goes;
    block.bytes = stays;
    if (stays == 0) s.kept.erase(oldest);
  }
}

// The whole huge pages within a kept block.
struct HugePages {
  char* first = nullptr;
  std::int64_t bytes = 0;
};
HugePages huge_pages(char* data, std::int64_t bytes) {
  const std::int64_t first = round_up(address_of(data), kHugePage) - address_of(data);
  return {data + first, std::max<std::int64_t>(0, (bytes - first) / kHugePage * kHugePage)};
}

// Moves the last huge page of some kept block, the smallest that has one, to the address `to`. False when there is none,
// or when the kernel refuses.
bool move_huge_page(State& s, char* to) {
  auto least = s.kept.end();
  for (auto block = s.kept.begin(); block != s.kept.end(); ++block) {
    if (huge_pages(block->first, block->second.bytes).bytes == 0) continue;
    if (least == s.kept.end() || block->second.bytes < least->second.bytes) least = block;
  }
  if (least == s.kept.end()) return false;
  const auto [data, block] = *least;
  const HugePages pages = huge_pages(data, block.bytes);
  char* const page = pages.first + pages.bytes - kHugePage;
  // A huge page is part of one mapping, because all mappings start at huge page boundaries.
  if (::mremap(page, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
    // The kernel may have unmapped the place before it failed (lack of its own memory).
    ::mmap(to, kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return false;
  }
  s.kept.erase(least);
  if (page > data) s.kept.emplace(data, Kept{page - data, block.freed});
  const std::int64_t behind = data + block.bytes - (page + kHugePage);
  if (behind > 0) s.kept.emplace(page + kHugePage, Kept{behind, block.freed});
  s.sums.kept -= kHugePage;
  return true;
}

// A new mapping. Huge pages of kept blocks are moved into it as far as they reach, since these need not be cleared
// (clearing 650 MB took 8 % of a training step in bf16); the rest is new memory: whole huge pages if the guarantee leaves
// room for them, of which the unused end is kept.
char* take_mapped(State& s, std::int64_t bytes) {
  const std::int64_t room = s.sums.most_in_use - s.sums.in_use, rounded = round_up(bytes, kHugePage);
  char* data = map(rounded);
  if (data == nullptr) {
    keep_at_most(s, 0);
    return map(bytes);
  }
  std::int64_t moved = 0;
  while (moved < rounded && s.sums.most_in_use <= kMostGathered && move_huge_page(s, data + moved)) moved += kHugePage;
  keep_at_most(s, std::max<std::int64_t>(0, room - bytes));
  if (rounded == bytes) return data;
  if (s.sums.kept + rounded <= room) {
    keep(s, data + bytes, rounded - bytes, s.gives);
  } else {
    ::munmap(data + bytes, static_cast<std::size_t>(rounded - bytes));
  }
  return data;
}

}  // namespace

void* take(std::int64_t bytes) {
  bytes = whole_pages(bytes);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  char* data = take_kept(s, bytes);
  if (data == nullptr) data = take_mapped(s, bytes);
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
  keep(s, static_cast<char*>(block), bytes, ++s.gives);
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
