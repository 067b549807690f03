// Language models through the program: sample, prepare, train, stop, resume, evaluate, predict, refused input.
#include <algorithm>
#include <csignal>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/tasks/command_scene.h"
#include "tests/tasks/train/small_run.h"

namespace etc::test {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

// Generated texts of 15 to 21 characters in segments of 8: train.h5 and dev.h5.
struct LmCommands : CommandScene {
  LmCommands() : CommandScene("lm") {
    run({"sample", "--task", "lm", "--records", "60", "--distance", "12", "--output", path("s")});
    for (const std::string split : {"train", "dev"}) {
      prepare(split, path("s/" + split + ".txt"), path("s/vocab.chars"), split + ".h5",
              {"--segment-length", "8", "--text-ends", "lines"});
    }
  }

  Words training(const std::string& output, const Words& more) const {
    const Words words = {"train",
                         "--task",
                         "lm",
                         "--data",
                         path("train.h5"),
                         "--eval-data",
                         path("dev.h5"),
                         "--vocab",
                         path("s/vocab.chars"),
                         "--output",
                         path(output),
                         "--threads",
                         "1"};
    const Words model = {"--model-kind",
                         "dense",
                         "--causal",
                         "--memory-length",
                         "24",
                         "--max-absolute-position-embeddings",
                         "0",
                         "--relative-positions",
                         "transformer_xl",
                         "--vocab-size",
                         "32",
                         "--segment-vocab-size",
                         "2",
                         "--batch-size",
                         "7",
                         "--learning-rate",
                         "0.01",
                         "--log-every",
                         "1"};
    return joined(joined(joined(words, model), two_layers("16", "32")), more);
  }
};

TEST_CASE("a language model with memory learns, is evaluated, and says what it thinks of every piece",
          "[lm][commands]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const LmCommands scene;
  scene.run(scene.training("run", {"--steps", "50", "--eval-every", "25", "--hidden-dropout-prob", "0",
                                   "--attention-probs-dropout-prob", "0"}));
  std::vector<double> losses;
  std::istringstream lines(read_file(scene.path("run/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json.contains("loss")) losses.push_back(json["loss"]);
  }
  REQUIRE(losses.size() == 50);
  CHECK(losses.back() < 0.85 * losses.front());
  const Words data = {"--model", scene.path("run/best"), "--data", scene.path("dev.h5")};
  const std::string scores = scene.run(joined({"eval"}, data));
  CHECK(value_of(scores, "perplexity") == Approx(std::exp2(-value_of(scores, "log2_likelihood"))).epsilon(1e-4));
  scene.run(joined(joined({"predict"}, data), {"--output", scene.path("p.jsonl")}));
  double bits = 0;
  std::string text;
  std::istringstream predictions(read_file(scene.path("p.jsonl")));
  for (std::string line; std::getline(predictions, line);) {
    const Json segment = Json::parse(line);
    REQUIRE(segment.at("pieces").size() == segment.at("best").size());
    for (const Json& p : segment.at("log2_p")) bits -= p.get<double>();
    for (const Json& piece : segment.at("pieces")) text += piece == "</s>" ? "\n" : piece.get<std::string>();
  }
  const std::string raw = read_file(scene.path("s/dev.txt"));
  CHECK(text == raw);
  const auto ends = static_cast<double>(std::count(raw.begin(), raw.end(), '\n'));
  CHECK(value_of(scores, "bits_per_character") ==
        Approx(bits / (static_cast<double>(raw.size()) - ends)).epsilon(1e-4));
  CHECK(fs::exists(scene.path("run/best/vocab.chars")));
}

TEST_CASE("pieces without a spelling in the vocabulary are predicted by their number", "[lm][commands]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const LmCommands scene;
  Words training = scene.training("run", {"--steps", "1"});
  const auto set = [&](const std::string& option, const std::string& value) {
    *(std::find(training.begin(), training.end(), option) + 1) = value;
  };
  set("--vocab-size", "9000");
  set("--learning-rate", "0");  // random weights: any row may be the most probable one
  scene.run(training);
  const std::string predictions = scene.path("p.jsonl");
  scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output", predictions});
  CHECK_THAT(read_file(predictions), Contains(R"("[)"));  // "[4711]"
}

TEST_CASE("a run with memory that is stopped goes on with the same bits", "[lm][commands]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const LmCommands scene;
  const Words options = {
      "--steps", "12", "--save-every", "1", "--eval-every", "9", "--use-residual-attention", "--micro-batch-tokens",
      "24"};
  scene.run(scene.training("reference", options));
  {
    Child child(joined({program().value()}, scene.training("run", options)), scene.path("log"));
    child.run_until([&] { return fs::exists(scene.path("run/last")); });
    child.send(SIGKILL);
    child.wait();
  }
  const auto carried = [&](const std::string& run) {
    std::int64_t tensors = 0;
    const TensorFileReader state(scene.path(run + "/last/state.safetensors"));
    for (const auto& [name, entry] : state.entries()) {
      tensors += name.starts_with("memory/") ? 1 : 0;
    }
    return tensors;
  };
  CHECK(carried("run") > 0);
  scene.run({"train", "--resume", scene.path("run")});
  CHECK(bits_of(scene.path("run")) == bits_of(scene.path("reference")));
  CHECK(carried("reference") == 14);  // seven streams, two layers
}

TEST_CASE("commands that would read segments without their memory refuse", "[lm][commands]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const LmCommands scene;
  scene.run(scene.training("run", {"--steps", "1"}));
  const auto refuses = [&](const Words& words, const std::string& message) {
    const Result result = scene.try_run(words);
    CAPTURE(result.err);
    CHECK(result.code != 0);
    CHECK_THAT(result.err, Contains(message));
  };
  const std::string best = scene.path("run/best"), dev = scene.path("dev.h5");
  refuses({"encode", "--model", best, "--data", dev, "--output", scene.path("e.h5")},
          "expected a model with memory_length 0");
  refuses({"predict", "--model", best, "--data", dev, "--show", "1"}, "says of every piece what it thinks in --output");
  refuses({"eval", "--task", "lm", "--predictions", dev, "--gold", dev}, "task lm has no prediction file to score");
  refuses({"prepare", "--task", "lm", "--learn-vocab", "9", "--input", scene.path("s/dev.txt"), "--output",
           scene.path("v.txt")},
          "expected a name *.chars");
  refuses({"train", "--task", "lm", "--data", scene.path("train.h5"), "--vocab", scene.path("s/vocab.chars"),
           "--output", scene.path("x")},
          "task lm trains a causal dense encoder: expected dense, got etc");
  test::write_file(scene.path("empty"), "");
  const std::string learned = scene.path("learned.chars");
  const Result nothing = scene.try_run(
      {"prepare", "--task", "lm", "--learn-vocab", "5", "--input", scene.path("empty"), "--output", learned});
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.err, Contains("no character in the texts"));
  scene.run({"prepare", "--task", "lm", "--learn-vocab", "5", "--input", scene.path("s/dev.txt"), "--output", learned});
  const std::string text = read_file(learned);
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);
}

}  // namespace
}  // namespace etc::test
