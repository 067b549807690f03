// Natural Questions through the program: sample, prepare, train, eval, predict, official score; generated and real
// pages.
#include <filesystem>
#include <sstream>

#include "data/sample/nq_sample.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/registry.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Scene = test::CommandScene;
using test::joined;
using test::value_of;
using test::Words;

namespace {

// Windows shorter than a page, so that documents are cut into several.
const Words kShortWindows = {"--seq-len", "64", "--stride", "32", "--question-len", "12", "--global-seq-len", "24"};

// Checks that the scores of dev.h5 from the model and from its prediction file agree.
void check_scores(const Scene& scene, const std::string& gold, const Words& decoding = {}) {
  const std::string predictions = scene.path("p.json");
  const std::string by_model = scene.run(joined(
      {"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output", predictions}, decoding));
  const std::string by_file = scene.run({"eval", "--task", "nq", "--predictions", predictions, "--gold", gold});
  CHECK(value_of(by_model, "f1") == value_of(by_file, "average_f1"));
  CHECK(value_of(by_model, "long_f1") == value_of(by_file, "long-best-threshold-f1"));
  CHECK(value_of(by_model, "short_f1") == value_of(by_file, "short-best-threshold-f1"));
  CHECK(value_of(by_model, "documents") == value_of(by_file, "documents"));
  CHECK(value_of(by_model, "loss") > 0);
}

// Generated pages of every kind, prepared as short windows, and a model trained on them.
struct TrainedScene : Scene {
  explicit TrainedScene(const Words& model) : Scene("nq") {
    run({"sample", "--task", "nq", "--records", "60", "--mixed", "8", "--long-tokens", "160", "--output",
         path("sample")});
    const std::string vocab = path("sample/vocab.txt");
    prepare("train", path("sample/train.jsonl"), vocab, "train.h5", kShortWindows);
    prepare("dev", path("sample/dev.jsonl"), vocab, "dev.h5", joined(kShortWindows, {"--is-train", "false"}));
    train(vocab, model);
  }
};

}  // namespace

TEST_CASE("generated Natural Questions pages go through every command", "[nq][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const TrainedScene scene(test::small_model());
  const std::string best = scene.path("run/best"), dev = scene.path("sample/dev.jsonl");
  for (const char* selection : {"joint", "disjoint", "joint-exhaustive"}) {
    for (const char* score : {"quotient", "difference"}) {
      INFO(selection << " " << score);
      check_scores(scene, dev, {"--span-selection", selection, "--answer-score", score});
    }
  }

  // Raw pages, compressed or not, and prepared pages give the same predictions, one per document.
  scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("a.json"),
             "--n-best-output", scene.path("n.jsonl"), "--n-best", "3"});
  const std::string expected = read_file(scene.path("a.json"));
  scene.run({"predict", "--model", best, "--input", dev, "--output", scene.path("b.json")});
  CHECK(read_file(scene.path("b.json")) == expected);
  test::write_file(scene.path("dev.jsonl.gz"), test::gzip(read_file(dev)));
  scene.run({"predict", "--model", best, "--input", scene.path("dev.jsonl.gz"), "--output", scene.path("c.json")});
  CHECK(read_file(scene.path("c.json")) == expected);
  CHECK(scene.run({"predict", "--model", best, "--input", "-", "--output", "-"}, read_file(dev)) == expected);
  const Json predictions = Json::parse(expected).at("predictions");
  REQUIRE(predictions.size() == 12);
  std::istringstream lines(read_file(scene.path("n.jsonl")));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json n_best = Json::parse(line);
    CHECK(n_best.at("id") == json_line(predictions.at(count).at("example_id")));
    CHECK(n_best.at("answers").at("long").size() <= 3);
    CHECK(n_best.at("answers").at("short").size() <= 3);
  }
  CHECK(count == 12);
  const std::string shown = scene.run({"predict", "--model", best, "--input", dev, "--show", "1"});
  CHECK_THAT(shown, Catch::Contains("1000000000#0: ") && Catch::Contains("1000000000#1: "));
  CHECK_THAT(shown, Catch::Contains("answer type: none ") && Catch::Contains("  long [") && Catch::Contains("score "));
}

TEST_CASE("a mask of positions and residual scores train, too", "[nq][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const TrainedScene scene(joined(test::small_model("4"), {"--mask-long-output", "--use-residual-attention"}));
  check_scores(scene, scene.path("sample/dev.jsonl"), {"--answer-score", "difference"});
}

TEST_CASE("words of the configuration that mean nothing are refused by name", "[nq][commands]") {
  const auto message = [](const char* key, const Json& value) -> std::string {
    Json section = {{"name", "nq"}};
    section.update(task_kind("nq").keys.defaults());
    section[key] = value;
    try {
      make_task(section, EtcConfig{});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("span_selection", "disjoint").empty());
  CHECK_THAT(message("span_selection", "join"),
             Catch::Contains("task.span_selection: expected joint, disjoint or joint-exhaustive, got join"));
  CHECK_THAT(message("answer_score", "sum"), Catch::Contains("task.answer_score: expected quotient or difference"));
  CHECK_THAT(message("answer_type_window", "first"), Catch::Contains("expected last or best_long, got first"));
  CHECK_THAT(message("max_short_answer_len", 0),
             Catch::Contains("task.max_short_answer_len: expected an integer from 1"));
  CHECK_THAT(message("cls_id", -1), Catch::Contains("task.cls_id: expected an integer from 0"));
}

TEST_CASE("pages without annotations cannot be scored, but predicted", "[nq][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const TrainedScene scene(test::small_model("2"));
  Json page = data::nq_sample_record({}, "dev", 0);
  page["annotations"] = Json::array();
  test::write_file(scene.path("test.jsonl"), json_line(page) + "\n");
  scene.prepare("test", scene.path("test.jsonl"), scene.path("sample/vocab.txt"), "test.h5",
                joined(kShortWindows, {"--is-train", "false"}));
  const test::Result eval = scene.try_run({"eval", "--model", scene.path("run/best"), "--data", scene.path("test.h5")});
  CHECK(eval.code == 1);
  CHECK_THAT(eval.err, Catch::Contains("no example has a label"));
  scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("test.h5"), "--output",
             scene.path("t.json")});
  CHECK(read_json_file(scene.path("t.json")).at("predictions").size() == 1);
}

TEST_CASE("real Natural Questions pages go through every command", "[nq][commands][golden]") {
  const auto data = test::real_data_folder();
  if (!test::program() || !data) return test::skip("no real records");
  const Scene scene("nq");
  const std::string vocab = (*data / "vocab/bert_uncased_vocab.txt").string();
  const std::string page = (*data / "nq/nq_dev_original_1.jsonl.gz").string();
  const Words windows = {"--seq-len", "512", "--stride", "256", "--global-seq-len", "128"};
  scene.prepare("train", page, vocab, "train.h5", joined(windows, {"--is-train", "false"}));
  scene.prepare("dev", page, vocab, "dev.h5", joined(windows, {"--is-train", "false"}));
  scene.train(vocab, test::small_model());
  check_scores(scene, page);
  const std::string best = scene.path("run/best");
  scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("a.json")});
  scene.run({"predict", "--model", best, "--input", page, "--output", scene.path("b.json")});
  CHECK(read_file(scene.path("a.json")) == read_file(scene.path("b.json")));
  // Data prepared from the simplified form can be used with the same model.
  for (const char* name : {"nq_simplified_farm_dev_1.jsonl", "nq_simplified_farm_train_1.jsonl"}) {
    INFO(name);
    scene.prepare("dev", (*data / "nq" / name).string(), vocab, "simplified.h5",
                  joined(windows, {"--is-train", "false", "--input-form", "simplified"}));
    scene.run({"predict", "--model", best, "--data", scene.path("simplified.h5"), "--output", scene.path("s.json")});
    CHECK(read_json_file(scene.path("s.json")).at("predictions").size() == 1);
  }
}

TEST_CASE("the memory of a prediction does not grow with the data", "[nq][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const TrainedScene scene(test::small_model("2"));
  const auto peak = [&](std::int64_t pages) {
    std::string lines;
    for (std::int64_t i = 0; i < pages; ++i) lines += json_line(data::nq_sample_record({}, "dev", i)) + "\n";
    test::write_file(scene.path("pages.jsonl"), lines);
    const test::Result result =
        scene.try_run({"predict", "--model", scene.path("run/best"), "--input", scene.path("pages.jsonl"), "--output",
                       scene.path("p.json"), "--threads", "1"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    return test::megabytes_told(result.err, "info: peak memory");
  };
  const double few = peak(1000), many = peak(10000);
  std::printf("nq predict: %.1f MB for 1,000 pages, %.1f MB for 10,000\n", few, many);
  CHECK(many < few + 16);
}

TEST_CASE("the memory of a preparation does not grow with the file", "[nq][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("nq");
  const auto peak = [&](const std::string& pages) {  // of about 40 KB each
    scene.run({"sample", "--task", "nq", "--records", pages, "--candidates", "10", "--long-tokens", "1000", "--output",
               scene.path(pages)});
    const test::Result result = scene.try_run(
        {"prepare", "--task", "nq", "--split", "train", "--input", scene.path(pages + "/train.jsonl"), "--vocab",
         scene.path(pages + "/vocab.txt"), "--output", scene.path("train.h5"), "--threads", "2"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    std::filesystem::remove(scene.path("train.h5"));
    return test::megabytes_told(result.err, "info: peak memory");
  };
  const double few = peak("300"), many = peak("3000");
  std::printf("nq prepare: %.1f MB for 300 pages, %.1f MB for 3,000\n", few, many);
  CHECK(many < few + 24);
}
