// Models and options of a task that the command does not serve are refused by name before anything is read.
#include "tests/tasks/inference/small_scene.h"

using namespace etc;
using Catch::Contains;
using test::CommandScene;
using test::SmallScene;
using test::Words;

namespace {

// Trains a very small model for one step, into a run folder with the task's name.
void train(const CommandScene& scene, const std::string& task, const Words& more) {
  Words words = {"train", "--task", task, "--output", scene.path(task), "--hidden-size", "16", "--num-hidden-layers",
                 "1"};
  for (const char* word :
       {"--num-attention-heads", "2", "--intermediate-size", "16", "--steps", "1", "--batch-size", "4"})
    words.emplace_back(word);
  words.insert(words.end(), more.begin(), more.end());
  scene.run(words);
}

// Trains a language model into run folder "lm".
void train_lm(const CommandScene& scene) {
  const std::string vocab = scene.path("s_lm/vocab.chars");
  scene.run({"sample", "--task", "lm", "--records", "20", "--output", scene.path("s_lm")});
  scene.run({"prepare", "--task", "lm", "--split", "train", "--input", scene.path("s_lm/train.txt"), "--vocab", vocab,
             "--segment-length", "8", "--text-ends", "lines", "--output", scene.path("lm.h5")});
  train(scene, "lm",
        {"--data", scene.path("lm.h5"), "--vocab", vocab, "--model-kind", "dense", "--causal",
         "--max-absolute-position-embeddings", "0", "--relative-positions", "transformer_xl"});
}

// Trains an encoder-decoder into run folder "translation".
void train_translation(const CommandScene& scene) {
  const std::string vocab = scene.path("s_tr/vocab.words");
  scene.run({"sample", "--task", "translation", "--records", "20", "--output", scene.path("s_tr")});
  scene.run({"prepare", "--task", "translation", "--split", "train", "--subword", "word", "--vocab", vocab, "--source",
             scene.path("s_tr/train.source"), "--target", scene.path("s_tr/train.target"), "--output",
             scene.path("tr.h5")});
  train(scene, "translation",
        {"--data", scene.path("tr.h5"), "--vocab", vocab, "--model-kind", "seq2seq", "--num-decoder-layers", "1"});
}

}  // namespace

TEST_CASE("a model of another task is refused by its name, before its vocabulary is looked at", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  train_lm(scene);
  train_translation(scene);
  const auto refused = [&](const Words& words, const std::string& message) {
    CAPTURE(words);
    const test::Result result = scene.try_run(words, "{\"text\": \"a\"}\n");
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, Contains(message));
  };
  for (const std::string task : {"lm", "translation"}) {
    const std::string model = scene.path(task);
    refused({"ask", "--model", model, "--document", "-", "--question", "Who?"},
            "expected a model of hotpotqa, nq or squad, got one of " + task + "\n");
    refused({"keyphrases", "--model", model, "-"}, "expected a model of openkp, got one of " + task + "\n");
    refused({"encode", "--model", model, "--text", "-", "--output", "-"},
            "expected an encoder that reads texts, got a model of " + task);
    refused({"serve", "--model", model, "--port", "0"},
            "etc serve: --model: expected an encoder that reads texts, got a model of " + task);
  }
  refused({"predict", "--model", scene.path("translation"), "--input", scene.records(), "--answers", "-"},
          "task translation has no answers to single records (etc translate reads lines with it)");
  refused({"keyphrases", "--model", scene.path("run"), "-"}, "got one of hotpotqa (etc ask reads documents with it)");
  const Words translate = {"translate", "--input", "-", "--output", "-", "--model"};
  for (const auto& [run, message] :
       {std::pair("run", "expected a model of translation, an encoder-decoder, got one of hotpotqa of kind etc"),
        {"lm", "expected a model of translation, an encoder-decoder, got one of lm of kind dense"}}) {
    Words words = translate;
    words.push_back(scene.path(run));
    refused(words, message);
    words = translate;
    words.insert(words.end(), {scene.path("translation"), scene.path(run)});
    refused(words, message);
  }
}

TEST_CASE("a splitter for records that are not cut, and a question that is not UTF-8, are refused", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  const std::string model = scene.path("run");
  const auto refused = [&](const Words& words, const std::string& message) {
    const test::Result result = scene.try_run(words, "The tower is famous.");
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(message));
  };
  const std::string splitter =
      "splitter: records of task hotpotqa are not cut into sentences: expected none (models of wikihop or pretrain "
      "take one), got "
      "foo";
  refused({"predict", "--model", model, "--input", scene.records(), "--answers", "-", "--splitter", "foo"}, splitter);
  refused({"serve", "--model", model, "--port", "0", "--splitter", "foo"}, splitter);
  refused({"ask", "--model", model, "--document", "-", "--question", "caf\xE9?"},
          "standard input: expected a question in UTF-8, got one whose byte 3 is not");
}
