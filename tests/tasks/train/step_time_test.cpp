// Step times of several processes: the formula, and what the command prints.
#include "tasks/train/step_time.h"

#include <regex>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/small_run.h"

namespace {

using etc::LinkRates;
using etc::step_time;
using etc::StepTime;
using etc::StepWork;

// 8 micro-batches; a gradient of 100 MB and one of 300 MB.
const StepWork kWork{8, 1, 2, 0.5, {100'000'000, 300'000'000}, false};
const LinkRates kLink{1e9, 1e-3};

TEST_CASE("a step of one process takes the time of its micro-batches and of the update", "[tasks]") {
  const StepTime one = step_time(kWork, kLink, 1);
  CHECK(one.micro_batches == 8);
  CHECK(one.seconds() == Approx(8 * 3 + 0.5));
  CHECK(one.waiting == 0);
  CHECK(one.bytes == 0);
}

TEST_CASE("sending hides behind the last backward pass, but for the bucket that is final last", "[tasks]") {
  // Two processes with a root each: every bucket takes (1/2)/B + λ in each direction.
  const StepTime two = step_time(kWork, kLink, 2);
  CHECK(two.micro_batches == 4);
  CHECK(two.computing == Approx(4 * 3 + 0.5));
  CHECK(two.sending == Approx(2 * (0.05 + 0.15) + 4 * 1e-3));
  CHECK(two.waiting == Approx(2 * (0.05 + 1e-3)));  // the rest is hidden by the backward pass
  CHECK(two.bytes == Approx(400e6));
  StepWork quick = kWork;
  quick.backward = 0.1;
  CHECK(step_time(quick, kLink, 2).waiting == Approx(two.sending - 0.1));
  // Sharded moments: the update is shared, too, and the weights are sent back after it.
  StepWork sharded = kWork;
  sharded.shard_moments = true;
  const StepTime divided = step_time(sharded, kLink, 2);
  CHECK(divided.computing == Approx(4 * 3 + 0.25));
  CHECK(divided.waiting == Approx(0.05 + 1e-3 + 0.2 + 2e-3));
}

TEST_CASE("more processes than micro-batches compute no faster, and send more", "[tasks]") {
  const StepTime eight = step_time(kWork, kLink, 8), many = step_time(kWork, kLink, 1024);
  CHECK(eight.micro_batches == 1);
  CHECK(many.micro_batches == 1);
  CHECK(many.computing == eight.computing);
  CHECK(many.sending > eight.sending);  // messages to 1,023 others
  // Three processes of 8 micro-batches have 0-1, 2-4 and 5-7, so 1, 2 and 2 roots: a process with the most work
  // receives three.
  CHECK(step_time(kWork, kLink, 3).bytes == Approx((3 + 2) * 400e6 / 3));
}

TEST_CASE("a forecast for several processes says memory and step time, for one as without", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  etc::test::write_data(folder.path());
  std::vector<std::string> words = etc::test::training_command(folder.path(), "run", "4", "1");
  words.erase(words.begin());
  words.push_back("--forecast");
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = words;
    command.insert(command.end(), more.begin(), more.end());
    const etc::test::Result result = etc::test::run_program(command, folder.path());
    INFO(result.err);
    REQUIRE(result.code == 0);
    return result.out;
  };
  const auto memory = [](const std::string& text) { return text.substr(0, text.find(" = ")); };
  CHECK(said({}).find("expected step") == std::string::npos);
  const std::regex line(
      R"(expected step (\S+) s in (\d+) process\w*: (\d+) of (\d+) micro-batches, forward (\S+) s and backward (\S+) s each, update (\S+) s, waiting (\S+) s)");
  for (const char* processes : {"1", "2"}) {
    const std::string text = said({"--processes", processes, "--link-megabits", "1000"});
    CAPTURE(text);
    CHECK(memory(text).starts_with("expected peak memory "));
    std::smatch found;
    REQUIRE(std::regex_search(text, found, line));
    const auto number = [&](std::size_t i) { return std::stod(found[i]); };
    CHECK(found[2] == processes);
    const double computing = number(3) * (number(5) + number(6)) + number(7);
    CHECK(number(1) == Approx(computing + number(8)).epsilon(0.01));
    CHECK(number(5) > 0);
    CHECK(number(6) > 0);
    if (number(2) == 1) {
      CHECK(found[3] == found[4]);
      CHECK(found[8] == "0");
    } else {
      CHECK(number(8) > 0);
      CHECK(text.find("at 0.125 GB/s and 50 us") != std::string::npos);
    }
  }
}

}  // namespace
