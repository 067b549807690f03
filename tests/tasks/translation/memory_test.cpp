// Memory of translating: forecasts against what processes take, and limits that change no translation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "etc_core/base/files.h"
#include "tests/support/folders.h"
#include "tests/tasks/command_scene.h"

namespace etc {
namespace {

using Scene = test::CommandScene;
using Catch::Contains;
using test::Words;

// A run of one step on generated pairs: a model that has learned nothing and seldom ends a translation.
struct Trained : Scene {
  explicit Trained(const Words& more) : Scene("translation") {
    run({"sample", "--task", "translation", "--records", "200", "--output", path("s")});
    for (const std::string split : {"train", "dev"}) {
      run({"prepare", "--task", "translation", "--split", split, "--subword", "word", "--vocab", path("s/vocab.words"),
           "--source", path("s/" + split + ".source"), "--target", path("s/" + split + ".target"), "--output",
           path(split + ".h5")});
    }
    Words words = {"train",
                   "--task",
                   "translation",
                   "--data",
                   path("train.h5"),
                   "--eval-data",
                   path("dev.h5"),
                   "--vocab",
                   path("s/vocab.words"),
                   "--model-kind",
                   "seq2seq",
                   "--steps",
                   "1",
                   "--threads",
                   "1",
                   "--output",
                   path("run")};
    words.insert(words.end(), more.begin(), more.end());
    const test::Result result = try_run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
    log = result.err;
  }

  // Translates all of dev.source into translations of 100 words each.
  test::Result translate(const Words& more) const {
    Words words = {"translate", "--model", path("run"), "--input", path("s/dev.source"), "--max-len-b", "100",
                   "--min-len", "100",     "--threads", "1",       "--batch-tokens",     "2048"};
    words.insert(words.end(), more.begin(), more.end());
    return try_run(words);
  }

  std::string log;
};

const Words kModel = {"--hidden-size",       "64",  "--num-hidden-layers",   "2", "--num-decoder-layers", "2",
                      "--intermediate-size", "128", "--num-attention-heads", "2", "--batch-size",         "16"};

// For memory that does not depend on the model: it translates in half the time.
const Words kTinyModel = {"--hidden-size",       "16", "--num-hidden-layers",   "1", "--num-decoder-layers", "1",
                          "--intermediate-size", "32", "--num-attention-heads", "2", "--batch-size",         "16"};

TEST_CASE("translating takes the memory that was forecast, and with a limit less, with the same translations",
          "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Trained scene(kModel);
  for (const Words& more : {Words{}, Words{"--compute", "int8", "--beam", "3", "--model", scene.path("run")}}) {
    CAPTURE(more);
    Words words = more;
    words.insert(words.end(), {"--forecast"});
    const test::Result forecast = scene.translate(words);
    REQUIRE(forecast.code == 0);
    const double expected = test::megabytes_told(forecast.out, "may be:");
    words = more;
    words.insert(words.end(), {"--output", scene.path("whole.target")});
    const test::Result whole = scene.translate(words);
    REQUIRE(whole.code == 0);
    const double taken = test::megabytes_told(whole.err, "info: peak memory");
    // Told before the work, extrapolated from single sentences.
    CHECK_THAT(whole.err, Contains("info: expected peak memory for the first "));
    CHECK(test::megabytes_told(whole.err, "as long as they may be:") == Approx(expected).epsilon(0.1));
    std::printf("translate: expected %.1f MB, took %.1f MB\n", expected, taken);
    CHECK(taken < expected + 2);
    CHECK(taken > 0.8 * expected - 10);

    const double limit = 0.7 * expected;
    words = more;
    words.insert(words.end(), {"--output", scene.path("limited.target"), "--memory-limit",
                               std::to_string(static_cast<long long>(limit * 1e6))});
    const test::Result limited = scene.translate(words);
    INFO(limited.err);
    REQUIRE(limited.code == 0);
    CHECK_THAT(limited.err, Contains("tokens are searched together, of 2048"));
    CHECK(test::megabytes_told(limited.err, "info: peak memory") <= limit);
    CHECK(read_file(scene.path("limited.target")) == read_file(scene.path("whole.target")));
  }
}

TEST_CASE("a limit that no translation fits is refused with what would fit", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Trained scene(kModel);
  const Words output = {"--output", scene.path("none")};
  const auto refused = [&](const Words& more, int code, const char* message) {
    Words words = output;
    words.insert(words.end(), more.begin(), more.end());
    const test::Result result = scene.translate(words);
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains(message));
  };
  refused({"--memory-limit", "5MB"}, 1, "the memory limit of 5.0 MB is too low for this model, which takes ");
  refused({"--memory-limit", "much"}, 2, "--memory-limit");
  refused({"--memory-limit", "1GB", "--forecast"}, 2, "expected either it or --memory-limit");
  const std::string long_line = scene.path("long.txt");
  std::string words;
  for (int i = 0; i < 900; ++i) words += "some ";
  test::write_file(long_line, "some\n" + words + "\n");
  const auto limited = [&](const std::string& limit) {
    return scene.try_run({"translate", "--model", scene.path("run"), "--input", long_line, "--output",
                          scene.path("none"), "--max-len-b", "300", "--beam", "10", "--threads", "1", "--memory-limit",
                          limit});
  };
  // Room for the program, whose size depends on the processor, and for the model, but not for the long line.
  const double least = test::megabytes_told(limited("5MB").err, "which takes");
  const test::Result one = limited(fmt::format("{:.1f}MB", least + 2.0));
  CHECK(one.code == 1);
  CHECK_THAT(one.err, Contains(": its ") && Contains(" pieces and a translation of up to 300 take ") &&
                          Contains("; one of up to "));
}

TEST_CASE("translations that do not fit together are made in parts, and lines that do not are refused",
          "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Trained scene(kTinyModel);
  const std::string lines = read_file(scene.path("s/dev.source"));
  std::string many;
  for (int i = 0; i < 20; ++i) many += lines;
  const std::string all_lines = std::to_string(std::count(many.begin(), many.end(), '\n'));
  test::write_file(scene.path("many.source"), many);
  const auto translate = [&](const std::string& input, const Words& more) {
    Words words = {"translate", "--model", scene.path("run"), "--input", scene.path(input), "--beam", "2",
                   "--threads", "1",       "--max-len-b",     "60",      "--batch-tokens",  "128"};
    words.insert(words.end(), more.begin(), more.end());
    return scene.try_run(words);
  };
  const double few = test::megabytes_told(translate("many.source", {"--forecast", "--window", "100"}).out, "may be:");
  const double all = test::megabytes_told(translate("many.source", {"--forecast"}).out, "may be:");
  REQUIRE(all > few + 4);
  REQUIRE(translate("many.source", {"--output", scene.path("whole")}).code == 0);
  const auto bytes = [](double megabytes) { return std::to_string(static_cast<long long>(megabytes * 1e6)); };
  const test::Result parts =
      translate("many.source", {"--output", scene.path("parts"), "--memory-limit", bytes((few + all) / 2)});
  INFO(parts.err);
  REQUIRE(parts.code == 0);
  CHECK_THAT(parts.err, Contains("lines are translated at a time, of " + all_lines + " that are read"));
  CHECK(test::megabytes_told(parts.err, "info: peak memory") <= (few + all) / 2);
  CHECK(read_file(scene.path("parts")) == read_file(scene.path("whole")));

  const double model =
      test::megabytes_told(translate("many.source", {"--output", "none", "--memory-limit", "5MB"}).err, "which takes");
  std::string large;
  for (int i = 0; i < 300; ++i) large += std::string(40'000, 'x') + "\n";
  test::write_file(scene.path("large.source"), large);
  const test::Result window =
      translate("large.source", {"--output", scene.path("none"), "--memory-limit", bytes(model + 8)});
  CHECK(window.code == 1);
  CHECK_THAT(window.err,
             Contains("the 300 lines that are read at a time take 24.") && Contains(" fit: set --window lower)"));
  CHECK(
      translate("large.source", {"--output", scene.path("some"), "--memory-limit", bytes(model + 8), "--window", "20"})
          .code == 0);
}

TEST_CASE("training that watches BLEU takes the memory that it said it would", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  for (const std::string beam : {"0", "4"}) {
    CAPTURE(beam);
    Words model = kModel;
    model.insert(model.end(), {"--bleu-beam", beam});
    const Trained scene(model);
    const double expected = test::megabytes_told(scene.log, "expected peak memory"),
                 taken = test::megabytes_told(scene.log, "info: peak memory");
    std::printf("beam %s: expected %.1f MB, took %.1f MB\n", beam.c_str(), expected, taken);
    CHECK(taken < 1.1 * expected + 3);
    CHECK(taken > 0.8 * expected - 10);
  }
}

}  // namespace
}  // namespace etc
