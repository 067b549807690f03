#include "etc_core/base/buffer.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"

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
