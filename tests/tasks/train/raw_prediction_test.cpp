// etc predict on raw records, from a file or standard input as they arrive, with the same result as for prepared data.
#include <fmt/format.h>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::test::has;
using etc::test::Result;
using etc::test::Words;

// Generated records, prepared, and a tiny model trained on them.
struct Scene {
  etc::test::TemporaryFolder folder;
  fs::path sample = folder / "sample", vocab = sample / "vocab.txt", raw = sample / "dev.json";
  fs::path prepared = folder / "dev.h5", model = folder / "run/best", output = folder / "out.json";

  Scene() {
    must({"sample", "--task", "wikihop", "--records", "20", "--seed", "3", "--output", sample});
    must({"prepare", "--task", "wikihop", "--split", "dev", "--input", raw, "--vocab", vocab, "--splitter", "icu",
          "--output", prepared});
    must(etc::test::joined({"train", "--task", "wikihop", "--data", prepared, "--output", folder / "run"},
                           etc::test::tiny_training()));
  }

  Result run(const Words& words, const std::string& input = "") const {
    return etc::test::run_program(words, folder.path(), input);
  }
  void must(const Words& words) const {
    const Result result = run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  Words predict(const std::string& input, const std::string& output_name) const {
    return {"predict", "--model", model, "--input", input, "--vocab", vocab, "--output", output_name};
  }
};

TEST_CASE("raw records are predicted as prepared ones, from a file and from standard input", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  scene.must({"predict", "--model", scene.model, "--data", scene.prepared, "--output", scene.output});
  const std::string expected = etc::read_file(scene.output);
  REQUIRE(etc::read_json_file(scene.output).size() == 4);

  const fs::path from_file = scene.folder / "file.json", from_stdin = scene.folder / "stdin.json";
  const Result predicted = scene.run(scene.predict(scene.raw, from_file));
  INFO(predicted.err);
  CHECK(predicted.code == 0);
  CHECK(has(predicted.err, ", 4 examples"));  // behind the bytes of the file
  CHECK(etc::read_file(from_file) == expected);
  const std::string records = etc::read_file(scene.raw);
  CHECK(scene.run(scene.predict("-", from_stdin), records).code == 0);
  CHECK(etc::read_file(from_stdin) == expected);
  CHECK(scene.run(scene.predict("-", "-"), records).out == expected);

  const Result shown =
      scene.run({"predict", "--model", scene.model, "--input", scene.raw, "--vocab", scene.vocab, "--show", "1"});
  INFO(shown.err);
  CHECK(shown.code == 0);
  CHECK(has(shown.out, "<- chosen"));
}

TEST_CASE("a memory limit of raw prediction refuses what does not fit and changes no result", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const fs::path free = scene.folder / "free.json", limited = scene.folder / "limited.json";
  scene.must(scene.predict(scene.raw, free));
  const auto with_limit = [&](const std::string& limit) {
    Words words = scene.predict(scene.raw, limited);
    words.insert(words.end(), {"--memory-limit", limit});
    return scene.run(words);
  };
  const Result none = with_limit("5MB");
  CHECK(none.code == 1);
  CHECK(has(none.err, "more than the memory limit of 5.0 MB; the limit is too low for any input of this model"));
  CHECK_FALSE(fs::exists(limited));
  const Result enough = with_limit("150MB");
  INFO(enough.err);
  CHECK(enough.code == 0);
  CHECK(has(enough.err, "info: peak memory "));
  CHECK(etc::read_file(limited) == etc::read_file(free));
}

TEST_CASE("predictions appear as records come, not at the end of the input", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  // A large input truncated in the middle: the records before the fault were predicted, but no output file remains.
  std::string records = "[";
  const etc::Json all = etc::read_json_file(scene.raw);
  for (int i = 0; i < 3000; ++i) {
    etc::Json record = all[static_cast<std::size_t>(i) % all.size()];
    record["id"] = "record_" + std::to_string(i);
    records += (i == 0 ? "" : ",") + etc::json_line(record);
  }
  const Result cut = scene.run(scene.predict("-", "-"), records);
  INFO(cut.err);
  CHECK(cut.code == 1);
  CHECK(has(cut.out, "\"record_0\": "));
  CHECK(has(cut.err, "standard input: "));
  CHECK(scene.run(scene.predict("-", scene.output), records).code == 1);
  CHECK(!fs::exists(scene.output));
}

TEST_CASE("of raw records with one id the first is predicted, and the others are named with its place", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  etc::Json records = etc::read_json_file(scene.raw);
  const std::size_t different = records.size();
  records.push_back(records[1]);
  etc::test::write_file(scene.folder / "twice.json", etc::json_line(records));
  const Result result = scene.run(scene.predict(scene.folder / "twice.json", scene.output));
  INFO(result.err);
  CHECK(result.code == 1);  // as for every record without a prediction
  CHECK(has(result.err, fmt::format("record {} {}: id duplicate_id: the id was first seen at record 1 of ", different,
                                    records[1]["id"].get<std::string>())));
  CHECK(etc::read_json_file(scene.output).size() == different);
}

TEST_CASE("raw records that cannot be predicted are named, and the others are predicted", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  etc::Json records = etc::read_json_file(scene.raw);
  records[1].erase("candidates");
  etc::test::write_file(scene.folder / "bad.json", etc::json_line(records));
  const Result result = scene.run(scene.predict(scene.folder / "bad.json", scene.output));
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK(has(result.err, "record 1 "));
  CHECK(has(result.err, "1 records have no prediction"));
  CHECK(etc::read_json_file(scene.output).size() == 3);
  fs::remove(scene.output);

  const auto failed = [&](const Words& words, const std::string& part) {
    const Result wrong = scene.run(words);
    INFO(wrong.err);
    CHECK(wrong.code == 1);
    CHECK(has(wrong.err, part));
    CHECK(!fs::exists(scene.output));
  };
  Words words = scene.predict(scene.raw, scene.output);
  etc::test::write_file(scene.folder / "vocab.txt", etc::read_file(scene.vocab) + "another\n");
  words[6] = scene.folder / "vocab.txt";
  failed(words, "another vocabulary than that of the data");
  failed(scene.predict(scene.folder / "missing.json", scene.output), "missing.json");
  // A model trained without --vocab has no vocabulary in its folder.
  const Result none = scene.run({"predict", "--model", scene.model, "--input", scene.raw, "--output", scene.output});
  INFO(none.err);
  CHECK(none.code == 2);
  CHECK(has(none.err, "raw records need --vocab"));
}

TEST_CASE("a model that does not say which vocabulary it has takes the given one, with a warning", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  scene.must(scene.predict(scene.raw, scene.output));
  const std::string expected = etc::read_file(scene.output);
  etc::Json config = etc::read_json_file(scene.model / "config.json");
  config.at("data").erase("vocab_sha256");
  etc::test::write_file(scene.model / "config.json", etc::json_line(config));
  const std::string texts = scene.folder / "texts.jsonl", states = scene.folder / "states.npy";
  etc::test::write_file(texts, R"({"id": "t", "text": "the"})");
  for (const Words& words :
       {scene.predict(scene.raw, scene.output), Words{"encode", "--model", scene.model, "--text", texts, "--vocab",
                                                      scene.vocab, "--states", "mean", "--output", states}}) {
    const Result result = scene.run(words);
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(has(result.err, "the model does not say which vocabulary it has"));
  }
  CHECK(etc::read_file(scene.output) == expected);
}

TEST_CASE("shown are the first records of all files, and those without a prediction are named", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const etc::Json records = etc::read_json_file(scene.raw);
  const auto file = [&](const char* name, const std::string& bytes) {
    etc::test::write_file(scene.folder / name, bytes);
    return (scene.folder / name).string();
  };
  etc::Json without = records[1];
  without.erase("candidates");
  const std::string one = file("one.json", etc::json_line(etc::Json::array({records[0]})));
  const std::string bad = file("bad.json", etc::json_line(etc::Json::array({without, records[2]})));
  const std::string cut = file("cut.json", etc::json_line(records).substr(0, 100));
  const auto show = [&](const Words& inputs, const std::string& number) {
    return scene.run(etc::test::joined(
        {"predict", "--model", scene.model, "--vocab", scene.vocab, "--show", number, "--input"}, inputs));
  };
  const auto shown = [](const Result& result) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = result.out.find("<- chosen", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const Result all = show({one, scene.raw}, "3");
  CHECK(all.code == 0);
  CHECK(shown(all) == 3);
  const Result partly = show({one, bad}, "3");
  CHECK(partly.code == 1);
  CHECK(shown(partly) == 2);
  CHECK(has(partly.err, "bad.json: record 0 "));
  CHECK(has(partly.err, "1 records have no prediction"));
  const Result broken = show({one, cut}, "3");
  CHECK(broken.code == 1);
  CHECK(has(broken.err, "cut.json: json_syntax: "));
  CHECK(show({one, scene.folder / "missing.json"}, "3").code == 1);
  CHECK(show({one, "-"}, "1").code == 2);
}

}  // namespace
