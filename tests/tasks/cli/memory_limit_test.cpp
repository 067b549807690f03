// Memory of the program's process: the forecast, the limit, the messages.
#include <algorithm>
#include <sstream>

#include "etc_core/base/files.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;

constexpr double kMegabyte = 1e6;

// A model so wide that the 64 examples of 30 tokens that are read at once take far more memory than one of them.
struct LimitScene : Place {
  fs::path model = folder / "run/best", data = folder / "many.h5";

  LimitScene() {
    etc::test::write_readable_dataset(data, 0, 70);
    const Result result = run(training({"--hidden-size", "768", "--num-attention-heads", "12", "--intermediate-size",
                                        "768", "--batch-size", "1", "--steps", "1"}));
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  Result limited(Words words, const std::string& limit) const {
    words.insert(words.end(), {"--model", model, "--threads", "1"});
    if (!limit.empty()) words.insert(words.end(), {"--memory-limit", limit});
    return run(words);
  }
};

TEST_CASE("a memory limit of eval, predict and encode changes the memory and no result", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const LimitScene scene;
  const fs::path output = scene.folder / "result";
  for (const std::string command : {"eval", "predict", "encode"}) {
    CAPTURE(command);
    const Words words = {command, "--data", scene.data, "--output", output};
    const Result whole = scene.limited(words, "");
    REQUIRE(whole.code == 0);
    const std::string expected = etc::read_file(output);
    fs::remove(output);
    const Result none = scene.limited(words, "5MB");
    CHECK(none.code == 1);
    CHECK(has(none.err, "etc " + command + ": the memory limit of 5.0 MB is too low for this model: "));
    CHECK(!fs::exists(output));

    const double whole_takes = megabytes_told(whole.err, "peak memory"),
                 one_takes = megabytes_told(none.err, "tokens, takes");
    const double limit = one_takes + 3;
    REQUIRE(whole_takes > limit + 5);
    const Result small = scene.limited(words, std::to_string(static_cast<long long>(limit * kMegabyte)));
    INFO(whole.err << small.err);
    REQUIRE(small.code == 0);
    CHECK(has(small.err, "memory limit "));
    CHECK(megabytes_told(small.err, "peak memory") <= limit);
    CHECK(small.out == whole.out);
    CHECK(etc::read_file(output) == expected);
    fs::remove(output);
    CHECK(scene.limited(words, "much").code == 2);
  }
  const Words scored = {"eval",   "--task",         "wikihop", "--predictions", "p.json", "--gold",
                        "g.json", "--memory-limit", "1GB"};
  CHECK(scene.run(scored).code == 2);
}

TEST_CASE("an input that does not fit is refused with the longest that does", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  // The feed-forward part is so wide that each further token takes 130 KB more.
  REQUIRE(place.run(place.training({"--intermediate-size", "32768", "--num-hidden-layers", "2"})).code == 0);
  const auto evaluate = [&](double megabytes) {
    // Without AMX, for which these narrow weights are padded to several times their size and take more than the tokens.
    ::setenv("ETC_MAX_CPU", "avx512", 1);
    const Result result =
        place.run({"eval", "--model", place.folder / "run/best", "--data", place.folder / "train.h5", "--threads", "1",
                   "--memory-limit", std::to_string(static_cast<long long>(megabytes * kMegabyte))});
    ::unsetenv("ETC_MAX_CPU");
    return result;
  };
  // The limit lies between one that holds no example and one that holds all.
  double none = 5, all = 300;
  for (int turn = 0; turn < 12; ++turn) {
    const double limit = (none + all) / 2;
    const Result result = evaluate(limit);
    if (has(result.err, "holds examples of up to ")) {
      CHECK(result.code == 1);
      CHECK(has(result.err, " of 20 are longer, up to "));
      return;
    }
    (result.code == 0 ? all : none) = limit;
  }
  FAIL("no limit between " << none << " and " << all << " MB");
}

TEST_CASE("training takes the memory that it said it would, as a process", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  etc::test::write_readable_dataset(place.folder / "many.h5", 0, 2000);
  struct Case {
    std::string width, threads, micro_batch;
  };
  for (const Case& each : {Case{"32", "1", "0"}, Case{"32", "2", "0"}, Case{"4096", "2", "2000"}}) {
    fs::remove_all(place.folder / "run");
    const Result result = place.run(place.training(
        {"--intermediate-size", each.width, "--num-hidden-layers", "2", "--batch-size", "100", "--threads",
         each.threads, "--micro-batch-tokens", each.micro_batch, "--eval-data", place.folder / "train.h5"},
        "many.h5", "8"));
    INFO(result.err);
    REQUIRE(result.code == 0);
    const double expected = megabytes_told(result.err, "expected peak memory"),
                 measured = megabytes_told(result.err, "info: peak memory");
    std::printf("%s wide, %s threads: expected %.1f MB, took %.1f MB\n", each.width.c_str(), each.threads.c_str(),
                expected, measured);
    // Memory kept in a thread's scratch stack (ops/cpu/scratch.h) depends on the tasks it happened to process.
    CHECK(expected > std::min(0.97 * measured, measured - 8));
    CHECK(expected < std::max(1.05 * measured, measured + 20));
  }
}

TEST_CASE("the forecast of a benchmark does not take the memory it forecasts", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Place place;
  const Result result =
      place.run({"benchmark", "--preset", "tiny", "--lengths", "300000", "--residual", "off", "--forecast"});
  INFO(result.out << result.err);
  REQUIRE(result.code == 0);
  std::istringstream row(result.out.substr(result.out.find('\n')));
  std::string residual, compute;
  std::int64_t length = 0, globals = 0;
  double forecast = 0;
  row >> residual >> compute >> length >> globals >> forecast;
  CHECK(length == 300000);
  CHECK(globals == 18750);
  CHECK(forecast > 11'000);
  CHECK(static_cast<double>(result.peak_bytes) < 400 * kMegabyte);
}

}  // namespace
