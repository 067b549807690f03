// GLUE through the program: sample, prepare, train, eval, predict, official score; on a dense encoder and an ETC.
#include <filesystem>

#include "etc_core/base/files.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Scene = test::CommandScene;
using test::value_of;
using test::Words;

namespace {

Words dense_model() {
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

TEST_CASE("generated GLUE rows go through every command, with and without global tokens", "[glue][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("glue");
  scene.run({"sample", "--task", "glue", "--records", "40", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt"), dev = scene.path("sample/dev.tsv");
  const Words set = {"--data-set", "sst-2"};
  scene.prepare("train", scene.path("sample/train.tsv"), vocab, "train.h5", set);
  scene.prepare("dev", dev, vocab, "dev.h5", set);
  for (const Words& model : {dense_model(), test::small_model("10")}) {
    std::filesystem::remove_all(scene.path("run"));
    scene.train(vocab, with(model, set));
    const std::string best = scene.path("run/best");
    const std::string by_model =
        scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("SST-2.tsv")});
    const std::string by_file =
        scene.run({"eval", "--task", "glue", "--predictions", scene.path("SST-2.tsv"), "--gold", dev});
    CHECK(value_of(by_model, "accuracy") == value_of(by_file, "accuracy"));
    scene.run({"predict", "--model", best, "--input", dev, "--output", scene.path("raw.tsv")});
    CHECK(read_file(scene.path("raw.tsv")) == read_file(scene.path("SST-2.tsv")));
    const std::string shown = scene.run({"predict", "--model", best, "--input", dev, "--show", "1"});
    CHECK_THAT(shown, Catch::Contains("%") && Catch::Contains("<- gold"));
  }
  // Files of several data sets come together in one submission.
  for (int twice = 0; twice < 2; ++twice) {
    scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output",
               scene.path("SST-2.tsv"), "--submission", scene.path("submission.zip")});
  }
  std::filesystem::create_directories(scene.path("SST-2"));
  std::filesystem::copy(dev, scene.path("SST-2/dev.tsv"));
  const std::string by_zip = scene.run(
      {"eval", "--task", "glue", "--predictions", scene.path("submission.zip"), "--gold", scene.path("SST-2/dev.tsv")});
  CHECK(value_of(by_zip, "SST-2.accuracy") ==
        value_of(scene.run({"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5")}), "accuracy"));
  const test::Result no_file =
      scene.try_run({"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output", "-",
                     "--submission", scene.path("submission.zip")});
  CHECK(no_file.code == 2);
  CHECK_THAT(no_file.err, Catch::Contains("--submission needs --output FILE"));
  // A new run takes the pooler over, and another data set's rows are refused.
  const test::Result other =
      scene.try_run({"train", "--task", "glue", "--data", scene.path("train.h5"), "--output", scene.path("mnli"),
                     "--init-from", scene.path("run/best"), "--data-set", "mnli", "--steps", "1"});
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("the rows are of data set sst-2, the model's task.data_set is mnli"));
}

TEST_CASE("the ready tiny configuration reads the last clause of held-out sentences", "[glue][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("glue");
  scene.run({"sample", "--task", "glue", "--records", "16000", "--output", scene.path("sample")});
  const std::string vocab = scene.path("sample/vocab.txt");
  scene.prepare("train", scene.path("sample/train.tsv"), vocab, "train.h5", {"--data-set", "sst-2"});
  scene.prepare("dev", scene.path("sample/dev.tsv"), vocab, "dev.h5", {"--data-set", "sst-2"});
  scene.train(vocab, {"--config", (test::source_folder() / "tasks/configs/glue_tiny.json").string()});
  CHECK(value_of(scene.run({"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5")}), "accuracy") >=
        0.95);  // words alone give three quarters
}
