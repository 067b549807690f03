// The program on a machine some or all of whose processors are used by other programs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "etc_core/base/machine_share.h"
#include "etc_core/base/median.h"
#include "tests/tasks/train/place.h"

namespace {

using etc::test::Child;
using etc::test::Place;
using etc::test::Result;

// This many programs that only compute.
std::vector<std::unique_ptr<Child>> burners(const Place& place, int programs) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < programs; ++i) {
    const auto output = place.folder / ("burner" + std::to_string(i));
    children.push_back(std::make_unique<Child>(std::vector<std::string>{"sh", "-c", "while :; do :; done"}, output));
  }
  return children;
}

double seconds_of_training(const Place& place, const std::string& threads) {
  std::filesystem::remove_all(place.folder / "run");
  const auto start = std::chrono::steady_clock::now();
  const Result result =
      place.run(place.training({"--hidden-size", "64", "--num-hidden-layers", "3", "--intermediate-size", "128",
                                "--batch-size", "32", "--threads", threads},
                               "many.h5", "40"));
  INFO(result.err);
  REQUIRE(result.code == 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void compare_beside(int programs) {
  const Place place;
  etc::test::write_readable_dataset(place.folder / "many.h5", 0, 320);
  const auto load = burners(place, programs);
  std::vector<double> one, two;
  for (int round = 0; round < 9; ++round) {  // alternately, because the load changes
    one.push_back(seconds_of_training(place, "1"));
    two.push_back(seconds_of_training(place, "2"));
  }
  std::printf("seconds beside %d programs, median and best of 9: one thread %.2f, %.2f; two %.2f, %.2f\n", programs,
              etc::median(one), *std::min_element(one.begin(), one.end()), etc::median(two),
              *std::min_element(two.begin(), two.end()));
  // Loose, because the load of the machine itself changes; threads that spin make it 10 to 25.
  CHECK(etc::median(two) <= 3 * etc::median(one));
}

// With OpenMP's own spin-waiting threads two threads take 10 to 25 times as long as one.
TEST_CASE("two threads do not take many times as long as one on a busy machine", "[tasks][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  if (etc::usable_processors() < 2) return etc::test::skip("two threads need two processors");
  SECTION("whose processors all have other work") {
    compare_beside(etc::usable_processors());
  }
  SECTION("with one processor's worth of other work") {
    compare_beside(1);
  }
}

}  // namespace
