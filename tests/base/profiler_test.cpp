#include "etc_core/base/profiler.h"

#include <thread>

#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

namespace {

void spend(const char* name, profiler::Work work, int milliseconds) {
  const profiler::Scope scope(name, work);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace

TEST_CASE("the profiler sums calls, time and work per name, the longest first", "[base]") {
  profiler::start();
  spend("short", {10, 1}, 1);
  spend("long", {5, 100}, 30);
  spend("short", {10, 1}, 1);
  profiler::stop();
  spend("afterwards", {1, 1}, 1);
  const auto rows = profiler::rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "long");
  CHECK(rows[0].calls == 1);
  CHECK(rows[0].seconds >= 0.03);
  CHECK(rows[1].name == "short");
  CHECK(rows[1].calls == 2);
  CHECK(rows[1].work.operations == 20);
  CHECK(rows[1].work.bytes == 2);
  CHECK(profiler::elapsed() >= rows[0].seconds + rows[1].seconds);
}

TEST_CASE("nothing is recorded unless the profiler was started, and a start forgets", "[base]") {
  profiler::start();
  spend("before", {}, 0);
  profiler::start();
  profiler::stop();
  CHECK(profiler::rows().empty());
  CHECK(!profiler::running());
}

TEST_CASE("calls of several threads are recorded", "[base][threads]") {
  profiler::start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 100; ++n) spend("call", {1, 0}, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  profiler::stop();
  REQUIRE(profiler::rows().size() == 1);
  CHECK(profiler::rows()[0].calls == 400);
  CHECK(profiler::rows()[0].work.operations == 400);
}

TEST_CASE("the trace has an event per call, in microseconds", "[base]") {
  const test::TemporaryFolder folder;
  profiler::start();
  spend("first", {}, 2);
  spend("second", {}, 1);
  profiler::stop();
  const auto path = folder.path() / "trace.json";
  profiler::write_trace(path);
  const Json trace = read_json_file(path);
  REQUIRE(trace["traceEvents"].size() == 2);
  const Json &first = trace["traceEvents"][0], &second = trace["traceEvents"][1];
  CHECK(first["name"] == "first");
  CHECK(first["dur"].get<double>() >= 2000);
  CHECK(second["ts"].get<double>() >= first["ts"].get<double>() + first["dur"].get<double>() - 1);
}
