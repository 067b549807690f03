// Answers to raw records, one by one: etc predict --answers, in every form that records come in, and from a pipe.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/inference/small_scene.h"

using namespace etc;
using test::SmallScene;
using test::Words;

namespace {

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// Waits until the file has this number of lines and returns its text; empty after half a minute.
std::string once_written(const std::filesystem::path& file, std::int64_t lines) {
  for (int wait = 0; wait < 3000; ++wait) {
    const std::string text = read_file(file);
    if (std::count(text.begin(), text.end(), '\n') >= lines) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "";
}

}  // namespace

TEST_CASE("HotpotQA records are answered one by one, in whatever form they come", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  const std::string run = scene.path("run");
  const Json records = read_json_file(scene.records());
  REQUIRE(records.size() == 2);
  const std::string expected = scene.run({"predict", "--model", run, "--input", scene.records(), "--answers", "-"});
  const std::vector<Json> answers = lines_of(expected);
  REQUIRE(answers.size() == 2);
  scene.run({"predict", "--model", run, "--input", scene.records(), "--output", scene.path("p.json")});
  const Json file = read_json_file(scene.path("p.json"));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string id = records[i].at("_id");
    CHECK(answers[i].at("id") == id);
    CHECK(answers[i].at("answer") == file.at("answer").at(id));
    Json facts = Json::array();
    for (const Json& fact : answers[i].at("evidence")) {
      facts.push_back({fact.at("title"), fact.at("sentence")});
      CHECK(fact.at("text") == records[i].at("context").at(fact.at("paragraph")).at(1).at(fact.at("sentence")));
    }
    CHECK(facts == file.at("sp").at(id));
  }
  const std::string lines = json_line(records[0]) + "\n" + json_line(records[1]) + "\n";
  test::write_file(scene.path("one.json"), records[0].dump(2));
  test::write_file(scene.path("two.jsonl.gz"), test::gzip(json_line(records[1])));
  CHECK(scene.run({"predict", "--model", run, "--input", "-", "--answers", "-"}, lines) == expected);
  CHECK(scene.run({"predict", "--model", run, "--input", scene.path("one.json"), scene.path("two.jsonl.gz"),
                   "--answers", "-"}) == expected);
  CHECK(scene.run({"predict", "--model", run, "--input", scene.path("one.json"), "-", "--answers", "-"},
                  json_line(records[1])) == expected);
  CHECK(scene.run({"predict", "--model", run, "--input", "-", "--output", "-"}, lines) ==
        read_file(scene.path("p.json")));
}

TEST_CASE("a record from a pipe is answered before the next one comes", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("wikihop", ".json");
  const Json records = read_json_file(scene.records());
  REQUIRE(::mkfifo(scene.path("live.in").c_str(), 0600) == 0);
  const std::filesystem::path out = scene.path("live.out");
  test::write_file(out, "");
  test::Child child({*test::program(), "predict", "--model", scene.path("run"), "--input", "-", "--answers", "-"},
                    scene.path("live"));
  const int pipe = ::open(scene.path("live.in").c_str(), O_WRONLY);
  REQUIRE(pipe >= 0);
  const auto send = [&](const std::string& text) {
    REQUIRE(::write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  send(json_line(records[0]) + "\n");
  const std::vector<Json> first = lines_of(once_written(out, 1));
  REQUIRE(first.size() == 1);
  CHECK(first[0].at("id") == records[0].at("id"));
  CHECK(first[0].at("answer") == first[0].at("candidates").at(0).at("text"));
  send("{\"id\": \"bad\"}\n7\n" + json_line(records[1]) + "\n");
  const std::vector<Json> all = lines_of(once_written(out, 4));
  REQUIRE(all.size() == 4);
  CHECK(all[1].at("id") == "bad");
  CHECK_THAT(all[1].at("error").get<std::string>(), Catch::Contains("candidates"));
  CHECK(all[2].at("error") == "record_not_object: expected an object, got number");
  CHECK(all[3].at("id") == records[1].at("id"));
  ::close(pipe);
  CHECK(child.wait() == 1);  // two records were refused
  CHECK_THAT(read_file(scene.path("live.err")), Catch::Contains("record 2: record_not_object: expected"));
}

TEST_CASE("a model of one form of Natural Questions reads the other, and a run stands for its best", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("nq", ".jsonl");
  const std::string page = read_file(scene.records()).substr(0, read_file(scene.records()).find('\n'));
  Json simplified = Json::parse(page);
  std::string text;
  for (const Json& token : simplified.at("document_tokens"))
    text += (text.empty() ? "" : " ") + token.at("token").get<std::string>();
  simplified.erase("document_tokens");
  simplified["document_text"] = text;
  const test::Result both = scene.try_run({"predict", "--model", scene.path("run"), "--input", "-"},
                                          page + "\n" + json_line(simplified) + "\n");
  INFO(both.err);
  REQUIRE(both.code == 0);
  const std::vector<Json> answers = lines_of(both.out);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0] == answers[1]);
  CHECK_THAT(both.err, Catch::Contains("run is a run: its best checkpoint, ") && Catch::Contains("run/best"));
}

TEST_CASE("a model folder says what it is, and its scores are JSON on request", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json", {"--max-long-tokens", "512"});
  const Json config = read_json_file(scene.path("run/best/config.json"));
  CHECK(config.at("data").at("preprocess_config").at("long_seq_len") == 512);
  const std::string card = read_file(scene.path("run/best/README.md"));
  CHECK_THAT(card, Catch::StartsWith("---\nlibrary_name: etc\n") && Catch::Contains("# A model of hotpotqa") &&
                       Catch::Contains("| joint_f1 | ") && Catch::Contains("etc ask --model .") &&
                       Catch::Contains(config.at("data").at("vocab_sha256").get<std::string>()));
  const Json tokenizer = read_json_file(scene.path("run/best/tokenizer.json"));
  CHECK(tokenizer.at("model").at("vocab").at("[UNK]").is_number());
  const Words eval = {"eval", "--model", scene.path("run"), "--data", scene.path("dev.h5")};
  const Json scores = Json::parse(scene.run(test::joined(eval, {"--json"}))).at("metrics");
  CHECK(std::abs(test::value_of(scene.run(eval), "loss") - scores.at("loss").get<double>()) < 1e-4);

  // Without --vocab-size the model takes the size of its vocabulary.
  Words words = {
      "train",    "hotpotqa",          "--data", scene.path("train.h5"), "--vocab", scene.path("sample/vocab.txt"),
      "--output", scene.path("second")};
  const Words model = test::small_model("1");
  words.insert(words.end(), model.begin() + 2, model.end());  // without --vocab-size
  scene.run(words);
  CHECK(read_json_file(scene.path("second/best/config.json")).at("model").at("vocab_size") ==
        tokenizer.at("model").at("vocab").size());
  const test::Result twice =
      scene.try_run({"prepare", "nq", "--split", "dev", "--input", "a", "--vocab", "v", "--output", scene.path("o.h5"),
                     "--seq-len", "9", "--max-long-tokens", "9"});
  CHECK(twice.code == 2);
  CHECK_THAT(twice.err, Catch::Contains("--max-long-tokens and --seq-len are the same setting"));
}

TEST_CASE("options of answers that do not go together are refused", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::CommandScene scene("hotpotqa");
  const auto refused = [&](const Words& words) {
    Words all = {"predict", "--model", scene.path("none")};
    all.insert(all.end(), words.begin(), words.end());
    const test::Result result = scene.try_run(all);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(refused({"--data", "a.h5", "--answers", "-"}), Catch::Contains("--answers needs --input"));
  CHECK_THAT(refused({"--input", "-", "-", "--answers", "-"}), Catch::Contains("expected - (standard input) once"));
  CHECK_THAT(refused({"--input", "a.json", "--answers", "-", "--output", "p.json"}),
             Catch::Contains("--answers goes without --output"));
  CHECK_THAT(refused({"--data", "a.h5"}), Catch::Contains("expected --output FILE"));
}
