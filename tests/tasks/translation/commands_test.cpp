// Translation through the program, as far as it goes without a model: sample, learn a vocabulary, prepare, score.
#include "etc_core/base/files.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using Scene = test::CommandScene;
using test::value_of;
using test::Words;

TEST_CASE("generated pairs are learned from, prepared and scored by the program", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  scene.run({"sample", "--task", "translation", "--records", "50", "--output", scene.path("s")});
  const std::string source = scene.path("s/train.source"), target = scene.path("s/train.target");
  scene.run({"prepare", "--task", "translation", "--learn-vocab", "40", "--source", source, "--target", target,
             "--output", scene.path("v.bpe")});
  const Words prepare = {"prepare",           "--task",   "translation",         "--split", "train", "--vocab",
                         scene.path("v.bpe"), "--output", scene.path("train.h5")};
  Words good = prepare;
  good.insert(good.end(), {"--source", source, "--target", target});
  CHECK_THAT(scene.run(good), Catch::Contains("examples: 50"));
  CHECK_THAT(scene.run({"info", scene.path("train.h5")}), Catch::Contains("translation"));
  test::write_file(scene.path("empty"), "");
  const test::Result nothing = scene.try_run({"prepare", "--task", "translation", "--learn-vocab", "40", "--source",
                                              scene.path("empty"), "--output", scene.path("n.bpe")});
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.err, Catch::Contains("no word in the texts"));
  const std::string words = scene.path("s/vocab.words");
  const test::Result other = scene.try_run({"prepare", "--task", "hotpotqa", "--split", "train", "--input", source,
                                            "--vocab", words, "--output", scene.path("h.h5")});
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Catch::Contains("got one of kind word, which task translation reads"));
  const auto refused = [&](Words command, const Words& more, const char* message) {
    command.insert(command.end(), more.begin(), more.end());
    const test::Result result = scene.try_run(command);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Catch::Contains(message));
  };
  refused(prepare, {"--input", source}, "--input is no option of task translation: expected --source and --target");
  refused(prepare, {"--source", source}, "--target is required for split train");
  refused(prepare, {"--source", source, target, "--target", target}, "expected a --target file for each --source file");
  refused({"prepare", "--task", "glue", "--split", "train", "--vocab", "v", "--output", "o"}, {"--source", source},
          "--source and --target are no options of task glue: expected --input");

  const Words eval = {"eval",
                      "--task",
                      "translation",
                      "--predictions",
                      scene.path("s/dev.source"),
                      "--gold",
                      scene.path("s/dev.target")};
  const std::string poor = scene.run(eval);
  CHECK(value_of(poor, "bleu") < 20);
  CHECK_THAT(poor,
             Catch::Contains("brevity_penalty ") && Catch::Contains("signature nrefs:1|case:mixed|eff:no|tok:13a"));
  Words perfect = eval;
  perfect[4] = perfect[6];
  perfect.insert(perfect.end(), {"--bleu-tokenize", "char", "--baseline", scene.path("s/dev.source"), "--output",
                                 scene.path("scores.json")});
  const std::string scores = scene.run(perfect);
  CHECK(value_of(scores, "bleu") == 100);
  CHECK_THAT(scores, Catch::Contains("tok:char") && Catch::Contains("p_value"));
  CHECK_THAT(read_file(scene.path("scores.json")), Catch::Contains("\"precisions\""));
  refused({"eval", "--task", "glue", "--predictions", source, "--gold", target}, {"--bleu-tokenize", "char"},
          "--bleu-tokenize is no option of a prediction file of task glue");
  refused({"eval", "--task", "glue", "--predictions", source, "--gold", target}, {"--baseline", source},
          "--baseline: task glue compares no prediction files");
}
