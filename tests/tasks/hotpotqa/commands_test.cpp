// HotpotQA through the program: sample, prepare, train, eval, predict, official score; generated and real records.
#include <filesystem>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;

namespace {

using Words = std::vector<std::string>;

// A folder and the program run in it; every command must succeed.
class Scene {
 public:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  test::Result try_run(const Words& arguments, const std::string& input = "") const {
    return test::run_program(arguments, folder_.path(), input);
  }
  std::string run(const Words& arguments, const std::string& input = "") const {
    const test::Result result = try_run(arguments, input);
    INFO(arguments[0] << ": " << result.err);
    REQUIRE(result.code == 0);
    return result.out;
  }
  void prepare(const std::string& split, const std::string& input, const std::string& vocab, const std::string& output,
               const Words& more = {}) const {
    Words words = {"prepare", "--task",  "hotpotqa", "--split",  split,       "--input",
                   input,     "--vocab", vocab,      "--output", path(output)};
    words.insert(words.end(), more.begin(), more.end());
    run(words);
  }

 private:
  test::TemporaryFolder folder_;
};

// The number behind a name in "name value" lines.
double value_of(const std::string& lines, const std::string& name) {
  std::istringstream stream(lines);
  std::string key;
  double value = 0;
  while (stream >> key >> value) {
    if (key == name) return value;
  }
  FAIL("no " << name << " in " << lines);
  return 0;
}

// A model that trains in seconds, for records of any vocabulary.
const Words kSmallModel = {"--vocab-size",
                           "30522",
                           "--hidden-size",
                           "32",
                           "--num-hidden-layers",
                           "2",
                           "--num-attention-heads",
                           "2",
                           "--intermediate-size",
                           "64",
                           "--local-radius",
                           "16",
                           "--batch-size",
                           "4",
                           "--relative-pos-max-distance",
                           "8",
                           "--relative-vocab-size",
                           "20",
                           "--steps",
                           "20"};

// Twenty steps on train.h5, then the scores of dev.h5 by the model and by its prediction file: they must agree.
void train_and_score(const Scene& scene, const std::string& vocab, const std::string& gold, const Words& model) {
  Words train = {
      "train",   "--task", "hotpotqa", "--data",         scene.path("train.h5"), "--eval-data", scene.path("dev.h5"),
      "--vocab", vocab,    "--output", scene.path("run")};
  train.insert(train.end(), model.begin(), model.end());
  scene.run(train);
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
  const Scene scene;
  scene.run({"sample", "--task", "hotpotqa", "--records", "40", "--yes-no", "3", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt"), dev = scene.path("sample/dev.json");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  scene.prepare("dev", dev, vocab, "dev.h5", {"--is-training", "false"});
  for (const char* encoding : {"span", "bio"}) {
    Words model = kSmallModel;
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
  const Scene scene;
  scene.run({"sample", "--task", "hotpotqa", "--records", "8", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt");
  scene.prepare("train", scene.path("sample/train.json"), vocab, "train.h5");
  Words train = {"train", "--task", "hotpotqa", "--data", scene.path("train.h5"), "--output", scene.path("run")};
  train.insert(train.end(), kSmallModel.begin(), kSmallModel.end());
  const test::Result without = scene.try_run(train);
  CHECK(without.code == 2);
  CHECK_THAT(without.err, Catch::Contains("expected --vocab FILE"));
  write_file_atomically(scene.path("other.txt"), read_file(vocab) + "more\n");
  train.insert(train.end(), {"--vocab", scene.path("other.txt")});
  const test::Result other = scene.try_run(train);
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("another vocabulary than that of the data"));
  CHECK(!std::filesystem::exists(scene.path("run")));
}

TEST_CASE("options of the sample generator that belong to another task are refused", "[hotpotqa][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const test::Result result = scene.try_run({"sample", "--task", "hotpotqa", "--candidates", "4", "--output", "x"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Catch::Contains("--candidates is no option of task hotpotqa"));
  CHECK(scene.try_run({"sample", "--task", "hotpot", "--output", "x"}).code == 2);
}

TEST_CASE("real HotpotQA records go through every command", "[hotpotqa][commands][slow]") {
  const auto data = test::real_data_folder();
  if (!test::program() || !data) return test::skip("no real records");
  const Scene scene;
  const std::string vocab = (*data / "vocab" / "bert_uncased_vocab.txt").string();
  const std::string dev = (*data / "hotpotqa" / "hotpot_dev_distractor_first53.json").string();
  scene.prepare("train", (*data / "hotpotqa" / "hotpot_train_sample100.json").string(), vocab, "train.h5",
                {"--long-seq-len", "1024", "--global-seq-len", "128"});
  scene.prepare("dev", dev, vocab, "dev.h5", {"--is-training", "false"});
  train_and_score(scene, vocab, dev, kSmallModel);
}
