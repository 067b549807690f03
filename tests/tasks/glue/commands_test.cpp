// GLUE through the program: sample, prepare, train, eval, predict, official score; on a dense encoder and an ETC.
#include "tests/support/folders.h"
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
  // Files of several data sets are collected in one submission archive.
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
  // A new run that starts from this model for another data set refuses these rows.
  const test::Result other =
      scene.try_run({"train", "--task", "glue", "--data", scene.path("train.h5"), "--output", scene.path("mnli"),
                     "--init-from", scene.best(), "--data-set", "mnli", "--steps", "1"});
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("the rows are of data set sst-2, the model's task.data_set is mnli"));
}

TEST_CASE("rows that are left out are told of once, with the first one's file, line and reason", "[glue][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::CommandScene scene("glue");
  test::write_file(scene.path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  const auto prepare = [&](const std::string& set, const Words& inputs) {
    Words words = {"prepare", "--task", "glue", "--data-set", set, "--split", "train"};
    words = joined(words, {"--vocab", scene.path("vocab.txt"), "--output", scene.path("out.h5"), "--input"});
    for (const std::string& input : inputs) words.push_back(scene.path(input));
    return scene.try_run(words);
  };
  const std::string header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", row = "1\t2\t3\ta\tb\t0\n";
  test::write_file(scene.path("one.tsv"), header + row);
  test::write_file(scene.path("two.tsv"), header + row + "4\t5\t6\ta\n\n" + row);
  const test::Result dropped = prepare("qqp", {"one.tsv", "two.tsv"});
  CHECK(dropped.code == 0);
  CHECK_THAT(dropped.err,
             Catch::Contains("warning: prepare: 2 of 5 records dropped; the first: two.tsv, line 3: row: row_short: "
                             "expected at least 6 columns, got 4: \"4\t5\t6\ta\" (all of them: " +
                             scene.path("out.h5.rejects.jsonl") + ")"));
  CHECK(dropped.err.find("row_short") == dropped.err.rfind("row_short"));

  test::write_file(scene.path("rte.tsv"),
                   "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\tyes\n2\ta\n");
  const test::Result rejected = prepare("rte", {"rte.tsv"});
  CHECK(rejected.code == 1);
  CHECK_THAT(rejected.err, Catch::Contains("prepare: 2 of 3 records rejected; the first: rte.tsv, line 3: label: "
                                           "label_unknown: expected one of entailment, not_entailment, got \"yes\""));

  test::write_file(scene.path("empty.tsv"), "");
  const test::Result empty = prepare("rte", {"empty.tsv"});
  CHECK(empty.code == 2);
  CHECK_THAT(empty.err, Catch::Contains("empty.tsv: byte 0, line 1, column 1: expected a header with the columns "
                                        "sentence1, sentence2, label") &&
                            Catch::Contains("got nothing: the file is empty"));
}

TEST_CASE("the ready tiny configuration reads the last clause of held-out sentences", "[glue][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("glue", {".tsv", {"--records", "16000"}, kSet});
  scene.train({"--config", (test::source_folder() / "tasks/configs/glue_tiny.json").string()});
  CHECK(scene.evaluated("accuracy") >= 0.95);  // single words alone give three quarters
}
