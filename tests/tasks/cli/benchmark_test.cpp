// etc benchmark and number types: what a processor offers, and what is said where it does not.
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;

namespace {

// A tiny benchmark on a processor limited to `level`.
test::Result benchmark(const std::string& compute, const char* level = "avx2") {
  const test::TemporaryFolder folder;
  ::setenv("ETC_MAX_CPU", level, 1);
  const test::Result result = test::run_program(
      {"benchmark", "--preset", "tiny", "--lengths", "64", "--repeats", "1", "--residual", "off", "--compute", compute},
      folder.path());
  ::unsetenv("ETC_MAX_CPU");
  return result;
}

}  // namespace

TEST_CASE("benchmark leaves out the number types that the processor does not offer, and says so", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result = benchmark("bf16,int8,fp32");
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, Contains("--compute bf16: left out"));
  CHECK_THAT(result.out, Contains("int8") && Contains("fp32") && !Contains("bf16"));
}

TEST_CASE("a number type that the processor does not offer is a usage error with advice that the command takes",
          "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result bf16 = benchmark("bf16");
  CHECK(bf16.code == 2);
  CHECK_THAT(bf16.err, Contains("this processor (x86-64 avx2) has no bf16 products") && Contains("use fp32 or auto"));
  const test::Result automatic = benchmark("auto");
  CAPTURE(automatic.err);
  CHECK(automatic.code == 0);
  CHECK_THAT(automatic.out, Contains("fp32"));
}

TEST_CASE("a limit on the processor that is none is a usage error", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result = benchmark("fp32", "avx3");
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("ETC_MAX_CPU: expected avx2, avx512 or amx, got avx3"));
}
