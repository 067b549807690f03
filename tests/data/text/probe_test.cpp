#include "data/probe.h"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using data::run_probe;

namespace {

// The message of the Error that a probe of body() ends with; empty when it succeeds.
std::string message_of(const std::function<void()>& body, const data::ProbeLimits& limits = {}) {
  try {
    run_probe("test model", "some.model", body, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a probe runs the body elsewhere: success returns, changes and prints are lost", "[data][text]") {
  int changed = 0;
  REQUIRE(message_of([&] {
            changed = 1;
            std::cout << "never seen" << std::endl;
          }) == "");
  REQUIRE(changed == 0);
}

TEST_CASE("a probe passes errors on and names the file for foreign exceptions", "[data][text]") {
  REQUIRE(message_of([] { fail("some.model", "no pieces"); }) == "some.model: no pieces");
  REQUIRE(message_of([] { throw std::runtime_error("bad tag"); }) == "some.model: test model: cannot be read: bad tag");
  REQUIRE(message_of([] { throw 1; }) == "some.model: test model: cannot be read: unknown exception");
  REQUIRE(message_of([] { throw std::bad_alloc(); }, {std::uint64_t{5} << 20}) ==
          "some.model: test model: opening it needs more than 5 MiB of memory (the file is damaged)");
}

TEST_CASE("a probe turns a crash, an exit and a hang into messages", "[data][text]") {
  REQUIRE(message_of([] { std::raise(SIGSEGV); }) ==
          "some.model: test model: the library that reads it crashes: signal 11, Segmentation fault (the file is "
          "damaged)");
  REQUIRE(message_of([] { std::abort(); }) ==
          "some.model: test model: the library that reads it crashes: signal 6, Aborted (the file is damaged)");
  REQUIRE(message_of([] { std::exit(3); }) ==
          "some.model: test model: the library that reads it gives up and ends the program (the file is damaged)");
  REQUIRE(message_of([] { std::this_thread::sleep_for(std::chrono::hours(1)); }, {0, 1, 1}) ==
          "some.model: test model: opening it takes more than 1 s (the file is damaged and makes the library hang)");
  REQUIRE(message_of(
              [] {
                for (volatile bool on = true; on;) {
                }
              },
              {0, 1, 60}) ==
          "some.model: test model: opening it takes more than 1 s (the file is damaged and makes the library hang)");
}

#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("a probe limits memory beyond what the process already holds", "[data][text]") {
  const auto take = [](std::size_t mib) { return [mib] { std::vector<char>(mib << 20).front() = 1; }; };
  REQUIRE(message_of(take(16), {std::uint64_t{64} << 20}) == "");
  REQUIRE_THAT(message_of(take(256), {std::uint64_t{64} << 20}), Catch::Contains("needs more than 64 MiB of memory"));
}
#endif

TEST_CASE("probes of several threads do not disturb each other", "[data][text]") {
  std::vector<std::string> messages(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) messages[t] = message_of([t] { fail("x", "thread {}", t); });
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) REQUIRE(messages[t] == "x: thread " + std::to_string(t));
}
