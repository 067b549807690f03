// SQuAD through the program: sample, prepare, train, eval, predict, official score; on a dense encoder and an ETC.
#include <filesystem>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Scene = test::CommandScene;
using test::value_of;
using test::Words;

namespace {

Words dense_model(const std::string& steps = "10") {
  return {"--model-kind",
          "dense",
          "--vocab-size",
          "30522",
          "--hidden-size",
          "32",
          "--num-hidden-layers",
          "2",
          "--num-attention-heads",
          "2",
          "--intermediate-size",
          "64",
          "--batch-size",
          "4",
          "--steps",
          "10"};
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("generated SQuAD questions go through every command, with and without global tokens", "[squad][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("squad");
  scene.run({"sample", "--task", "squad", "--records", "40", "--impossible", "3", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt"), dev = scene.path("sample/dev.json");
  const Words windows = {"--seq-len", "24", "--stride", "8", "--question-len", "8", "--version-2", "true"};
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5", windows);
  scene.prepare("dev", dev, vocab, "dev.h5", with(windows, {"--is-training", "false"}));
  for (const Words& model : {dense_model(), test::small_model("10")}) {
    std::filesystem::remove_all(scene.path("run"));
    scene.train(vocab, with(model, {"--version-2", "true"}));
    const std::string best = scene.path("run/best");
    const std::string by_model =
        scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("p.json")});
    const std::string by_file =
        scene.run({"eval", "--task", "squad", "--predictions", scene.path("p.json"), "--gold", dev});
    for (const char* name : {"exact", "f1", "HasAns_exact", "HasAns_f1", "HasAns_total"}) {
      INFO(name);
      CHECK(value_of(by_model, name) == value_of(by_file, name));
    }
    CHECK(value_of(by_model, "best_exact") >= value_of(by_model, "exact"));

    // Raw records and prepared ones have the same predictions.
    scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("a.json"),
               "--n-best-output", scene.path("n.jsonl"), "--n-best", "3", "--null-odds-output", scene.path("o.json")});
    scene.run({"predict", "--model", best, "--input", dev, "--output", scene.path("b.json"), "--null-odds-output",
               scene.path("q.json")});
    CHECK(read_file(scene.path("a.json")) == read_file(scene.path("b.json")));
    CHECK(read_file(scene.path("o.json")) == read_file(scene.path("q.json")));
    CHECK(read_json_file(scene.path("a.json")).size() == 8);
    scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("t.json"),
               "--null-score-diff-threshold", "1e9"});
    const std::string with_odds = scene.run({"eval", "--task", "squad", "--predictions", scene.path("t.json"), "--gold",
                                             dev, "--null-odds", scene.path("o.json")});
    CHECK(value_of(with_odds, "best_exact") == value_of(by_model, "best_exact"));
    CHECK(value_of(with_odds, "best_f1_thresh") == Approx(value_of(by_model, "best_f1_thresh")).epsilon(1e-5));
    const std::string shown = scene.run({"predict", "--model", best, "--input", dev, "--show", "1"});
    CHECK_THAT(shown, Catch::Contains("squad_dev_0: Who ") && Catch::Contains("  answer: ") && Catch::Contains("%"));
  }
}

TEST_CASE("null odds are of questions that may have no answer", "[squad][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("squad");
  scene.run({"sample", "--task", "squad", "--records", "8", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  scene.prepare("dev", scene.path("sample/dev.json"), vocab, "dev.h5", {"--is-training", "false"});
  scene.train(vocab, dense_model("1"));
  const test::Result refused = scene.try_run({"predict", "--model", scene.path("run/best"), "--data",
                                              scene.path("dev.h5"), "--null-odds-output", scene.path("o.json")});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("--null-odds-output: this task's answers have no null odds"));
  const test::Result odds = scene.try_run({"eval", "--task", "nq", "--predictions", scene.path("sample/dev.json"),
                                           "--gold", scene.path("sample/dev.json"), "--null-odds", vocab});
  CHECK(odds.code == 2);
  CHECK_THAT(odds.err, Catch::Contains("--null-odds: task nq has no null odds"));
}

TEST_CASE("the ready tiny configurations find the answers of held-out texts", "[squad][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("squad");
  scene.run({"sample", "--task", "squad", "--records", "16000", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  scene.prepare("dev", scene.path("sample/dev.json"), vocab, "dev.h5", {"--is-training", "false"});
  for (const char* name : {"squad_tiny.json", "squad_dense_tiny.json"}) {
    CAPTURE(name);
    std::filesystem::remove_all(scene.path("run"));
    scene.train(vocab, {"--config", (test::source_folder() / "tasks/configs" / name).string()});
    CHECK(value_of(scene.run({"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5")}), "f1") >= 95);
  }
}
