// The figures of `etc prepare --forecast` compared with a real preparation.
#include <algorithm>
#include <fstream>

#include "etc_core/base/files.h"
#include "tasks/prepare/forecast.h"
#include "tasks/registry.h"
#include "tests/support/gzip.h"
#include "tests/tasks/command_scene.h"
#include "tests/tasks/stopped_preparation.h"
#include "tests/tasks/train/place.h"

using namespace etc;
using namespace etc::test;

namespace {

namespace fs = std::filesystem;

// Generated records of a task, and its preparation.
struct Sampled : CommandScene {
  std::string name;
  prepare::RunOptions options;

  Sampled(const std::string& task, const std::string& records) : CommandScene(task), name(task) {
    run({"sample", "--task", task, "--records", records, "--seed", "1", "--output", path("sample")});
    for (const auto& entry : fs::directory_iterator(path("sample"))) {
      if (entry.path().stem() == "train") options.inputs = {entry.path()};
    }
    options.output = path("out.h5");
    options.report = path("out.jsonl");
    options.split = "train";
  }

  // Splits its lines into files of about equal sizes.
  void split_input(std::size_t files) {
    const fs::path whole = options.inputs.at(0);
    const std::string text = read_file(whole);
    options.inputs.clear();
    for (std::size_t i = 0, begin = 0; i < files; ++i) {
      const std::size_t end = i + 1 == files ? text.size() : text.find('\n', text.size() * (i + 1) / files) + 1;
      options.inputs.push_back(path(std::to_string(i) + whole.extension().string()));
      std::ofstream(options.inputs.back(), std::ios::binary) << text.substr(begin, end - begin);
      begin = end;
    }
  }

  std::string vocab() const { return path("sample/vocab.txt"); }

  std::unique_ptr<prepare::Preparation> preparation() const {
    const prepare::PreparationKind& kind = preparation_kind(name);
    Json settings = kind.settings.defaults();
    if (settings.contains("splitter")) settings["splitter"] = "icu";
    return kind.make(settings, vocab(), prepare::Labels::required);
  }
};

// Checks that a value is within a relative tolerance of the expected one.
void check_near(double found, double expected, double share) {
  CAPTURE(found, expected);
  CHECK(found >= expected * (1 - share));
  CHECK(found <= expected * (1 + share));
}

}  // namespace

TEST_CASE("a forecast from the beginning tells the records, examples and bytes of the whole preparation", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  for (const std::string task : {"wikihop", "openkp", "pretrain", "squad"}) {
    CAPTURE(task);
    Sampled sampled(task, task == "squad" ? "3000" : "300");  // an article at the cut is lost with all its questions
    const auto size = static_cast<std::int64_t>(fs::file_size(sampled.options.inputs[0]));
    const auto preparation = sampled.preparation();
    const prepare::Forecast expected = prepare::forecast(*preparation, sampled.options, size / 4);
    CHECK(!fs::exists(sampled.options.output));
    CHECK(expected.sample.bytes <= size / 4);
    CHECK(expected.sample.records > 0);
    CHECK(expected.all.bytes == size);
    CHECK(expected.seconds > 0);
    const prepare::Counts counts = prepare::run(*preparation, sampled.options);
    CHECK(expected.sample.records < counts.records);
    check_near(static_cast<double>(counts.records), static_cast<double>(expected.all.records), 0.1);
    check_near(static_cast<double>(counts.examples), static_cast<double>(expected.all.examples), 0.15);
    CHECK(static_cast<std::int64_t>(fs::file_size(sampled.options.output)) < 2 * expected.output_bytes);

    // For a compressed input the sizes are those of its text.
    const fs::path packed = sampled.path("packed.gz");
    std::ofstream(packed, std::ios::binary) << gzip(read_file(sampled.options.inputs[0]));
    sampled.options.inputs = {packed};
    const prepare::Forecast whole = prepare::forecast(*preparation, sampled.options);
    CHECK(whole.all.bytes == size);
    CHECK(whole.all.records == counts.records);
    CHECK(whole.all.examples == counts.examples);
    CHECK(whole.sample.examples == counts.examples);
  }
}

TEST_CASE("of several inputs and of pairs of texts the forecast counts all", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Sampled one("hotpotqa", "120");
  prepare::RunOptions three = one.options;
  for (const char* copy : {"b", "c"}) {
    three.inputs.push_back(one.path(copy));
    fs::copy_file(one.options.inputs[0], three.inputs.back());
    std::ofstream(three.inputs.back(), std::ios::app) << "\n";  // changes the content
  }
  const auto preparation = one.preparation();
  const auto size = static_cast<std::int64_t>(fs::file_size(one.options.inputs[0]));
  check_near(static_cast<double>(prepare::forecast(*preparation, three, size).all.records), 360, 0.1);
  CHECK(prepare::forecast(*preparation, three).all.records == 360);

  const Sampled pairs("translation", "200");
  const fs::path source = pairs.path("sample/train.source");
  const prepare::PreparationKind& kind = preparation_kind("translation");
  Json settings = kind.settings.defaults();
  settings["subword"] = "word";
  prepare::RunOptions options = pairs.options;
  options.inputs = {source};
  options.targets = {pairs.path("sample/train.target")};
  const auto of_pairs = kind.make(settings, pairs.path("sample/vocab.words"), prepare::Labels::required);
  const auto quarter = static_cast<std::int64_t>(fs::file_size(source)) / 4;
  const prepare::Forecast expected = prepare::forecast(*of_pairs, options, quarter);
  CHECK(expected.sample.records < 60);
  check_near(static_cast<double>(expected.all.records), 200, 0.2);
}

TEST_CASE("a long array on a line of its own is cut within it for the forecast", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  Sampled sampled("hotpotqa", "120");
  std::string text = read_file(sampled.options.inputs[0]);
  std::erase(text, '\n');
  text.replace(text.find('['), 1, "[\n");
  text.replace(text.rfind(']'), 1, "\n]");
  std::ofstream(sampled.path("array.json")) << text;
  sampled.options.inputs = {sampled.path("array.json")};
  const prepare::Forecast expected = prepare::forecast(*sampled.preparation(), sampled.options, std::ssize(text) / 3);
  CHECK(expected.sample.bytes == std::ssize(text) / 3);
  check_near(static_cast<double>(expected.all.records), 120, 0.1);
}

TEST_CASE("the room on disk that is forecast is that of output, report and finished parts together", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  for (const std::string task : {"openkp", "pretrain"}) {
    CAPTURE(task);
    Sampled sampled(task, "60");
    sampled.split_input(2);
    const auto preparation = sampled.preparation();
    const prepare::Forecast expected = prepare::forecast(*preparation, sampled.options);
    const auto run = [&] { prepare::run(*preparation, sampled.options); };
    stopped_parts(sampled.options.output, sampled.options.report, ".json", run);
    std::uintmax_t taken = 0;
    for (const auto& entry : fs::directory_iterator(sampled.options.output.string() + ".parts")) {
      if (entry.path().filename() != "lock") taken += fs::file_size(entry);
    }
    CHECK(taken > 0);
    run();
    CHECK(expected.output_bytes == static_cast<std::int64_t>(fs::file_size(sampled.options.output)));
    taken += fs::file_size(sampled.options.output) + fs::file_size(sampled.options.report);
    check_near(static_cast<double>(expected.disk_bytes), static_cast<double>(taken), 0.02);
  }
}

TEST_CASE("the room that is forecast for parts is that of all inputs but the last", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  Sampled sampled("openkp", "400");
  const auto size = static_cast<std::int64_t>(fs::file_size(sampled.options.inputs[0]));
  sampled.split_input(8);
  const auto preparation = sampled.preparation();
  const prepare::Forecast some = prepare::forecast(*preparation, sampled.options, size / 4);
  const prepare::Forecast all = prepare::forecast(*preparation, sampled.options);
  CHECK(some.sample.records < all.sample.records / 2);
  check_near(static_cast<double>(some.disk_bytes), static_cast<double>(all.disk_bytes), 0.3);
  CHECK(all.disk_bytes > all.output_bytes * 3 / 2);
}

TEST_CASE("preparing takes the memory that was forecast, and the forecast writes nothing", "[tasks]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Sampled sampled("wikihop", "200");
  Words words = {
      "prepare", "--task",        "wikihop",    "--split", "train",     "--input", sampled.options.inputs[0].string(),
      "--vocab", sampled.vocab(), "--splitter", "icu",     "--threads", "2"};
  Words forecast = words;
  forecast.emplace_back("--forecast");
  const Result expected = sampled.try_run(forecast);
  INFO(expected.out << expected.err);
  REQUIRE(expected.code == 0);
  CHECK(expected.err.empty());
  CHECK(expected.out.find("200 of about 200 records") != std::string::npos);
  CHECK(expected.out.find("s with 2 threads") != std::string::npos);
  words.insert(words.end(), {"--output", sampled.path("out.h5")});
  const Result taken = sampled.try_run(words);
  REQUIRE(taken.code == 0);
  check_near(test::megabytes_told(taken.err, "peak memory"), test::megabytes_told(expected.out, "expected peak memory"),
             0.15);
  CHECK(taken.out.find("\nexamples: 200\n") != std::string::npos);
  CHECK(expected.out.find("output 200 examples, ") != std::string::npos);

  const auto refused = [&](const Words& more, int code, const std::string& message) {
    Words all = forecast;
    all.insert(all.end(), more.begin(), more.end());
    const Result result = sampled.try_run(all, "{}");
    INFO(result.err);
    CHECK(result.code == code);
    CHECK(result.err.find(message) != std::string::npos);
  };
  refused({"--learn-vocab", "100"}, 2, "expected no --learn-vocab");
  refused({"--learn-splitter"}, 2, "expected no --learn-splitter");
  refused({"--input", "-"}, 2, "expected a file, got a stream");
  refused({"--input", sampled.path("none")}, 1, "no such file");
  std::ofstream(sampled.path("empty.json")) << "[]";
  std::replace(forecast.begin(), forecast.end(), sampled.options.inputs[0].string(), sampled.path("empty.json"));
  refused({}, 1, "expected a record in the first 2 bytes of the input, found none");
}

TEST_CASE("a long preparation tells what it is expected to take before it starts, a short one does not",
          "[cli][slow]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Sampled scene("wikihop", "500");
  // As much input as makes a run long, in a member that is not read.
  const Json records = read_json_file(scene.options.inputs.at(0));
  const std::string filler(1'000'000, 'x');
  {
    std::ofstream lines(scene.path("long.jsonl"), std::ios::binary);
    for (Json record : records) {
      record["filler"] = filler;
      lines << json_line(record) << "\n";
    }
  }
  const auto told = [&](const std::string& input, const char* output) {
    const Result result = scene.try_run({"prepare", "--task", "wikihop", "--splitter", "icu", "--split", "train",
                                         "--vocab", scene.vocab(), "--input", input, "--output", scene.path(output)});
    REQUIRE(result.code == 0);
    return result.err;
  };
  const std::string err = told(scene.path("long.jsonl"), "long.h5");
  const std::size_t forecast = err.find("info: expected peak memory "), start = err.find("prepare ");
  CHECK(forecast != std::string::npos);
  CHECK(forecast < start);
  CHECK_THAT(err.substr(forecast, err.find('\n', forecast) - forecast), Catch::Contains(" s, and "));
  CHECK(told(scene.options.inputs.at(0), "short.h5").find("expected peak memory") == std::string::npos);
}
