#include "etc_core/base/large_blocks.h"

#include <cstring>
#include <vector>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/random.h"
#include "tests/support/catch.h"

using namespace etc;

namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

}  // namespace

TEST_CASE("a large block is used again by the next one of its size", "[base]") {
  void* const first = large_blocks::take(3 * kMegabyte + 100);
  REQUIRE(first != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % (2 * kMegabyte) == 0);
  std::memset(first, 1, 3 * kMegabyte + 100);
  large_blocks::give(first, 3 * kMegabyte + 100);
  const std::int64_t kept = large_blocks::report().kept;
  void* const second = large_blocks::take(3 * kMegabyte + 200);  // the same number of pages
  CHECK(second == first);
  CHECK(large_blocks::report().kept < kept);
  large_blocks::give(second, 3 * kMegabyte + 200);
}

TEST_CASE("smaller blocks are cut from a kept one, and freed neighbours are one block again", "[base]") {
  large_blocks::release_kept();
  char* const whole = static_cast<char*>(large_blocks::take(8 * kMegabyte));
  REQUIRE(whole != nullptr);
  large_blocks::give(whole, 8 * kMegabyte);
  std::vector<char*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(static_cast<char*>(large_blocks::take(2 * kMegabyte)));
  for (int i = 0; i < 4; ++i) CHECK(parts[static_cast<std::size_t>(i)] == whole + i * 2 * kMegabyte);
  CHECK(large_blocks::report().kept == 0);
  for (const int i : {2, 0, 3, 1}) large_blocks::give(parts[static_cast<std::size_t>(i)], 2 * kMegabyte);
  CHECK(large_blocks::take(8 * kMegabyte) == whole);
  large_blocks::give(whole, 8 * kMegabyte);
}

TEST_CASE("of the kept blocks that are large enough the smallest is taken, of equal ones the one freed last",
          "[base]") {
  large_blocks::release_kept();
  std::vector<void*> blocks;  // start at a huge page boundary but do not end at one, so none are adjacent
  for (const std::int64_t size : {9, 3, 5, 3}) blocks.push_back(large_blocks::take(size * kMegabyte));
  large_blocks::give(blocks[1], 3 * kMegabyte);
  large_blocks::give(blocks[3], 3 * kMegabyte);
  large_blocks::give(blocks[0], 9 * kMegabyte);
  large_blocks::give(blocks[2], 5 * kMegabyte);
  CHECK(large_blocks::take(4 * kMegabyte) == blocks[2]);
  CHECK(large_blocks::take(3 * kMegabyte) == blocks[3]);
  CHECK(large_blocks::take(3 * kMegabyte) == blocks[1]);
  CHECK(large_blocks::take(9 * kMegabyte) == blocks[0]);
  large_blocks::give(blocks[0], 9 * kMegabyte);
  large_blocks::give(blocks[2], 4 * kMegabyte);
  for (const std::size_t i : {1, 3}) large_blocks::give(blocks[i], 3 * kMegabyte);
}

TEST_CASE("huge pages of several kept blocks become one block, without new memory", "[base]") {
  large_blocks::release_kept();
  std::vector<char*> blocks;  // each with two whole huge pages, none adjacent to another
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(static_cast<char*>(large_blocks::take(5 * kMegabyte)));
    REQUIRE(blocks.back() != nullptr);
    std::memset(blocks.back(), 1 + i, 5 * kMegabyte);
  }
  const large_blocks::Report before = large_blocks::report();
  for (const int i : {0, 1, 3}) large_blocks::give(blocks[static_cast<std::size_t>(i)], 5 * kMegabyte);
  auto* const joined = static_cast<unsigned char*>(large_blocks::take(11 * kMegabyte + 100));
  REQUIRE(joined != nullptr);
  const large_blocks::Report after = large_blocks::report();
  CHECK(after.most_in_use == before.most_in_use);
  CHECK(after.in_use + after.kept == before.in_use + before.kept);
  // The old contents show that the pages were moved; a new page would be zero.
  for (std::int64_t at = 0; at < 11 * kMegabyte; at += 4096) {
    REQUIRE((joined[at] == 1 || joined[at] == 2 || joined[at] == 4));
  }
  std::memset(joined, 9, 11 * kMegabyte + 100);
  for (std::int64_t at = 0; at < 5 * kMegabyte; at += 4096) REQUIRE(blocks[2][at] == 3);
  large_blocks::give(joined, 11 * kMegabyte + 100);
  large_blocks::give(blocks[2], 5 * kMegabyte);
}

TEST_CASE("blocks of any sizes, taken and freed in any order, never overlap and keep their contents", "[base]") {
  large_blocks::release_kept();
  const std::int64_t before = large_blocks::report().in_use;
  struct Block {
    unsigned char* data;
    std::int64_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  for (std::uint64_t step = 0; step < 3000; ++step) {
    const std::uint64_t number = mix_key(7, step);
    if (blocks.size() > 20 || (!blocks.empty() && number % 2 == 0)) {
      const std::size_t at = number / 2 % blocks.size();
      const Block block = blocks[at];
      for (std::int64_t i = 0; i < block.bytes; i += 4096) REQUIRE(block.data[i] == block.mark);
      REQUIRE(block.data[block.bytes - 1] == block.mark);
      large_blocks::give(block.data, block.bytes);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    Block block{nullptr, kMegabyte + static_cast<std::int64_t>(number / 2 % (6 * kMegabyte)),
                static_cast<unsigned char>(step % 251)};
    block.data = static_cast<unsigned char*>(large_blocks::take(block.bytes));
    REQUIRE(block.data != nullptr);
    std::memset(block.data, block.mark, static_cast<std::size_t>(block.bytes));
    blocks.push_back(block);
    const large_blocks::Report report = large_blocks::report();
    REQUIRE(report.in_use + report.kept <= report.most_in_use);
  }
  for (const Block& block : blocks) large_blocks::give(block.data, block.bytes);
  CHECK(large_blocks::report().in_use == before);
}

TEST_CASE("blocks in use and kept ones never take more than was in use at the peak", "[base]") {
  const std::int64_t resident = memory_ledger::process_peak_bytes();
  // Growing sizes, so that no block can be reused: without unmapping, kept blocks would add up to 1.6 GB.
  for (std::int64_t size = 8; size < 56; ++size) {
    std::vector<void*> blocks;
    for (int i = 0; i < 2; ++i) {
      blocks.push_back(large_blocks::take(size * kMegabyte));
      REQUIRE(blocks.back() != nullptr);
      std::memset(blocks.back(), 1, static_cast<std::size_t>(size * kMegabyte));
      const large_blocks::Report report = large_blocks::report();
      CHECK(report.in_use + report.kept <= report.most_in_use);
    }
    for (void* block : blocks) large_blocks::give(block, size * kMegabyte);
  }
  CHECK(memory_ledger::process_peak_bytes() - resident < (2 * 56 + 8) * kMegabyte);
}

TEST_CASE("kept blocks go back to the system when asked to", "[base]") {
  large_blocks::release_kept();
  void* const block = large_blocks::take(64 * kMegabyte);
  REQUIRE(block != nullptr);
  large_blocks::give(block, 64 * kMegabyte);
  CHECK(large_blocks::report().kept == 64 * kMegabyte);
  large_blocks::release_kept();
  CHECK(large_blocks::report().kept == 0);
  CHECK(large_blocks::report().most_in_use == large_blocks::report().in_use);
}

TEST_CASE("more memory than there is gives null and changes nothing", "[base]") {
  const std::int64_t in_use = large_blocks::report().in_use;
  CHECK(large_blocks::take(std::int64_t{1} << 55) == nullptr);
  CHECK(large_blocks::report().in_use == in_use);
}
