// Options that would have no effect beside others, or with this model, are refused by name before any work.
#include "tests/support/folders.h"
#include "tests/tasks/command_scene.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using namespace etc::test;

TEST_CASE("options that say nothing beside others are refused by name", "[cli]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Place place;
  const std::string data = place.folder / "train.h5", file = place.folder / "file";
  const auto refused = [&](const Words& words, const std::string& part) {
    const Result result = place.run(words);
    CAPTURE(result.err, part);
    CHECK(result.code == 2);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(file));
  };
  etc::test::write_file(place.folder / "c.json", R"({"model": {"hidden_size": 16}})");
  refused({"benchmark", "--config", place.folder / "c.json", "--preset", "small"}, "--preset and --config both say");
  refused({"benchmark", "--overwrite"}, "--overwrite needs --output");
  refused({"benchmark", "--forecast", "--profile"}, "--profile and --trace go without --forecast");
  refused({"benchmark", "--residual", "off", "--scores", "fp16"}, "--scores is of residual scores");
  const Words preparing = {"prepare", "wikihop", "--split", "dev", "--input", "in.json", "--vocab", "vocab.txt"};
  refused(joined(preparing, {"--forecast", "--output", file}), "--forecast writes nothing: leave --output out");
  refused(joined(preparing, {"--forecast", "--report", file}), "--forecast writes nothing: leave --report out");
  refused(joined(preparing, {"--output", file, "--strict", "--max-rejects", "3"}),
          "--max-rejects goes without --strict");
  refused(
      place.training({"--steps", "3", "--grid", "epochs=1,2"}),
      "--epochs: with steps=3 the epochs say nothing: expected --steps N, or --steps 0 beside them (setting epochs=1");
  place.train();
  const std::string model = place.folder / "run/best";
  refused({"predict", "--model", model, "--input", "in.json", "--allow-incomplete", "--output", file},
          "--allow-incomplete goes with --data");
  const Words analysing = {"analyze", "--model", model, "--data", data, "--output", file};
  refused(joined(analysing, {"--part", "0"}), "--part needs --document");
  refused(joined(analysing, {"--document", "0", "--part", "0"}), "--part needs --input");
  for (const std::string extension : {".npy", ".jsonl", ".json"}) {
    refused({"encode", "--model", model, "--data", data, "--output", file + extension},
            extension + " goes with --text: expected *.h5");
    CHECK(!fs::exists(file + extension));
  }
}

TEST_CASE("options of other kinds of encoders are named in --help and refused", "[cli]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Place place;
  const std::string help = place.run({"train", "--help"}).out;
  const auto of = [&](const std::string& option) {
    const std::size_t begin = help.find("  " + option + " ");
    REQUIRE(begin != std::string::npos);
    return help.substr(begin, help.find("\n  --", begin) - begin);
  };
  for (const char* option : {"--norm", "--layer-norm-epsilon"})
    CHECK_THAT(of(option), Catch::Contains("; dense, seq2seq only"));
  CHECK_THAT(of("--local-radius"), Catch::Contains("; etc, dense only"));
  CHECK_THAT(of("--causal"), Catch::Contains("; dense only"));
  CHECK_THAT(of("--hidden-size"), !Catch::Contains("only"));
  for (const Words& given : {Words{"--norm", "pre_ln"}, Words{"--layer-norm-epsilon", "1e-6"}}) {
    const Result result = place.run(joined(place.training({"--steps", "1"}), given));
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Catch::Contains("is a key of models of kind dense or seq2seq, and this one is of kind etc"));
  }
}

TEST_CASE("keys of answers that a model does not give are refused by name", "[cli]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const auto refused = [](const std::string& task, const std::string& extension, const Words& key,
                          const std::string& message) {
    const CommandScene scene(task);
    scene.run({"sample", task, "--records", "20", "--output", scene.path("sample")});
    const std::string vocab = scene.path("sample/vocab.txt");
    scene.prepare("train", scene.path("sample/train" + extension), vocab, "train.h5");
    scene.prepare("dev", scene.path("sample/dev" + extension), vocab, "dev.h5");
    scene.train(vocab, tiny_training("1"));
    for (const std::string command : {"predict", "eval"}) {
      const Words words = {command,    "--model",        scene.path("run"), "--data", scene.path("dev.h5"),
                           "--output", scene.path("out")};
      CHECK(scene.try_run(words).code == 0);
      const Result result = scene.try_run(joined(words, key));
      CHECK(result.code == 2);
      CHECK_THAT(result.err, Catch::Contains(message));
    }
  };
  refused("squad", ".json", {"--null-score-diff-threshold", "1"},
          "--null-score-diff-threshold: this model always answers");
  refused("glue", ".tsv", {"--mismatched"}, "--mismatched: this model's data set has no mismatched rows");
}

}  // namespace
