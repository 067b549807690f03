// HotpotQA through the program: sample, prepare, train, eval, predict, official score; generated and real records.
#include <filesystem>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Scene = test::CommandScene;
using test::value_of;
using test::Words;

namespace {

// Twenty steps on train.h5, then the scores of dev.h5 by the model and by its prediction file: they must agree.
void train_and_score(const Scene& scene, const std::string& vocab, const std::string& gold, const Words& model) {
  scene.train(vocab, model);
  const std::string best = scene.path("run/best");
  const std::string by_model =
      scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("p.json")});
  const std::string by_file =
      scene.run({"eval", "--task", "hotpotqa", "--predictions", scene.path("p.json"), "--gold", gold});
  for (const char* name : {"em", "f1", "prec", "recall", "sp_f1", "sp_em", "joint_em", "joint_f1", "joint_recall"}) {
    INFO(name);
    CHECK(value_of(by_model, name) == value_of(by_file, name));
  }
  CHECK(value_of(by_model, "tuned_joint_f1") >= value_of(by_model, "joint_f1"));
}

}  // namespace

TEST_CASE("generated HotpotQA records go through every command", "[hotpotqa][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("hotpotqa");
  scene.run({"sample", "--task", "hotpotqa", "--records", "40", "--yes-no", "3", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt"), dev = scene.path("sample/dev.json");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  scene.prepare("dev", dev, vocab, "dev.h5", {"--is-training", "false"});
  for (const char* encoding : {"span", "bio"}) {
    Words model = test::small_model();
    model.insert(model.end(), {"--answer-encoding", encoding});
    std::filesystem::remove_all(scene.path("run"));
    train_and_score(scene, vocab, dev, model);
  }

  // The model's folder holds its vocabulary; raw records and prepared ones have the same predictions.
  const std::string best = scene.path("run/best");
  CHECK(read_file(scene.path("run/best/vocab.txt")) == read_file(vocab));
  scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("a.json"),
             "--n-best-output", scene.path("n.jsonl"), "--n-best", "3", "--sf-threshold", "0"});
  scene.run({"predict", "--model", best, "--input", dev, "--output", scene.path("b.json"), "--sf-threshold", "0"});
  CHECK(read_file(scene.path("a.json")) == read_file(scene.path("b.json")));
  CHECK(scene.run({"predict", "--model", best, "--input", "-", "--output", "-", "--sf-threshold", "0"},
                  read_file(dev)) == read_file(scene.path("a.json")));
  const Json predictions = read_json_file(scene.path("a.json"));
  CHECK(predictions.at("answer").size() == 8);
  std::istringstream lines(read_file(scene.path("n.jsonl")));
  std::int64_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json n_best = Json::parse(line);
    CHECK(n_best.at("answers").size() <= 3);
    CHECK(predictions.at("answer").contains(n_best.at("id").get<std::string>()));
  }
  CHECK(count == 8);
  const std::string shown = scene.run({"predict", "--model", best, "--input", dev, "--show", "2"});
  CHECK_THAT(shown, Catch::Contains("hotpot_dev_1: ") && Catch::Contains("  answer: ") && Catch::Contains("%"));
}

TEST_CASE("HotpotQA needs the vocabulary of its data", "[hotpotqa][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("hotpotqa");
  scene.run({"sample", "--task", "hotpotqa", "--records", "8", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  Words train = {"train", "--task", "hotpotqa", "--data", scene.path("train.h5"), "--output", scene.path("run")};
  const Words model = test::small_model();
  train.insert(train.end(), model.begin(), model.end());
  const test::Result without = scene.try_run(train);
  CHECK(without.code == 2);
  CHECK_THAT(without.err, Catch::Contains("expected --vocab FILE"));
  test::write_file(scene.path("other.txt"), read_file(vocab) + "more\n");
  train.insert(train.end(), {"--vocab", scene.path("other.txt")});
  const test::Result other = scene.try_run(train);
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("another vocabulary than that of the data"));
  CHECK(!std::filesystem::exists(scene.path("run")));
}

TEST_CASE("options of the sample generator that belong to another task are refused", "[hotpotqa][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("hotpotqa");
  const test::Result result = scene.try_run({"sample", "--task", "hotpotqa", "--candidates", "4", "--output", "x"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Catch::Contains("--candidates is no option of task hotpotqa"));
  CHECK(scene.try_run({"sample", "--task", "hotpot", "--output", "x"}).code == 2);
}

TEST_CASE("real HotpotQA records go through every command", "[hotpotqa][commands][slow]") {
  const auto data = test::real_data_folder();
  if (!test::program() || !data) return test::skip("no real records");
  const Scene scene("hotpotqa");
  const std::string vocab = (*data / "vocab" / "bert_uncased_vocab.txt").string();
  const std::string dev = (*data / "hotpotqa" / "hotpot_dev_distractor_first53.json").string();
  scene.prepare("train", (*data / "hotpotqa" / "hotpot_train_sample100.json").string(), vocab, "train.h5",
                {"--long-seq-len", "1024", "--global-seq-len", "128"});
  scene.prepare("dev", dev, vocab, "dev.h5", {"--is-training", "false"});
  train_and_score(scene, vocab, dev, test::small_model());
}
