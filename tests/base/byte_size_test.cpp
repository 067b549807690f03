#include "etc_core/base/byte_size.h"

#include "etc_core/base/duration.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("sizes of memory are read as people write them", "[base]") {
  CHECK(parse_byte_size("8GB", "x") == 8'000'000'000);
  CHECK(parse_byte_size("1.5 gb", "x") == 1'500'000'000);
  CHECK(parse_byte_size("500MB", "x") == 500'000'000);
  CHECK(parse_byte_size("8GiB", "x") == std::int64_t{8} << 30);
  CHECK(parse_byte_size("64kib", "x") == 65536);
  CHECK(parse_byte_size("4096", "x") == 4096);
}

TEST_CASE("what is no size of memory is refused with an example of one", "[base]") {
  for (const char* text : {"", "GB", "8 apples", "-8GB", "0", "nan", "inf", "8GBs", "1e30TB", "8 B 9"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_byte_size(text, "--memory-limit"),
                      Catch::Contains("--memory-limit: expected a size such as 8GB"));
  }
}

TEST_CASE("sizes of memory are told in the larger of two units", "[base]") {
  CHECK(byte_size_text(2'500'000'000) == "2.50 GB");
  CHECK(byte_size_text(16'400'000) == "16.4 MB");
}

TEST_CASE("lengths of time are read as people write them", "[base]") {
  CHECK(parse_duration("15min", "x") == 900);
  CHECK(parse_duration("1.5 h", "x") == 5400);
  CHECK(parse_duration("90s", "x") == 90);
  CHECK(parse_duration("1d", "x") == 86'400);
  CHECK(parse_duration("200ms", "x") == 0.2);
  for (const char* text : {"", "min", "15", "0s", "-1h", "15 m", "nans", "1h 5min"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_duration(text, "--save-every"),
                      Catch::StartsWith("--save-every: expected a time such as 90s, 15min or 2h, got "));
  }
}
