// `etc prepare` on truncated inputs and on streams, and how the data set records this.
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset_info.h"
#include "data/text/sha256.h"
#include "etc_core/base/version.h"
#include "tasks/prepare/parts.h"
#include "tests/support/gzip.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/wikihop/prepare_scene.h"

using namespace etc;
using namespace etc::test;
namespace fs = std::filesystem;

namespace {

using Missing = std::vector<data::MissingPart>;

Missing missing_in(const Scene& scene) {
  return data::read_dataset_info(scene.at("out.h5")).missing;
}

// The program at the end of a shell's pipe: `before | etc ARGUMENTS`.
Result piped(const Scene& scene, const std::string& before, const Words& arguments) {
  std::string line = before + " | '" + *program() + "'";
  for (const std::string& word : arguments) line += " '" + word + "'";
  Child child({"sh", "-c", line}, scene.at("piped"));
  const int code = child.wait();
  return {code, scene.bytes("piped.out"), scene.bytes("piped.err"), 0};
}

Words nq_arguments(const Scene& scene, const Words& inputs) {
  Words words = scene.arguments({"--task", "nq", "--vocab", scene.at("nq_vocab.txt"), "--input"});
  words.insert(words.end(), inputs.begin(), inputs.end());
  return words;
}

}  // namespace

TEST_CASE("a data set of a cut input says so, and info tells it", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string text = array_of_small_records(0, 4), packed = gzip(array_of_small_records(0, 400));
  const std::vector<std::pair<std::string, std::string>> cut = {
      {text.substr(0, text.size() - 30), "the file ends inside a record"},
      {text.substr(0, text.find("},") + 1), "the file ends: expected ',' or ']' after a record"},
      {"[" + json_line(small_record()) + ", {\"n\": NaN}]", "not valid JSON"},
      {packed.substr(0, packed.size() / 2), "the gzip data ends early"}};
  for (const auto& [bytes, reason] : cut) {
    const Result result = scene.prepare_text(bytes, 2);
    CHECK(has(result.err, "out.h5 is incomplete"));
    const Missing missing = missing_in(scene);
    REQUIRE(missing.size() == 1);
    CHECK(missing[0].name == "in.json");
    CHECK(has(missing[0].reason, reason));
    CHECK(has(missing[0].reason, "byte "));
    const Result info = run_program({"info", scene.at("out.h5")}, scene.at(""));
    CHECK(info.code == 0);
    CHECK(has(info.out, "INCOMPLETE: in.json"));
    CHECK(has(info.out, reason));
  }
  scene.prepare_text(text, 0);
  CHECK(missing_in(scene).empty());
  CHECK(!has(run_program({"info", scene.at("out.h5")}, scene.at("")).out, "INCOMPLETE"));
}

TEST_CASE("records in lines that stop inside the last one are incomplete, a bad line is a rejected record",
          "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("nq_vocab.txt", small_nq_vocabulary());
  const std::string record = json_line(worked_nq_record());
  const auto prepare = [&](const std::string& text) {
    scene.write("in.jsonl", text);
    return run_program(nq_arguments(scene, {scene.at("in.jsonl")}), scene.at(""));
  };
  CHECK(prepare(record + "\n").code == 0);
  CHECK(missing_in(scene).empty());
  CHECK(prepare(record).code == 0);  // the last line end may be left out
  CHECK(missing_in(scene).empty());
  const Result cut = prepare(record + "\n" + record.substr(0, 300));
  CHECK(cut.code == 2);
  CHECK(has(cut.out, "examples: 1\nrejected: 0\n"));
  REQUIRE(missing_in(scene).size() == 1);
  CHECK(has(missing_in(scene)[0].reason, "the file ends inside a record"));
  const Result bad = prepare(record + "\n" + record.substr(0, 300) + "\n");
  CHECK(bad.code == 1);
  CHECK(has(bad.out, "rejected: 1\n"));
  CHECK(missing_in(scene).empty());
}

TEST_CASE("a finished part of a cut input carries that it is incomplete", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string text = array_of_small_records(0, 5);
  scene.write("a.json", text.substr(0, text.size() - 20));
  scene.write("b.json", array_of_small_records(100, 3000, 700));
  const Words inputs = {"--input", scene.at("a.json"), scene.at("b.json")};
  CHECK(scene.prepare(inputs).code == 2);
  const std::string whole_run = scene.bytes("out.h5");
  REQUIRE(missing_in(scene).size() == 1);
  CHECK(missing_in(scene)[0].name == "a.json");
  fs::remove(scene.at("out.h5"));
  Words command = scene.arguments(inputs);
  command.insert(command.begin(), *program());
  {
    Child child(command, scene.at("killed"));
    const auto part_finished = [&] {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(scene.at("out.h5.parts"), error)) {
        if (entry.path().extension() == ".json") return true;
      }
      return false;
    };
    child.run_until(part_finished);
  }
  const Result resumed = scene.prepare(inputs);
  CHECK(resumed.code == 2);
  CHECK(has(resumed.err, "a.json is finished from an earlier run"));
  CHECK(scene.bytes("out.h5") == whole_run);
  CHECK(missing_in(scene).size() == 1);
}

TEST_CASE("parts of another release of the program are not taken", "[wikihop]") {
  const TemporaryFolder folder;
  const Json configuration = {{"split", "train"}};
  const std::vector<data::SourceFile> inputs = {{"a.json", 5, std::string(64, 'a')}};
  const prepare::Parts parts(folder / "out.h5", configuration);
  const std::string key = fmt::format("{}\n{}\n", program_version(), json_line(configuration)) +
                          json_line(Json::array({{"a.json", std::string(64, 'a')}}));
  CHECK(parts.files_of(inputs).state.stem() == data::sha256_hex(key).substr(0, 32));
}

TEST_CASE("a stream is prepared like the file, with its size and hash", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string text = array_of_small_records(0, 300, 400);
  scene.write("in.json", text);
  scene.write("in.json.gz", gzip(text));
  const std::string in = "'" + scene.at("in.json") + "'";
  CHECK(scene.prepare().code == 0);
  const data::DatasetInfo file = data::read_dataset_info(scene.at("out.h5"));
  const auto check = [&](const Result& result, const std::string& name, const std::string& stored) {
    CAPTURE(result.out, result.err);
    CHECK(result.code == 0);
    const data::DatasetInfo info = data::read_dataset_info(scene.at("out.h5"));
    CHECK(info.content_sha256 == file.content_sha256);
    REQUIRE(info.source_files.size() == 1);
    CHECK(info.source_files[0].name == name);
    CHECK(info.source_files[0].bytes == static_cast<std::int64_t>(scene.bytes(stored).size()));
    CHECK(info.source_files[0].sha256 == data::sha256_hex(scene.bytes(stored)));
    CHECK(scene.written() == kWhole);
    fs::remove(scene.at("out.h5"));
  };
  check(piped(scene, "cat " + in, scene.arguments({"--input", "-"})), "standard input", "in.json");
  check(piped(scene, "gunzip -c " + in + ".gz", scene.arguments({"--input", "-"})), "standard input", "in.json");
  check(piped(scene, "cat " + in + ".gz", scene.arguments({"--input", "-"})), "standard input", "in.json.gz");
  check(piped(scene, "cat " + in, scene.arguments({"--input", "/dev/stdin"})), "stdin", "in.json");
  check(run_program(scene.arguments({"--input", "-"}), scene.at(""), text), "standard input", "in.json");  // not a pipe
  REQUIRE(::mkfifo(scene.at("fifo").c_str(), 0600) == 0);
  Child writer({"sh", "-c", "cat " + in + " > '" + scene.at("fifo") + "'"}, scene.at("writer"));
  check(scene.prepare({"--input", scene.at("fifo")}), "fifo", "in.json");
}

TEST_CASE("a stream may follow files, and one that stops early is incomplete", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("a.json", array_of_small_records(0, 5));
  scene.write("b.json", array_of_small_records(5, 5));
  const std::string b = scene.at("b.json");
  const Result both = piped(scene, "cat '" + b + "'", scene.arguments({"--input", scene.at("a.json"), "-"}));
  CAPTURE(both.err);
  CHECK(both.code == 0);
  CHECK(data::read_dataset_info(scene.at("out.h5")).examples == 10);
  const Result cut = piped(scene, "head -c 500 '" + b + "'", scene.arguments({"--input", "-"}));
  CHECK(cut.code == 2);
  REQUIRE(missing_in(scene).size() == 1);
  CHECK(missing_in(scene)[0].name == "standard input");
  // Bytes after a fault are hashed as well.
  const std::string bad = array_of_small_records(0, 2) + "trailing" + std::string(3 << 20, ' ');
  scene.write("bad.json", bad);
  CHECK(piped(scene, "cat '" + scene.at("bad.json") + "'", scene.arguments({"--input", "-"})).code == 2);
  CHECK(data::read_dataset_info(scene.at("out.h5")).source_files.at(0).sha256 == data::sha256_hex(bad));
}

TEST_CASE("where a file is needed a stream is refused, saying why and what to do", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  check_refused(scene, {"--input", "-", scene.at("in.json")}, 2,
                {"input -: of several inputs only the last may be a stream", "save it to a file first"});
  check_refused(scene, {"--input", "-", "--splitter", "punkt:" + scene.at("learned"), "--learn-splitter"}, 2,
                {"--learn-splitter: input -: the input is read four times", "save it to a file first"});
  CHECK(!scene.exists("learned"));
  check_refused(scene, {"--task", "openkp", "--input", "-"}, 2,
                {"input -: task openkp reads its input twice", "of each url", "save it to a file first"});
}

TEST_CASE("an input that may not be read is refused with the reason", "[wikihop]") {
  if (without_program()) return;
  if (::geteuid() == 0) return skip("root may read everything");
  const Scene scene;
  fs::permissions(scene.at("in.json"), fs::perms::none);
  check_refused(scene, {}, 1, {"in.json", "cannot open: Permission denied"});
  fs::create_directory(scene.at("closed"));
  scene.write("closed/in.json", "[]");
  fs::permissions(scene.at("closed"), fs::perms::none);
  check_refused(scene, {"--input", scene.at("closed/in.json")}, 1,
                {"closed/in.json", "cannot open: Permission denied"});
  fs::permissions(scene.at("closed"), fs::perms::owner_all);
}
