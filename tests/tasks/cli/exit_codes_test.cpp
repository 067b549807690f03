// The same mistake has the same exit code in every command: 2 for what the command line or a configuration says, 1 for
// files and folders that are missing, damaged or not what they should be (tasks/RUNS.md).
#include "etc_core/base/files.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

using namespace etc;
using test::has;
using test::Place;
using test::Result;
using test::Words;
namespace fs = std::filesystem;

namespace {

// Raw records in sample, data in train.h5, a trained model in run, a file of text, and a folder without files.
struct Mistakes : Place {
  Mistakes() {
    must({"sample", "--task", "wikihop", "--records", "20", "--output", at("sample")});
    Words prepared = preparing();
    prepared.back() = at("train.h5");
    must(prepared);
    must(test::joined({"train", "--task", "wikihop", "--data", at("train.h5"), "--vocab", at("sample/vocab.txt"),
                       "--output", at("run")},
                      test::tiny_training("1")));
    test::write_file(folder / "text", "text\n");
    test::write_file(folder / "answers.json", "{}");
    fs::create_directory(folder / "none");
  }

  std::string at(const std::string& name) const { return folder / name; }
  void must(const Words& words) const {
    const Result result = run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  void refused(const Words& words, int code, const std::string& part) const {
    const Result result = run(words);
    CAPTURE(words, result.out, result.err);
    CHECK(result.code == code);
    CHECK(has(result.err, part));
  }

  // Commands without the option of their input, which is last.
  std::vector<Words> reading_model() const {
    const std::string data = at("train.h5"), text = at("text");
    return {{"eval", "--data", data, "--model"},
            {"predict", "--data", data, "--output", at("p.json"), "--model"},
            {"encode", "--data", data, "--output", at("s.h5"), "--model"},
            {"encode", "--text", text, "--output", at("s.npy"), "--model"},
            {"analyze", "--data", data, "--output", at("a"), "--model"},
            {"translate", "--input", text, "--output", at("t"), "--model"},
            {"ask", "--document", text, "--question", "who", "--model"},
            {"keyphrases", text, "--model"},
            {"serve", "--port", "0", "--model"},
            {"convert", "--output", at("c"), "--to", "safetensors"},
            {"convert", "--output", at("c"), "--from", "tf"},
            {"convert", "--output", at("c"), "--from", "bert"},
            {"convert", "--output", at("c"), "--average"},
            {"info"}};
  }
  std::vector<Words> reading_data() const {
    Words train = training();
    train[3] = "--eval-data";
    train.insert(train.end(), "--data");
    return {{"eval", "--model", at("run"), "--data"},
            {"predict", "--model", at("run"), "--output", at("p.json"), "--data"},
            {"encode", "--model", at("run"), "--output", at("s.h5"), "--data"},
            {"encode", "--model", at("run"), "--output", at("s.h5"), "--inputs"},
            {"analyze", "--model", at("run"), "--output", at("a"), "--data"},
            train,
            {"info"}};
  }
  Words preparing() const {
    return {"prepare",
            "--task",
            "wikihop",
            "--split",
            "dev",
            "--input",
            at("sample/dev.json"),
            "--vocab",
            at("sample/vocab.txt"),
            "--output",
            at("d.h5")};
  }
};

const Mistakes& mistakes() {
  static const Mistakes once;
  return once;
}

Words with(Words words, const Words& more) {
  return test::joined(std::move(words), more);
}

}  // namespace

TEST_CASE("a model, data or raw file that is missing or something else is a failure in every command", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Mistakes& place = mistakes();
  for (const Words& command : place.reading_model()) {
    for (const char* wrong : {"nowhere", "none"}) {
      place.refused(with(command, {place.at(wrong)}), 1, place.at(wrong));
    }
  }
  for (const Words& command : place.reading_data()) {
    test::write_file(place.folder / "text.h5", "text");
    for (const char* wrong : {"nowhere.h5", "text.h5"}) {
      place.refused(with(command, {place.at(wrong)}), 1, place.at(wrong));
    }
  }
  const std::vector<std::pair<Words, std::string>> raw = {
      {place.preparing(), "--input"},
      {place.preparing(), "--vocab"},
      {{"predict", "--model", place.at("run"), "--output", place.at("p.json")}, "--input"},
      {{"encode", "--model", place.at("run"), "--output", place.at("s.npy")}, "--text"},
      {{"eval", "--task", "wikihop", "--predictions", place.at("answers.json")}, "--gold"},
      {{"eval", "--task", "wikihop", "--gold", place.at("sample/dev.json")}, "--predictions"}};
  for (const auto& [command, option] : raw) {
    for (const char* wrong : {"nowhere", "none"}) {
      Words words = command;
      const auto there = std::find(words.begin(), words.end(), option);
      if (there != words.end()) words.erase(there, there + 2);
      place.refused(with(words, {option, place.at(wrong)}), 1, place.at(wrong));
    }
  }
}

TEST_CASE("an output that is a file instead of a folder, or a folder instead of a file, is wrong usage", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Mistakes& place = mistakes();
  const std::string model = place.at("run/best"), data = place.at("train.h5"), text = place.at("text");
  for (const Words& command :
       std::vector<Words>{{"sample", "--task", "wikihop"},
                          {"benchmark", "--preset", "tiny", "--lengths", "32"},
                          {"analyze", "--model", model, "--data", data},
                          {"convert", "--to", "safetensors", model},
                          {"convert", "--average", model},
                          {"train", "--task", "wikihop", "--vocab-size", "64", "--data", data}}) {
    place.refused(with(command, {"--output", text}), 2, "--output " + text + ": expected a folder, got a file");
    if (command[0] != "train" && command[0] != "convert")
      place.refused(with(command, {"--output", "/dev/null"}), 2, "expected a folder, got a device");
  }
  CHECK(read_file(text) == "text\n");
  const std::string folder = place.at("none");
  for (const Words& command : std::vector<Words>{{"eval", "--model", model, "--data", data},
                                                 {"predict", "--model", model, "--data", data},
                                                 {"encode", "--model", model, "--data", data},
                                                 {"encode", "--model", model, "--text", text},
                                                 place.preparing()}) {
    place.refused(with(command, {"--output", folder}), 2, "expected ");
  }
}

TEST_CASE("a task that no one knows has the same message in every command", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Mistakes& place = mistakes();
  const std::string message =
      ": --task: expected wikihop, hotpotqa, nq, openkp, pretrain, squad, glue, translation or lm, got wikihopp (did "
      "you mean wikihop?)";
  for (const char* command : {"sample", "prepare", "eval", "predict"}) {
    place.refused({command, "--task", "wikihopp"}, 2, std::string("etc ") + command + message);
  }
}
