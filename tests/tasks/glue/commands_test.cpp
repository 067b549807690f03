// GLUE through the program: sample, prepare, train, eval, predict, official score; on a dense encoder and an ETC.
#include "tests/tasks/command_walk.h"

using namespace etc;
using test::joined;
using test::value_of;
using test::Words;

namespace {

const Words kSet = {"--data-set", "sst-2"};

}  // namespace

TEST_CASE("generated GLUE rows go through every command, with and without global tokens", "[glue][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("glue", {".tsv", {"--records", "40"}, kSet});
  for (const Words& model : {test::small_dense_model(), test::small_model("10")}) {
    scene.train(joined(model, kSet));
    const auto [by_model, by_file] = scene.scores("glue", "SST-2.tsv");
    CHECK(value_of(by_model, "accuracy") == value_of(by_file, "accuracy"));
    const std::string written = read_file(scene.path("SST-2.tsv"));
    CHECK_THAT(scene.same_predictions("SST-2.tsv"), Catch::Contains("%") && Catch::Contains("<- gold"));
    CHECK(read_file(scene.path("SST-2.tsv")) == written);
  }
  // Files of several data sets come together in one submission.
  const std::string zip = scene.path("submission.zip");
  for (int twice = 0; twice < 2; ++twice) {
    scene.with_best("predict", {"--output", scene.path("SST-2.tsv"), "--submission", zip});
  }
  std::filesystem::create_directories(scene.path("SST-2"));
  std::filesystem::copy(scene.raw("dev"), scene.path("SST-2/dev.tsv"));
  const std::string by_zip =
      scene.run({"eval", "--task", "glue", "--predictions", zip, "--gold", scene.path("SST-2/dev.tsv")});
  CHECK(value_of(by_zip, "SST-2.accuracy") == scene.evaluated("accuracy"));
  const test::Result no_file = scene.try_run(
      {"predict", "--model", scene.best(), "--data", scene.path("dev.h5"), "--output", "-", "--submission", zip});
  CHECK(no_file.code == 2);
  CHECK_THAT(no_file.err, Catch::Contains("--submission needs --output FILE"));
  // A new run takes the pooler over, and another data set's rows are refused.
  const test::Result other =
      scene.try_run({"train", "--task", "glue", "--data", scene.path("train.h5"), "--output", scene.path("mnli"),
                     "--init-from", scene.best(), "--data-set", "mnli", "--steps", "1"});
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("the rows are of data set sst-2, the model's task.data_set is mnli"));
}

TEST_CASE("the ready tiny configuration reads the last clause of held-out sentences", "[glue][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("glue", {".tsv", {"--records", "16000"}, kSet});
  scene.train({"--config", (test::source_folder() / "tasks/configs/glue_tiny.json").string()});
  CHECK(scene.evaluated("accuracy") >= 0.95);  // words alone give three quarters
}
