// `etc prepare` as a program: counts and exit codes, equal bytes, kill and resume.
#include <csignal>

#include "data/dataset_info.h"
#include "tasks/wikihop/schema.h"
#include "tests/support/golden_h5.h"
#include "tests/support/gzip.h"
#include "tests/tasks/wikihop/prepare_scene.h"

using namespace etc;
using namespace etc::test;
namespace fs = std::filesystem;

using Numbers = std::vector<std::int64_t>;

TEST_CASE("good records are prepared, counted and stored as worked out", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const Result result = scene.prepare_text(array_of({json_line(worked_record())}), 0);
  CHECK(has(result.out, "source records: 1\nexamples: 1\nrejected: 0\ndropped: 0\nwarned: 0\n"));
  CHECK(scene.written() == kWhole);
  CHECK(scene.bytes("out.h5.rejects.jsonl").empty());
  const GoldenFile file(scene.at("out.h5"));
  const auto offsets = [&](const std::string& name) { return file.read<std::int64_t>("examples/" + name).values; };
  CHECK(offsets("long_token_ids/offsets") == Numbers{0, 14});
  CHECK(offsets("global_token_ids/offsets") == Numbers{0, 9});
  CHECK(offsets("candidates/offsets") == Numbers{0, 2});
  CHECK(offsets("candidates/item_offsets") == Numbers{0, 6, 14});
  CHECK(offsets("query/offsets") == Numbers{0, 12});
  const auto config = Json::parse(file.string_attribute("", "preprocess_config"));
  CHECK(config.size() == 8);
  CHECK(json_line(config) == file.string_attribute("", "preprocess_config"));
  CHECK(config.at("parity") == "repaired");
  CHECK(file.int_attribute("", "labelled") == 1);
  CHECK(file.int_attribute("", "n_examples") == 1);
}

TEST_CASE("rejected records end with exit code 1 beyond --max-rejects", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  Json bad = small_record(1), worse = small_record(2);
  bad["answer"] = "denmark";
  worse["supports"] = Json::array();
  const std::string text = array_of({json_line(small_record(0)), json_line(bad), json_line(worse)});
  const Result result = scene.prepare_text(text, 1);
  CHECK(has(result.err, "--max-rejects"));
  CHECK(has(result.out, "examples: 1\nrejected: 2\n"));
  CHECK(has(result.out, "reject answer_not_candidate: 1\n"));
  CHECK(report_rows(scene.at("out.h5.rejects.jsonl")).size() == 2);
  CHECK(data::DatasetReader({scene.at("out.h5")}, wikihop::schema()).faults().size() == 2);
  scene.prepare_text(text, 1, {"--max-rejects", "1"});
  scene.prepare_text(text, 0, {"--max-rejects", "2"});

  const Result none = scene.prepare_text(array_of({json_line(bad), json_line(worse)}), 1);
  CHECK(has(none.err, "holds no example"));
  CHECK(data::DatasetReader({scene.at("out.h5")}, wikihop::schema()).size() == 0);
  CHECK(has(scene.prepare_text("[]", 0).err, "holds no example"));
}

TEST_CASE("--strict stops at the first rejected record and leaves what was there", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  Json bad = small_record(1);
  bad["candidates"] = Json::array();
  const std::string text = array_of({json_line(small_record(0)), json_line(bad)});
  const Result result = scene.prepare_text(text, 1, {"--strict"});
  CHECK(has(result.err, "record 1"));
  CHECK(has(result.err, "too_few_candidates"));
  CHECK(scene.written().empty());
  scene.prepare_text(text, 1);
  const std::string before = scene.bytes("out.h5");
  scene.prepare_text(text, 1, {"--strict"});
  CHECK(scene.bytes("out.h5") == before);
  CHECK(scene.written() == kWhole);
}

TEST_CASE("files that cannot be read to their end keep what stands before and end with exit code 2", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string good = json_line(small_record(1));
  std::string not_utf8 = json_line(small_record(2));
  not_utf8.replace(not_utf8.find("oslo"), 1, "\xC3");
  const std::string packed = gzip(array_of_small_records(0, 400));
  struct Case {
    std::string text;
    Words parts;
  };
  const std::vector<Case> cases = {
      {"", {"empty"}},
      {"[" + good + ", {\"n\": NaN}]", {"1 records before", "not valid JSON"}},
      {"[" + good + ", {\"n\": Infinity}]", {"1 records before", "not valid JSON"}},
      {"[" + good + ", " + not_utf8 + "]", {"1 records before", "UTF-8"}},
      {"[" + good + "] trailing", {"1 records before", "nothing behind the array"}},
      {"[" + good + ", {\"id\": \"", {"1 records before", "the file ends"}},
      {packed.substr(0, packed.size() / 2), {"gzip", "ends early"}},
      {packed.substr(0, packed.size() / 2) + std::string(100, '\xAA'), {}},  // decompresses to garbage first
  };
  for (const Case& c : cases) {
    const Result result = scene.prepare_text(c.text, 2);
    CAPTURE(c.text.substr(0, 100), result.err);
    for (const std::string& part : c.parts) CHECK(has(result.err, part));
    CHECK(has(result.err, "in.json: byte "));
    CHECK(scene.written() == kWhole);
    const data::DatasetReader reader({scene.at("out.h5")}, wikihop::schema());
    CHECK(reader.size() == reader.info().input_records);
    CHECK(has(result.out, fmt::format("examples: {}\n", reader.size())));
  }
}

TEST_CASE("deep nesting is read like anything else", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  constexpr int kDepth = 10000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  std::string objects;
  for (int i = 0; i < kDepth; ++i) objects += "{\"a\":";
  objects += "1" + std::string(kDepth, '}');
  const auto with = [](const std::string& key, const std::string& value) {
    std::string text = json_line(small_record(1));
    text.insert(1, "\"" + key + "\":" + value + ",");
    return array_of({text});
  };
  scene.prepare_text(with("annotations", deep), 0);
  scene.prepare_text(with("annotations", objects), 0);
  const Result rejected = scene.prepare_text(array_of({deep, objects, json_line(small_record(1))}), 1);
  CHECK(has(rejected.out, "examples: 1\nrejected: 2\n"));
  scene.prepare_text("[" + std::string(kDepth, '['), 2);
  scene.prepare_text("[" + std::string(kDepth, '[') + std::string(kDepth, '}'), 2);
}

TEST_CASE("output and report are the same bytes for any number of threads, packed or not", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  std::string text = array_of_small_records(0, 300, 400);
  text.replace(text.find("\"candidates\""), 12, "\"candidate_\"");  // a few rows for the report
  scene.write("in.json", text);
  scene.write("more.json", array_of_small_records(299, 40));
  scene.write("in.json.gz", gzip(text));
  std::string output, report;
  for (const char* threads : {"1", "2", "4"}) {
    CHECK(scene.prepare({"--input", scene.at("in.json"), scene.at("more.json"), "--threads", threads}).code == 1);
    if (output.empty()) output = scene.bytes("out.h5"), report = scene.bytes("out.h5.rejects.jsonl");
    CHECK(scene.bytes("out.h5") == output);
    CHECK(scene.bytes("out.h5.rejects.jsonl") == report);
    CHECK(scene.written() == kWhole);
  }
  CHECK(report_rows(scene.at("out.h5.rejects.jsonl")).size() == 2);  // missing_field, duplicate_id over files
  CHECK(has(report, "of in.json"));
  CHECK(scene.prepare({"--input", scene.at("in.json.gz"), "--input", scene.at("more.json")}).code == 1);
  const data::DatasetReader packed({scene.at("out.h5")}, wikihop::schema());
  const auto packed_info = packed.info();
  scene.write("plain.h5", output);
  const data::DatasetReader plain({scene.at("plain.h5")}, wikihop::schema());
  CHECK(packed.size() == plain.size());
  CHECK(packed_info.content_sha256.size() == 64);
  bool equal = true;
  for (std::int64_t i = 0; i < plain.size(); ++i) equal = equal && packed.read(i) == plain.read(i);
  CHECK(equal);
  CHECK(plain.info().source_files.at(1).name == "more.json");
  CHECK(plain.info().source_files.at(0).bytes == static_cast<std::int64_t>(text.size()));
}

TEST_CASE("a killed preparation of several files goes on where it was and gives the same bytes", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("a.json", array_of_small_records(0, 50, 300));
  scene.write("b.json", array_of_small_records(1000, 3000, 700));
  scene.write("c.json", array_of_small_records(40, 60));  // ten ids of the first file again
  const Words inputs = {"--input", scene.at("a.json"), scene.at("b.json"), scene.at("c.json")};
  CHECK(scene.prepare(inputs).code == 1);
  const std::string output = scene.bytes("out.h5"), report = scene.bytes("out.h5.rejects.jsonl");
  CHECK(scene.written() == kWhole);
  fs::remove(scene.at("out.h5"));
  fs::remove(scene.at("out.h5.rejects.jsonl"));

  const auto finished_parts = [&] {
    int count = 0;
    if (!scene.exists("out.h5.parts")) return count;
    for (const auto& entry : fs::directory_iterator(scene.at("out.h5.parts"))) {
      count += entry.path().extension() == ".json" ? 1 : 0;
    }
    return count;
  };
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    const std::string log = "killed" + std::to_string(signal);
    Words command = scene.arguments(inputs);
    command.insert(command.begin(), *program());
    Child child(command, scene.at(log));
    // After the kill the first file is finished already: wait until the program reports this.
    const auto under_way = [&] {
      if (signal == SIGKILL) return finished_parts() == 1;
      return scene.exists(log + ".err") && has(scene.bytes(log + ".err"), "a.json is finished");
    };
    child.run_until(under_way);
    child.send(signal);
    const int code = child.wait();
    CAPTURE(signal, scene.bytes(log + ".err"));
    CHECK(code == (signal == SIGKILL ? 128 + SIGKILL : 1));
    if (signal != SIGKILL) CHECK(has(scene.bytes(log + ".err"), "the same command goes on from there"));
    CHECK(finished_parts() == 1);
    CHECK(scene.written() == Words{"out.h5.parts"});  // no partially written output or report
  }
  const Result resumed = scene.prepare(inputs);
  CHECK(resumed.code == 1);
  CHECK(has(resumed.err, "a.json is finished from an earlier run"));
  CHECK(!has(resumed.err, "b.json is finished"));
  CHECK(scene.bytes("out.h5") == output);
  CHECK(scene.bytes("out.h5.rejects.jsonl") == report);
  CHECK(scene.written() == kWhole);
}

TEST_CASE("while a preparation is at work another into the same output is refused or leaves it alone", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("a.json", array_of_small_records(0, 50, 300));
  scene.write("b.json", array_of_small_records(1000, 4000, 700));
  scene.write("c.json", array_of_small_records(100, 60));
  const Words inputs = {"--input", scene.at("a.json"), scene.at("b.json"), scene.at("c.json")};
  CHECK(scene.prepare(inputs).code == 0);
  const std::string output = scene.bytes("out.h5");
  fs::remove(scene.at("out.h5"));
  Words command = scene.arguments(inputs);
  command.insert(command.begin(), *program());
  Child child(command, scene.at("first"));
  child.run_until([&] { return scene.exists("out.h5.parts/lock") && !scene.bytes("out.h5.parts/lock").empty(); });
  if (!child.running()) return skip("the first preparation was too quick");
  const std::string number = std::to_string(child.pid());
  const Result second = scene.prepare(inputs), single = scene.prepare({"--input", scene.at("c.json")});
  CAPTURE(second.err, single.err);
  CHECK(second.code == 1);
  CHECK(has(second.err, "out.h5.parts: in use by another preparation (process " + number + ")"));
  CHECK(single.code == 0);
  CHECK(child.wait() == 0);
  CHECK(scene.bytes("out.h5") == output);
  CHECK(scene.written() == kWhole);
}

TEST_CASE("a run killed while it writes the output leaves nothing that the next run does not clear away", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  scene.write("in.json", array_of_small_records(0, 3000, 700));
  for (int repeat = 0; repeat < 2; ++repeat) {
    Words command = scene.arguments({});
    command.insert(command.begin(), *program());
    Child child(command, scene.at("killed"));
    child.run_until([&] { return scene.exists("out.h5.rejects.jsonl.partial.tmp"); });
    child.send(SIGKILL);
    CHECK(child.wait() == 128 + SIGKILL);
    CHECK(scene.written() == Words{"out.h5.partial.tmp", "out.h5.rejects.jsonl.partial.tmp"});
  }
  CHECK(scene.prepare().code == 0);
  CHECK(scene.written() == kWhole);
}

TEST_CASE("real records are prepared with either splitter and either kind of vocabulary", "[wikihop][golden]") {
  const auto real = real_data_folder();
  if (!real || !fs::exists(*real / "wikihop")) return skip("no real WikiHop records");
  if (without_program()) return;
  const Scene scene;
  std::int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(*real / "wikihop")) {
    if (!entry.path().filename().string().starts_with("wikihop_")) continue;
    ++files;
    for (const char* vocab : {"bert_uncased_vocab.txt", "bigbird_gpt2.model"}) {
      for (const std::string& splitter : {std::string("icu"), "punkt:" + (*real / "punkt_english").string()}) {
        const Result result = scene.prepare(
            {"--input", entry.path().string(), "--splitter", splitter, "--vocab", (*real / "vocab" / vocab).string()});
        CAPTURE(entry.path(), vocab, splitter, result.out, result.err);
        CHECK(result.code == 0);
        CHECK(has(result.out, "rejected: 0\n"));
        const data::DatasetReader reader({scene.at("out.h5")}, wikihop::schema());
        CHECK(reader.size() == reader.info().input_records);
        CHECK(reader.size() > 0);
        CHECK(reader.info().max_long_len <= 4096);
      }
    }
  }
  CHECK(files > 0);
}
