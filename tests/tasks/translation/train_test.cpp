// Translation trained by the program, from generated pairs to translated lines.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <numbers>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/support/folders.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/command_scene.h"

namespace etc {
namespace {

using Scene = test::CommandScene;
using Catch::Contains;
using test::Words;

// Generated pairs prepared with their vocabulary of words: train.h5 and dev.h5.
void prepare(const Scene& scene) {
  scene.run({"sample", "--task", "translation", "--records", "60", "--output", scene.path("s")});
  for (const std::string split : {"train", "dev"}) {
    scene.run({"prepare", "--task", "translation", "--split", split, "--subword", "word", "--vocab",
               scene.path("s/vocab.words"), "--source", scene.path("s/" + split + ".source"), "--target",
               scene.path("s/" + split + ".target"), "--output", scene.path(split + ".h5")});
  }
}

Words training(const Scene& scene, const std::string& run, const Words& more) {
  Words words = {"train",
                 "--task",
                 "translation",
                 "--model-kind",
                 "seq2seq",
                 "--hidden-size",
                 "16",
                 "--num-hidden-layers",
                 "2",
                 "--intermediate-size",
                 "32",
                 "--num-decoder-layers",
                 "2",
                 "--num-attention-heads",
                 "2",
                 "--data",
                 scene.path("train.h5"),
                 "--eval-data",
                 scene.path("dev.h5"),
                 "--vocab",
                 scene.path("s/vocab.words"),
                 "--batch-size",
                 "16",
                 "--weight-decay",
                 "0",
                 "--threads",
                 "1",
                 "--log-every",
                 "1",
                 "--output",
                 scene.path(run)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The values over a run's lines of a metric, "train/loss" or "eval/bleu".
std::vector<double> values(const Scene& scene, const std::string& run, const std::string& metric) {
  const std::size_t end_of_kind = metric.find('/');
  const std::string kind = metric.substr(0, end_of_kind), name = metric.substr(end_of_kind + 1);
  std::vector<double> found;
  std::istringstream lines(read_file(scene.path(run + "/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json.at("kind") == kind && json.contains(name)) found.push_back(json[name]);
  }
  return found;
}

// The mean log2 p per piece of translations whose pieces are words, from the scores their search gave with length penalty 0.
double searched_log2_p(const Scene& scene, const std::string& scores, const std::string& translations) {
  double nats = 0;
  std::istringstream lines(read_file(scene.path(scores))), words(read_file(scene.path(translations)));
  std::int64_t pieces = 0;  // words, and </s> of each line
  for (std::string line; std::getline(lines, line); ++pieces) {
    nats += Json::parse(line).at("answers").at(0).at("score").get<double>();
  }
  for (std::string word; words >> word;) ++pieces;
  return nats / std::numbers::ln2 / static_cast<double>(pieces);
}

// An int8 evaluation of the translations made in int8 gives the mean log2 p per piece that their search gave.
void check_rounded(const Scene& scene) {
  const std::string source = scene.path("s/dev.source"), target = scene.path("int8.target");
  scene.run({"translate", "--model", scene.path("run"), "--input", source, "--output", target, "--n-best-output",
             scene.path("int8.jsonl"), "--compute", "int8", "--beam", "1", "--length-penalty", "0"});
  scene.run({"prepare", "--task", "translation", "--split", "dev", "--subword", "word", "--vocab",
             scene.path("s/vocab.words"), "--source", source, "--target", target, "--output", scene.path("int8.h5")});
  const auto bits = [&](const std::string& compute) {
    return test::value_of(
        scene.run({"eval", "--model", scene.path("run"), "--data", scene.path("int8.h5"), "--compute", compute}),
        "log2_likelihood");
  };
  const double found = searched_log2_p(scene, "int8.jsonl", "int8.target");
  CHECK(bits("int8") == Approx(found).epsilon(1e-5));
  CHECK(bits("fp32") != Approx(found).epsilon(1e-4));
}

// Removes from a run's folder what older runs, before batches counted in tokens, did not write.
void make_older(const std::string& run) {
  const auto without = [](Json json) {
    for (const char* key : {"tokens_per_batch", "padded_batches"}) REQUIRE(json.at("training").erase(key) == 1);
    return json;
  };
  test::write_file(run + "/config.json", without(Json::parse(read_file(run + "/config.json"))).dump());
  TensorFileWriter older;
  {
    const TensorFileReader state(run + "/last/state.safetensors");
    for (const auto& [name, entry] : state.entries()) older.add(name, state.read_tensor(name, Purpose::moments));
    for (const auto& [key, text] : state.metadata()) {
      older.set_metadata(key, key == "identity" ? without(Json::parse(text)).dump() : text);
    }
  }
  older.write(run + "/last/state.safetensors");
}

TEST_CASE("a run of before batches were counted in tokens goes on as if it had said so", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  const Words more = {"--steps", "30", "--learning-rate", "0.01", "--save-every", "1"};
  scene.run(training(scene, "run", more));
  Words command = training(scene, "older", more);
  command.insert(command.begin(), test::program().value());
  {
    test::Child child(command, scene.path("older.log"));
    child.run_until([&] { return std::filesystem::exists(scene.path("older/last")); });
    child.send(SIGKILL);
    child.wait();
  }
  make_older(scene.path("older"));
  std::filesystem::copy(scene.path("older"), scene.path("again"), std::filesystem::copy_options::recursive);
  const test::Result other = scene.try_run(training(
      scene, "again", {"--steps", "30", "--learning-rate", "0.01", "--save-every", "1", "--tokens-per-batch", "300"}));
  CHECK(other.code == 1);
  CHECK_THAT(other.err, Contains("training.tokens_per_batch: the run was started with 0, now it is 300"));
  scene.run({"train", "--resume", scene.path("older")});
  scene.run(training(scene, "again", more));  // and with the command that started it
  const std::string expected = read_file(scene.path("run/last/model.safetensors"));
  CHECK(read_file(scene.path("older/last/model.safetensors")) == expected);
  CHECK(read_file(scene.path("again/last/model.safetensors")) == expected);
}

// The run's model without the scales of ADMIN, which needs nothing but its folder.
void check_folded(const Scene& scene) {
  const std::string folded = scene.path("folded");
  CHECK_THAT(scene.run({"convert", "--to", "admin-folded", scene.path("run"), "--output", folded}),
             Contains(folded + ": 8 scales folded"));  // of 10: two stacks of two layers keep their first
  CHECK(read_json_file(folded + "/config.json").at("model").at("norm") == "admin_folded");
  const auto evaluated = [&](const std::string& model) {
    return test::value_of(scene.run({"eval", "--model", model, "--data", scene.path("dev.h5")}), "nll");
  };
  CHECK(evaluated(folded) == Approx(evaluated(scene.path("run"))).epsilon(1e-5));
  const std::string source = scene.path("s/dev.source");
  CHECK(scene.run({"translate", "--model", folded, "--input", source, "--output", "-"}) ==
        scene.run({"translate", "--model", scene.path("run"), "--input", source, "--output", "-"}));
  const test::Result again =
      scene.try_run({"convert", "--to", "admin-folded", folded, "--output", scene.path("again")});
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Contains("expected an encoder-decoder of norm admin, got norm admin_folded"));
  CHECK(!std::filesystem::exists(scene.path("again")));
}

TEST_CASE("an encoder-decoder learns generated pairs and translates what it was given", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  scene.run(training(scene, "run",
                     {"--steps", "60", "--eval-every", "20", "--learning-rate", "0.01", "--schedule", "inverse_sqrt",
                      "--warmup-steps", "10", "--norm", "admin", "--use-residual-attention"}));
  const std::vector<double> loss = values(scene, "run", "train/loss"),
                            perplexity = values(scene, "run", "eval/perplexity"),
                            bits = values(scene, "run", "eval/log2_likelihood");
  REQUIRE(loss.size() == 60);
  CHECK(loss.back() < 0.85 * loss.front());
  REQUIRE(perplexity.size() == 3);
  CHECK(perplexity.back() < perplexity.front());
  CHECK(perplexity.back() == Approx(std::exp2(-bits.back())));

  std::string text = read_file(scene.path("s/dev.source"));
  const auto lines = [](const std::string& all) { return std::count(all.begin(), all.end(), '\n'); };
  text += "\n";
  const std::string translated =
      scene.run({"translate", "--model", scene.path("run"), "--input", "-", "--output", "-"}, text);
  CHECK(lines(translated) == lines(text));
  CHECK(translated.size() > 2 * static_cast<std::size_t>(lines(text)));  // not only empty lines
  CHECK_THAT(scene.run({"eval", "--model", scene.path("run"), "--data", scene.path("dev.h5")}), Contains("perplexity"));
  check_rounded(scene);
  check_folded(scene);
  const test::Result predicted =
      scene.try_run({"predict", "--model", scene.path("run"), "--data", scene.path("dev.h5"), "--output", "-"});
  CHECK(predicted.code == 2);
  CHECK_THAT(predicted.err, Contains("`etc translate`"));
  const std::string card = read_file(scene.path("run/best/README.md"));
  CHECK_THAT(card, Contains("etc translate --model .") && !Contains("etc predict"));
}

TEST_CASE("a SentencePiece model of any ids is learned with, and its search gives an evaluation's log2 p",
          "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("sentencepiece");
  // </s> is not piece 2, and there is neither <pad> nor <s>.
  test::write_file(scene.path("v.model"), test::sentencepiece_model({{"\u2581a", -1},
                                                                     {"</s>", 0, test::PieceType::control},
                                                                     {"\u2581b", -1},
                                                                     {"<unk>", 0, test::PieceType::unknown},
                                                                     {"\u2581c", -1}}));
  test::write_file(scene.path("source"), "a b\nb c a\nc\n");
  test::write_file(scene.path("reference"), "b\na a\nc b\n");
  const auto prepare_pairs = [&](const std::string& target, const std::string& output) {
    scene.run({"prepare", "--task", "translation", "--split", "dev", "--subword", "sentencepiece", "--vocab",
               scene.path("v.model"), "--source", scene.path("source"), "--target", scene.path(target), "--output",
               scene.path(output)});
  };
  prepare_pairs("reference", "pairs.h5");
  scene.run({"train",
             "--task",
             "translation",
             "--model-kind",
             "seq2seq",
             "--hidden-size",
             "16",
             "--num-hidden-layers",
             "1",
             "--num-decoder-layers",
             "1",
             "--intermediate-size",
             "16",
             "--num-attention-heads",
             "2",
             "--data",
             scene.path("pairs.h5"),
             "--vocab",
             scene.path("v.model"),
             "--batch-size",
             "3",
             "--steps",
             "2",
             "--threads",
             "1",
             "--output",
             scene.path("run")});
  scene.run({"translate", "--model", scene.path("run"), "--input", scene.path("source"), "--output",
             scene.path("target"), "--n-best-output", scene.path("scores.jsonl"), "--beam", "1", "--length-penalty",
             "0", "--unknown-penalty", "50", "--max-len-b", "5"});
  prepare_pairs("target", "translated.h5");
  const double log2_p = test::value_of(
      scene.run({"eval", "--model", scene.path("run"), "--data", scene.path("translated.h5")}), "log2_likelihood");
  CHECK(log2_p == Approx(searched_log2_p(scene, "scores.jsonl", "target")).epsilon(1e-4));
}

TEST_CASE("a model that could not translate, for its tables are larger than its vocabulary, is not trained",
          "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  for (const Words& sizes :
       {Words{"--vocab-size", "900"}, Words{"--share-embeddings", "false", "--target-vocab-size", "900"}}) {
    const test::Result result = scene.try_run(training(scene, "run", test::joined({"--steps", "1"}, sizes)));
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains("token tables: expected ") && Contains("got 900 (leave"));
    CHECK(!std::filesystem::exists(scene.path("run")));
  }
}

TEST_CASE("an evaluation reports the smoothed loss and the nll in bits per piece", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  // A step that changes nothing, on all pairs and without dropout: its loss in nats is that of an evaluation of the pairs.
  scene.run(training(scene, "run",
                     {"--steps", "1", "--learning-rate", "0", "--tokens-per-batch", "100000", "--hidden-dropout-prob",
                      "0", "--attention-probs-dropout-prob", "0", "--inner-dropout-prob", "0"}));
  const std::string found =
      scene.run({"eval", "--model", scene.path("run"), "--data", scene.path("train.h5"), "--json"});
  const Json metrics = Json::parse(found).at("metrics");
  const double loss = metrics.at("loss"), nll = metrics.at("nll"), perplexity = metrics.at("perplexity");
  CHECK(loss * std::numbers::ln2 == Approx(values(scene, "run", "train/loss").at(0)).epsilon(1e-5));
  CHECK(nll == Approx(-metrics.at("log2_likelihood").get<double>()).epsilon(1e-12));
  CHECK(perplexity == Approx(std::exp2(nll)).epsilon(1e-12));
  CHECK(std::abs(loss - nll) > 1e-3);
}

// The pairs of dev, and pairs with an empty source, an empty target and both, as a test split.
struct WithEmptyLines {
  explicit WithEmptyLines(const Scene& scene)
      : source(scene.path("test.source")), target(scene.path("test.target")), data(scene.path("test.h5")) {
    const std::string sources = read_file(scene.path("s/dev.source")), targets = read_file(scene.path("s/dev.target"));
    const std::string word = targets.substr(0, targets.find_first_of(" \n"));
    test::write_file(source, "\n" + sources + word + "\n\n");
    test::write_file(target, word + "\n" + targets + "\n\n");
    scene.run({"prepare", "--task", "translation", "--split", "test", "--subword", "word", "--vocab",
               scene.path("s/vocab.words"), "--source", source, "--target", target, "--output", data});
  }

  std::string source, target, data;
};

TEST_CASE("an evaluation's BLEU is that of `etc translate`'s lines, empty lines included", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  const WithEmptyLines test(scene);
  const auto bleu_of = [&](const Words& words) {
    return Json::parse(scene.run(words)).at("metrics").at("bleu").get<double>();
  };
  for (const char* steps : {"60", "1"}) {  // after one step, few translations end before the greatest length
    CAPTURE(steps);
    const std::string run = scene.path(std::string("run") + steps), out = scene.path("out");
    scene.run(training(scene, std::string("run") + steps,
                       {"--steps", steps, "--learning-rate", "0.01", "--schedule", "inverse_sqrt", "--warmup-steps",
                        "10", "--norm", "admin"}));
    scene.run({"translate", "--model", run, "--input", test.source, "--output", out, "--beam", "2"});
    const std::string lines = read_file(out);
    CHECK(lines.starts_with("\n"));
    CHECK(lines.ends_with("\n\n"));
    const double expected =
        bleu_of({"eval", "--task", "translation", "--predictions", out, "--gold", test.target, "--json"});
    CHECK(expected > 0);
    CHECK(bleu_of({"eval", "--model", run, "--data", test.data, "--bleu-beam", "2", "--json"}) ==
          Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("a step's gradients are sums over the pieces of its batch, however it is cut", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  const Words steps = {"--steps", "3", "--learning-rate", "0.01", "--clip-norm", "0", "--warmup-proportion", "0"};
  scene.run(training(scene, "whole", steps));
  Words cut = steps;
  cut.insert(cut.end(), {"--micro-batch-tokens", "60"});
  scene.run(training(scene, "cut", cut));
  for (const std::string name : {"loss", "gradient_norm"}) {
    const std::vector<double> whole = values(scene, "whole", "train/" + name),
                              parts = values(scene, "cut", "train/" + name);
    REQUIRE(whole.size() == 3);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(parts.at(i) == Approx(whole[i]).epsilon(1e-4));
  }
  Words sharp = steps;
  sharp.insert(sharp.end(), {"--label-smoothing", "0"});
  scene.run(training(scene, "sharp", sharp));
  CHECK(values(scene, "sharp", "train/loss").at(0) != Approx(values(scene, "whole", "train/loss").at(0)).epsilon(1e-6));
}

TEST_CASE("batches by tokens are resumed with the same bits, weights of epochs are kept, and BLEU is an evaluation's",
          "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  const Words more = {"--tokens-per-batch", "250", "--epochs",    "3", "--learning-rate", "0.01",
                      "--keep-last",        "2",   "--bleu-beam", "2"};
  scene.run(training(scene, "run", more));
  const std::vector<double> bleu = values(scene, "run", "eval/bleu"), epochs = values(scene, "run", "train/epoch");
  REQUIRE(bleu.size() == 3);
  CHECK((bleu.back() >= 0 && bleu.back() <= 100));
  REQUIRE(epochs.size() % 3 == 0);
  CHECK(epochs.back() == 3);
  // The last two epochs, and their mean.
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(scene.path("run/kept"))) kept.push_back(entry.path());
  std::sort(kept.begin(), kept.end());
  REQUIRE(kept.size() == 2);
  CHECK(kept.back().ends_with("step_" + std::string(8 - std::to_string(epochs.size()).size(), '0') +
                              std::to_string(epochs.size())));
  CHECK(read_file(kept.back() + "/model.safetensors") == read_file(scene.path("run/last/model.safetensors")));
  scene.run({"convert", "--average", kept[0], kept[1], "--output", scene.path("mean")});
  // A run that is killed part-way and resumed.
  Words command = training(scene, "killed", more);
  command.insert(command.end(), {"--save-every", "1"});
  command.insert(command.begin(), test::program().value());
  {
    test::Child child(command, scene.path("killed.log"));
    child.run_until([&] { return std::filesystem::exists(scene.path("killed/last")); });
    child.send(SIGKILL);
    child.wait();
  }
  scene.run({"train", "--resume", scene.path("killed")});
  for (const char* file : {"last/model.safetensors", "best/model.safetensors"}) {
    CHECK(read_file(scene.path(std::string("killed/") + file)) == read_file(scene.path(std::string("run/") + file)));
  }
  CHECK_THAT(scene.run({"eval", "--model", scene.path("mean"), "--data", scene.path("dev.h5"), "--bleu-beam", "1"}),
             Contains("bleu"));
  const test::Result without =
      scene.try_run({"eval", "--model", scene.path("run"), "--data", scene.path("train.h5"), "--bleu-beam", "1"});
  CHECK(without.code == 1);
  CHECK_THAT(without.err, Contains("expected the line of its target"));
  scene.run({"prepare", "--task", "translation", "--split", "test", "--subword", "word", "--vocab",
             scene.path("s/vocab.words"), "--source", scene.path("s/dev.source"), "--output", scene.path("test.h5")});
  const test::Result unlabelled =
      scene.try_run({"eval", "--model", scene.path("run"), "--data", scene.path("test.h5")});
  CHECK(unlabelled.code == 1);
  CHECK_THAT(unlabelled.err, Contains("test.h5: the data set has no labels: expected one prepared with --target"));
  const test::Result alone = scene.try_run(training(scene, "x", {"--steps", "1", "--keep-every", "2"}));
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Contains("training.keep_every: expected keep_last beside it"));
}

TEST_CASE("ADMIN's numbers are set by the first batch, once, and stay with the model", "[translation][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  prepare(scene);
  const auto omegas = [&](const std::string& run) {
    std::map<std::string, float> first;
    const TensorFileReader file(scene.path(run + "/last/model.safetensors"));
    for (const auto& [name, entry] : file.entries()) {
      if (!name.ends_with("admin_omega")) continue;
      std::vector<float> numbers(static_cast<std::size_t>(entry.size()));
      file.read_floats(name, numbers.data());
      CHECK(std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x == numbers[0]; }));
      first[name] = numbers[0];
    }
    return first;
  };
  const Words still = {"--learning-rate", "0", "--norm", "admin", "--steps"};
  for (const char* steps : {"1", "3"}) {
    Words words = still;
    words.emplace_back(steps);
    scene.run(training(scene, std::string("run") + steps, words));
  }
  const std::map<std::string, float> once = omegas("run1");
  REQUIRE(once.size() == 10);  // two sub-layers of two layers, three of two
  CHECK(once.at("seq2seq/encoder/layer_0/self_attention/admin_omega") == 1);
  CHECK(once.at("seq2seq/decoder/layer_0/self_attention/admin_omega") == 1);
  CHECK(once.at("seq2seq/decoder/layer_1/feed_forward/admin_omega") > 1.2f);
  CHECK(omegas("run3") == once);
  CHECK_THAT(read_file(scene.path("run1/log.txt")), Contains("ADMIN: the numbers on the skips"));
}

}  // namespace
}  // namespace etc
