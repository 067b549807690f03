#include <algorithm>
#include <cstdlib>
#include <vector>

#include "etc_core/base/buffer.h"
#include "etc_core/base/process_memory.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

TEST_CASE("the ledger counts a buffer while it lives and remembers the peak", "[base]") {
  const auto before = memory_ledger::report();
  memory_ledger::reset_peak();
  {
    const Buffer<float> buffer(1024, Purpose::scores);
    const auto held = memory_ledger::report();
    REQUIRE(held.current[static_cast<int>(Purpose::scores)] - before.current[static_cast<int>(Purpose::scores)] ==
            4096);
  }
  const auto after = memory_ledger::report();
  REQUIRE(after.total == before.total);
  REQUIRE(after.peak == before.total + 4096);
  REQUIRE(after.at_peak[static_cast<int>(Purpose::scores)] >= 4096);
}

TEST_CASE("memory that cannot be allocated is an error with the ledger, not a crash", "[base]") {
  REQUIRE_THROWS_WITH(Buffer<float>(std::int64_t{1} << 50, Purpose::scores),
                      Catch::Contains("bytes for scores; in use") && Catch::Contains("activations"));
}

TEST_CASE("buffers are aligned to 64 bytes and empty buffers cost nothing", "[base]") {
  const Buffer<char> odd(3, Purpose::scratch);
  REQUIRE(reinterpret_cast<std::uintptr_t>(odd.data()) % 64 == 0);
  const Buffer<float> none(0, Purpose::scratch);
  REQUIRE(none.data() == nullptr);
  REQUIRE(none.empty());
}

TEST_CASE("memory is told in one line", "[base]") {
  ProcessMemory memory;
  memory.buffers.peak = 2'400'000'000;
  memory.buffers.at_peak[static_cast<int>(Purpose::weights)] = 1'400'000'000;
  memory.buffers.at_peak[static_cast<int>(Purpose::scores)] = 1'000'000'000;
  memory.beside = 100'000'000;
  CHECK(memory_text(memory) == "2.50 GB: weights 1.40, scores 1.00, program 0.10");
  memory.buffers.peak = 2'500'000;
  memory.buffers.at_peak = {};
  memory.buffers.at_peak[static_cast<int>(Purpose::labels)] = 2'500'000;
  memory.beside = 0;
  CHECK(memory_text(memory) == "2.5 MB: labels 2.5");
}

TEST_CASE("what is beside the buffers is what is no buffer", "[base]") {
  const std::int64_t before = bytes_beside_buffers();
  REQUIRE(before > 1'000'000);
  Buffer<char> buffer(16 << 20, Purpose::scratch);
  std::fill(buffer.begin(), buffer.end(), 'x');
  CHECK(std::abs(bytes_beside_buffers() - before) < 1'500'000);
  const std::vector<char> no_buffer(16 << 20, 'x');
  CHECK(std::abs(bytes_beside_buffers() - before - std::ssize(no_buffer)) < 1'500'000);
}

TEST_CASE("the process's peak is not that of the program that started it", "[base]") {
  // If the kernel supports it, the peak can be reset: a past peak of 16 MB does not stay.
  { const std::vector<char> large(16 << 20, 'x'); }
  const std::int64_t high = memory_ledger::process_peak_bytes();
  if (!reset_process_peak()) return test::skip("the kernel does not reset peaks");
  CHECK(memory_ledger::process_peak_bytes() < high - (8 << 20));
  CHECK(measured_memory(Device::cpu).peak() >= memory_ledger::report().peak);
}
