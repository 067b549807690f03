// Destinations of the program's outputs: devices, FIFOs, links, full disks, folders; and what they never replace.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <thread>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/place.h"

using namespace etc;
using Catch::Contains;
using test::Place;
using test::Result;
using test::Words;
namespace fs = std::filesystem;

namespace {

const std::string kOutputFails = "standard output: cannot write: ";

// A trained model in run, and small raw records with their vocabulary in sample.
struct Outputs : Place {
  Outputs() {
    train();
    must({"sample", "--task", "wikihop", "--records", "5", "--output", at("sample")});
  }

  std::string at(const std::string& name) const { return folder / name; }
  std::string bytes(const std::string& name) const { return read_file(folder / name); }
  Result must(const Words& arguments) const {
    const Result result = run(arguments);
    INFO(arguments[0] << ": " << result.err);
    REQUIRE(result.code == 0);
    return result;
  }

  Words predict(const Words& more) const {
    return joined({"predict", "--model", at("run/best"), "--data", at("train.h5")}, more);
  }
  Words encode(const Words& more) const {
    return joined({"encode", "--model", at("run/best"), "--data", at("train.h5")}, more);
  }
  Words prepare(const Words& more) const {
    return joined({"prepare", "--task", "wikihop", "--split", "dev", "--vocab", at("sample/vocab.txt"), "--input",
                   at("sample/dev.json")},
                  more);
  }
  Words score(const Words& more) const {
    return joined({"eval", "--task", "wikihop", "--predictions", at("p.json"), "--gold", at("gold.json")}, more);
  }
  // A prediction file and the gold file it is scored with.
  void make_predictions() const {
    must(predict({"--output", at("p.json")}));
    const Json predictions = read_json_file(folder / "p.json");
    Json gold = Json::array();
    for (const auto& [id, answer] : predictions.items()) {
      gold.push_back({{"id", id}, {"answer", answer}});
    }
    test::write_file(folder / "gold.json", json_line(gold));
  }

 private:
  static Words joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

// A device node of the test's own; false if it cannot be created.
bool make_device(const fs::path& path, unsigned minor) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor)) != 0) return false;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}
constexpr unsigned kNull = 3, kFull = 7;

// Runs the command with its standard output sent to this file.
Result run_into(const Outputs& place, const Words& arguments, const std::string& file) {
  Words command = {"/bin/sh", "-c", "target=$1; shift; exec \"$0\" \"$@\" >\"$target\"", *test::program(), file};
  command.insert(command.end(), arguments.begin(), arguments.end());
  test::Child child(command, place.at("into"));
  const int code = child.wait();
  return {code, read_file(place.at("into.out")), read_file(place.at("into.err"))};
}

}  // namespace

TEST_CASE("an output that is an input or another output is refused before any work", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  place.make_predictions();
  fs::create_symlink("train.h5", place.at("link.h5"));
  fs::create_symlink("new.json", place.at("dangling"));
  const auto refused = [&](const Words& arguments, const std::string& one, const std::string& other) {
    const std::string before = place.bytes("train.h5") + place.bytes("p.json") + place.bytes("gold.json") +
                               place.bytes("sample/vocab.txt") + place.bytes("sample/dev.json") +
                               place.bytes("run/best/model.safetensors");
    const Result result = place.run(arguments);
    CAPTURE(arguments, result.out, result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(one) && Contains(other));
    CHECK(result.out.empty());
    CHECK(!fs::exists(place.at("new.json")));
    CHECK(before == place.bytes("train.h5") + place.bytes("p.json") + place.bytes("gold.json") +
                        place.bytes("sample/vocab.txt") + place.bytes("sample/dev.json") +
                        place.bytes("run/best/model.safetensors"));
  };
  const std::string data = place.at("train.h5"), link = place.at("link.h5"), fresh = place.at("new.json");
  refused(place.encode({"--output", data}), "--output " + data, "--data " + data);
  refused(place.encode({"--output", link}), "--output " + link, "--data " + data);
  refused(place.encode({"--output", fresh, "--trace", fresh}), "--output", "--trace");
  refused(place.encode({"--output", place.at("run/best/config.json")}), "--output", "--model");
  refused(place.predict({"--output", data}), "--output", "--data");
  refused(place.predict({"--n-best-output", place.at("run/best/model.safetensors")}), "--n-best-output", "--model");
  refused(place.predict({"--output", fresh, "--n-best-output", fresh}), "--output", "--n-best-output");
  refused(place.predict({"--output", fresh, "--n-best-output", place.at("./new.json")}), "--output", "--n-best-output");
  refused(place.predict({"--output", fresh, "--n-best-output", place.at("dangling")}), "--output", "--n-best-output");
  refused(place.predict({"--output", "-", "--n-best-output", "-"}), "--output", "both go to standard output");
  refused(place.predict({"--output", "-", "--n-best-output", "/dev/stdout"}), "--output", "--n-best-output");
  refused(place.predict({"--output", fresh, "--trace", data}), "--trace", "--data");
  refused(place.score({"--output", place.at("gold.json")}), "--output", "--gold");
  refused(place.score({"--output", place.at("p.json")}), "--output", "--predictions");
  refused(place.score({"--output", "-"}), "--output", "the metrics");
  refused(place.prepare({"--output", place.at("sample/vocab.txt")}), "--output", "--vocab");
  refused(place.prepare({"--output", fresh, "--report", place.at("sample/vocab.txt")}), "--report", "--vocab");
  refused(place.prepare({"--output", fresh, "--report", place.at("dangling")}), "--report", "--output");
  refused(place.training({"--trace", data}), "--trace", "--data");
  refused(place.training({"--config", place.at("run/config.json")}), "--output", "--config");
  refused(place.training({"--trace", place.at("run/metrics.jsonl")}), "--trace", "--output");
  test::write_file(place.at("c.json"), R"({"model": {}})");
  refused({"benchmark", "--config", place.at("c.json"), "--trace", place.at("c.json")}, "--trace", "--config");
  // Both may go to a device that discards data.
  if (!make_device(place.at("null"), kNull)) return test::skip("no permission to make devices");
  place.must(place.predict({"--output", place.at("null"), "--n-best-output", place.at("null")}));
  CHECK(fs::is_character_file(place.at("null")));
}

TEST_CASE("every output goes into a FIFO and through a link", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  place.make_predictions();
  REQUIRE(::mkfifo(place.at("fifo").c_str(), 0600) == 0);
  const auto commands = std::vector<std::pair<Words, std::string>>{
      {place.predict({}), "--output"},
      {place.predict({"--output", place.at("x")}), "--n-best-output"},
      {{"eval", "--model", place.at("run/best"), "--data", place.at("train.h5")}, "--output"},
      {place.score({}), "--output"},
      {place.encode({}), "--output"},
      {place.prepare({"--report", place.at("report")}), "--output"},
      {place.prepare({"--output", place.at("x"), "--list-truncated", "--long-seq-len", "20"}), "--report"}};
  int i = 0;
  for (auto [words, option] : commands) {
    CAPTURE(words, option);
    const std::string plain = place.at("plain" + std::to_string(i)), target = place.at("target" + std::to_string(i));
    const std::string link = place.at("link" + std::to_string(i++));
    words.insert(words.end(), {option, plain});
    place.must(words);
    const std::string expected = read_file(plain);

    test::write_file(target, "old");
    fs::permissions(target, fs::perms{0600});
    fs::create_symlink(fs::path(target).filename(), link);
    words.back() = link;
    place.must(words);
    CHECK(fs::is_symlink(link));
    CHECK(read_file(target) == expected);
    CHECK(fs::status(target).permissions() == fs::perms{0600});

    words.back() = place.at("fifo");
    std::string read;
    std::thread reader([&] { read = read_file(place.at("fifo")); });
    const Result result = place.run(words);
    const int let_go = ::open(place.at("fifo").c_str(), O_WRONLY | O_NONBLOCK);  // ends a waiting reader
    if (let_go >= 0) ::close(let_go);
    reader.join();
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(read == expected);
    CHECK(fs::is_fifo(place.at("fifo")));
  }
}

TEST_CASE("what a command tells at its end is no part of an output on standard output", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  const auto alone = [&](Words command, const std::string& told) {
    const std::size_t file = command.size();
    command.insert(command.end(), {"--output", place.at("alone.h5")});
    CHECK_THAT(place.must(command).out, Contains(told) && Contains("output: "));
    command[file + 1] = "/dev/stdout";
    const Result result = place.must(command);
    CHECK((result.out == place.bytes("alone.h5")));
    CHECK_THAT(result.err, Contains(told) && Contains("output: /dev/stdout"));
    fs::remove(place.at("alone.h5"));
  };
  alone(place.encode({}), "");
  alone(place.prepare({"--splitter", "icu", "--report", place.at("report.jsonl")}), "source records: ");
}

TEST_CASE("a device that is full is an error and stays a device", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  if (!make_device(place.at("full"), kFull)) return test::skip("no permission to make devices");
  const std::string full = place.at("full");
  for (const Words& words : {place.predict({"--output", full}), place.encode({"--output", full}),
                             place.predict({"--output", place.at("x"), "--trace", full}),
                             place.prepare({"--output", full, "--report", place.at("report")})}) {
    const Result result = place.run(words);
    CAPTURE(words, result.err);
    CHECK(result.code == 1);
    CHECK_THAT(result.err, Contains("full: cannot write: No space left on device"));
    CHECK(fs::is_character_file(full));
  }
  const Result result = place.run(place.prepare({"--output", full}));
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("expected --report FILE"));
}

// Each command's standard output is first full, then a pipe whose reader has gone, as in `etc info run | true`.
void check_broken_outputs(const Outputs& place, const std::vector<Words>& commands) {
  for (const Words& words : commands) {
    CAPTURE(words);
    if (make_device(place.at("full"), kFull)) {
      const Result full = run_into(place, words, place.at("full"));
      CHECK(full.code == 1);
      CHECK_THAT(full.err, Contains(kOutputFails + "No space left on device"));
      fs::remove(place.at("full"));
    }
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    ::close(ends[0]);
    const Result gone = run_into(place, words, "/proc/self/fd/" + std::to_string(ends[1]));
    ::close(ends[1]);
    CHECK(gone.code == 1);
    CHECK_THAT(gone.err, Contains(kOutputFails + "Broken pipe"));
  }
}

TEST_CASE("a standard output that is full, closed or gone gives exit code 1 with the reason", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  place.make_predictions();
  check_broken_outputs(place, {{"--version"},
                               {"--help"},
                               {"train", "--help"},
                               {"info", place.at("run/best")},
                               place.score({}),
                               {"eval", "--model", place.at("run/best"), "--data", place.at("train.h5")},
                               place.predict({"--output", "-"}),
                               place.prepare({"--output", place.at("out.h5")}),
                               place.training({"--forecast"}),
                               {"benchmark", "--preset", "tiny", "--lengths", "32", "--forecast"}});
  // Closed: the first file to be opened must not get its descriptor.
  Words closed = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >&-", *test::program()};
  const Words encode = place.encode({"--output", place.at("states.h5")});
  closed.insert(closed.end(), encode.begin(), encode.end());
  test::Child child(closed, place.at("closed"));
  CHECK(child.wait() == 1);
  CHECK_THAT(read_file(place.at("closed.err")), Contains(kOutputFails + "Bad file descriptor"));
  place.must({"info", place.at("states.h5")});
}

TEST_CASE("a forecast whose standard output is full or gone gives exit code 1 with the reason", "[cli][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  check_broken_outputs(place, {{"info", place.at("run/best"), "--forecast"}});
}

TEST_CASE("folders, and places where nothing can be made, are noticed before any work", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  fs::create_directory(place.at("folder"));
  const std::string folder = place.at("folder");
  // The model does not exist: a command that starts its work reports that.
  const Words data = {"--data", place.at("train.h5"), "--model", place.at("none")};
  for (const Words& start :
       {Words{"predict", "--output"}, Words{"predict", "--n-best-output"}, Words{"eval", "--output"},
        Words{"encode", "--output"}, Words{"predict", "--output", "x", "--trace"}}) {
    Words words = start;
    words.push_back(folder);
    words.insert(words.end(), data.begin(), data.end());
    const Result result = place.run(words);
    CAPTURE(words, result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(words[words.size() - 6] + " " + folder + ": expected a file, got a folder"));
  }
  const Result run = place.run({"train", "--task", "wikihop", "--vocab-size", "64", "--data", place.at("train.h5"),
                                "--output", place.at("train.h5")});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Contains("train.h5: expected a folder, got a file"));
  // Missing folders are created by every command.
  place.must(place.predict({"--output", place.at("a/b/p.json")}));
  place.must(place.encode({"--output", place.at("c/d/s.h5")}));
  place.must(place.prepare({"--output", place.at("e/f/d.h5"), "--report", place.at("g/h/r.jsonl")}));
  for (const char* name : {"a/b/p.json", "c/d/s.h5", "e/f/d.h5", "g/h/r.jsonl"}) CHECK(fs::exists(place.at(name)));

  if (::geteuid() == 0) return test::skip("root may write everywhere");
  fs::permissions(folder, fs::perms{0500});
  Words words = {"encode", "--output", folder + "/s.h5"};
  words.insert(words.end(), data.begin(), data.end());
  const Result result = place.run(words);
  CHECK(result.code == 1);
  CHECK_THAT(result.err, Contains("s.h5: cannot create: Permission denied"));
  words = {"analyze", "--output", folder + "/analysis"};
  words.insert(words.end(), data.begin(), data.end());
  const Result analysis = place.run(words);
  CHECK(analysis.code == 1);
  CHECK_THAT(analysis.err, Contains("analysis: cannot create: Permission denied"));
  fs::permissions(folder, fs::perms{0700});
}

TEST_CASE("generated records and benchmarks replace nothing of somebody else's unasked", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  Words sample = {"sample", "--task", "wikihop", "--records", "5", "--output", place.at("sample")};
  for (const char* name : {"train.json", "dev.json", "vocab.txt"}) {
    const std::string old = place.bytes(std::string("sample/") + name);
    fs::remove(place.at("sample/train.json"));
    fs::remove(place.at("sample/dev.json"));
    fs::remove(place.at("sample/vocab.txt"));
    test::write_file(place.folder / "sample" / name, old);
    const Result result = place.run(sample);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(std::string(name) + ": exists already") && Contains("--overwrite"));
    CHECK(std::distance(fs::directory_iterator(place.at("sample")), {}) == 1);
    sample.push_back("--overwrite");
    place.must(sample);
    sample.pop_back();
  }
  const std::string out = place.at("out");
  const Words benchmark = {"benchmark", "--preset", "tiny", "--lengths", "32", "--repeats", "1", "--output", out};
  for (const char* name : {"benchmark.csv", "time.svg"}) {
    test::write_file(out + "/" + name, "mine\n");
    const Result result = place.run(benchmark);
    CHECK(result.code == 2);
    CHECK_THAT(result.err,
               Contains(std::string(name) + " exists and no benchmark wrote it") && Contains("--overwrite"));
    CHECK(read_file(out + "/" + name) == "mine\n");
    fs::remove(out + "/" + name);
  }
  place.must(benchmark);
  const Result again = place.must(benchmark);  // the program's own earlier benchmark
  CHECK_THAT(again.out, Contains("benchmark.csv, time.svg, memory.svg"));
  // A picture that cannot be written.
  fs::remove(out + "/memory.svg");
  fs::create_symlink("/dev/full", out + "/memory.svg");
  const Result failed = place.run(benchmark);
  CHECK(failed.code == 1);
  CHECK_THAT(failed.err, Contains("memory.svg") && Contains("No space left on device"));
}

TEST_CASE("files a person put into a run survive its start and its checkpoints", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Outputs place;
  for (const char* name : {"run/best/notes.txt", "run/best/deep/notes.txt", "run/best.old/model", "run/last.old/model",
                           "run/notes.tmp", "run/last.tmp.backup/model", "run/p.json.partial.tmp"}) {
    test::write_file(place.at(name), "mine");
  }
  const std::string before = place.bytes("run/best/model.safetensors");
  fs::remove_all(place.at("run/last"));  // the run starts from the beginning and saves both checkpoints
  place.train();
  for (const char* name : {"run/best/notes.txt", "run/best/deep/notes.txt", "run/best.old/model", "run/last.old/model",
                           "run/notes.tmp", "run/last.tmp.backup/model", "run/p.json.partial.tmp"}) {
    CAPTURE(name);
    CHECK(place.bytes(name) == "mine");
  }
  CHECK(place.bytes("run/best/model.safetensors") == before);
  CHECK(fs::exists(place.at("run/last/state.safetensors")));
  // A conversion would replace the checkpoint of a run.
  const Result result = place.run(
      {"convert", "--to", "safetensors", place.at("run/last"), "--output", place.at("run/best"), "--overwrite"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("checkpoint of a run"));
}
