#include "etc_core/base/large_blocks.h"

#include <cstring>
#include <vector>

#include "etc_core/base/memory_ledger.h"
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
  void* const second = large_blocks::take(3 * kMegabyte + 200);  // as many pages
  CHECK(second == first);
  CHECK(large_blocks::report().kept < kept);
  large_blocks::give(second, 3 * kMegabyte + 200);
}

TEST_CASE("blocks in use and kept ones never take more than was in use at the peak", "[base]") {
  const std::int64_t resident = memory_ledger::process_peak_bytes();
  // Growing sizes, so that no block is used again: without giving back, the kept ones would come to 1.6 GB.
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
