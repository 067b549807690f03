// Pre-training through the program: train, stop, resume, evaluate, predict.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <numeric>
#include <sstream>

#include "data/dataset_info.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/command_scene.h"
#include "tests/tasks/pretrain/examples.h"
#include "tests/tasks/train/small_run.h"

using namespace etc;
using namespace etc::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

// Prepared data of one kind, train.h5 and dev.h5, with their vocabulary. Without stored masks, as for sentences in
// train.h5, masks are drawn in each epoch.
struct Scene : CommandScene {
  explicit Scene(data::LoadedExample (*make)(std::int64_t) = sentences_example) : CommandScene("pretrain") {
    test::write_file(path("vocab.txt"), pretrain_vocabulary());
    write_pretrain_dataset(path("train.h5"), make, 0, 30, make != sentences_example);
    write_pretrain_dataset(path("dev.h5"), make, 500, 12);
  }

  Words command(const std::string& run, const Words& more) const {
    const Words words = {"train",       "--task",       "pretrain", "--data",          path("train.h5"),
                         "--eval-data", path("dev.h5"), "--vocab",  path("vocab.txt"), "--output",
                         path(run),     "--threads",    "1",        "--vocab-size",    "64"};
    return joined(words, more);
  }
};

Words etc_model(const std::string& steps) {
  return joined(two_layers("16", "32"),
                {"--local-radius", "4", "--relative-pos-max-distance", "4", "--relative-vocab-size", "12",
                 "--use-hard-g2l-mask", "--objective", "mlm_cpc", "--batch-size", "4", "--steps", steps});
}

Words dense_model(const std::string& steps) {
  return joined(two_layers("32", "64"),
                {"--model-kind", "dense", "--max-absolute-position-embeddings", "64", "--segment-vocab-size", "2",
                 "--hidden-dropout-prob", "0", "--attention-probs-dropout-prob", "0", "--objective", "mlm_nsp",
                 "--batch-size", "10", "--steps", steps});
}

Words with_value(Words words, const std::string& option, const std::string& value) {
  *(std::find(words.begin(), words.end(), option) + 1) = value;
  return words;
}

}  // namespace

TEST_CASE("pre-training that is stopped goes on with the same masks and bits", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene;
  Words words = joined(etc_model("12"), {"--use-residual-attention", "--micro-batch-tokens", "60", "--save-every", "1",
                                         "--eval-every", "5", "--log-every", "1", "--optimizer", "lamb",
                                         "--learning-rate", "0.003", "--whole-word-mask", "false"});
  if (cpu_offers(ComputeType::bf16)) words = joined(words, {"--compute", "bf16"});
  scene.run(scene.command("reference", words));
  const fs::path run = scene.path("run");
  {
    Child child(joined({program().value()}, scene.command("run", words)), scene.path("log"));
    child.run_until([&] { return fs::exists(run / "last"); });
    child.send(SIGKILL);
    child.wait();
  }
  scene.run({"train", "--resume", run.string()});
  CHECK(bits_of(run) == bits_of(scene.path("reference")));
  // Activation checkpointing gives the same weights.
  scene.run(scene.command("checkpointed", joined(words, {"--grad-checkpointing-period", "1"})));
  CHECK(read_file(scene.path("checkpointed/last/model.safetensors")) ==
        read_file(scene.path("reference/last/model.safetensors")));
}

TEST_CASE("predictions without a spelling in the vocabulary are shown by their number", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene(pair_example);
  scene.run(with_value(scene.command("run", dense_model("1")), "--vocab-size", "900"));
  const Words data = {"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5")};
  const std::string many = scene.path("n.jsonl");
  scene.run(joined(data, {"--output", scene.path("p.jsonl"), "--n-best-output", many, "--n-best", "900"}));
  CHECK_THAT(read_file(many), Contains(R"("piece":"[899]")"));
  CHECK_THAT(scene.run(joined(data, {"--show", "12"})), Contains(" %  ["));
}

TEST_CASE("a run draws its masks by the settings of its data, or by its own", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene;  // of 30 % masked pieces
  const auto weights = [&](const std::string& run, const Words& options) {
    scene.run(scene.command(run, joined(etc_model("2"), options)));
    return read_file(scene.path(run + "/last/model.safetensors"));
  };
  const std::string of_data = weights("data", {});
  CHECK(weights("same", {"--masked-lm-prob", "0.3"}) == of_data);
  CHECK(weights("other", {"--masked-lm-prob", "0.15"}) != of_data);
}

TEST_CASE("a batch of hidden sentences trains the same in one micro-batch and in many", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene;
  const Words model =
      joined(etc_model("4"), {"--hidden-dropout-prob", "0", "--attention-probs-dropout-prob", "0", "--log-every", "1"});
  scene.run(scene.command("whole", model));
  scene.run(scene.command("cut", joined(model, {"--micro-batch-tokens", "1"})));
  const auto losses = [&](const std::string& run) {
    std::vector<double> all;
    std::istringstream lines(read_file(scene.path(run + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line);
      if (entry.contains("loss")) all.push_back(entry["loss"]);
    }
    return all;
  };
  const std::vector<double> whole = losses("whole"), cut = losses("cut");
  REQUIRE(whole.size() == 4);
  REQUIRE(cut.size() == 4);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(cut[i] == Approx(whole[i]).epsilon(1e-4));
}

TEST_CASE("a dense encoder learns pairs of texts by heart, and says what it predicts", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene(pair_example);
  scene.run(scene.command("run",
                          joined(dense_model("500"), {"--learning-rate", "0.005", "--eval-data", scene.path("train.h5"),
                                                      "--eval-every", "50", "--weight-decay", "0.01"})));
  const std::string scores = scene.run({"eval", "--model", scene.path("run/best"), "--data", scene.path("train.h5")});
  CHECK(value_of(scores, "masked_lm_accuracy") > 0.95);
  CHECK(value_of(scores, "next_sentence_accuracy") > 0.9);
  CHECK(value_of(scores, "masked_lm_loss") < 0.5);
  // Most predictions of the next sentence are right.
  scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("train.h5"), "--output",
             scene.path("learned.jsonl")});
  std::istringstream learned(read_file(scene.path("learned.jsonl")));
  int right = 0, all = 0;
  for (std::string line; std::getline(learned, line); ++all) {
    const Json prediction = parse_json(line, "p");
    const auto example = pair_example(std::stoll(prediction.at("id").get<std::string>().substr(5)));
    const bool follows = std::get<std::int64_t>(example.features.at("next_sentence_label")) == 0;
    right += (prediction.at("follows").get<double>() > 0.5) == follows ? 1 : 0;
  }
  CHECK(right > 0.9 * all);
  const std::string predictions = scene.path("p.jsonl");
  scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output", predictions,
             "--n-best-output", scene.path("n.jsonl"), "--n-best", "3"});
  std::istringstream lines(read_file(predictions)), many(read_file(scene.path("n.jsonl")));
  std::size_t count = 0;
  for (std::string line, best; std::getline(lines, line) && std::getline(many, best); ++count) {
    const Json prediction = parse_json(line, "p"), answers = parse_json(best, "n").at("answers");
    CHECK(prediction.at("id") == "pair_" + std::to_string(500 + count));
    CHECK(prediction.at("follows").get<double>() <= 1);
    REQUIRE(prediction.at("masked").size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(answers.at(i).size() == 3);
      CHECK(answers.at(i).at(0).at("piece") == prediction.at("masked").at(i).at("predicted"));
      CHECK(answers.at(i).at(0).at("probability").get<double>() ==
            Approx(prediction.at("masked").at(i).at("probability").get<double>()).margin(1e-6));
      CHECK(prediction.at("masked").at(i).at("label").get<std::string>().starts_with("w"));
    }
  }
  CHECK(count == 12);

  // Readable output: the pieces in order, with the model's predictions.
  const std::string shown =
      scene.run({"predict", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--show", "2"});
  CHECK_THAT(shown, Contains("pair_500\n") && Contains("pair_501\n") && !Contains("pair_502"));
  const Json first = parse_json(read_file(predictions).substr(0, read_file(predictions).find('\n')), "p");
  const std::string label = first.at("masked").at(0).at("label"), best = first.at("masked").at(0).at("predicted");
  CHECK_THAT(shown, Contains("[[" + label + "]]") && Contains(" %  " + best) &&
                        Contains("the second text follows the first: "));
  const Result raw = scene.try_run({"predict", "--model", scene.path("run/best"), "--input", predictions, "--vocab",
                                    scene.path("vocab.txt"), "--show", "1"});
  CHECK(raw.code == 2);
  CHECK_THAT(raw.err, Contains("this task's examples are made of whole texts, expected --data"));
}

TEST_CASE("ids beyond the model's vocabulary end a run before it begins, a loss that is nan names its operator",
          "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene(pair_example);
  const Result beyond = scene.try_run(with_value(scene.command("small", dense_model("2")), "--vocab-size", "40"));
  INFO(beyond.err);
  CHECK(beyond.code != 0);
  CHECK_THAT(beyond.err, Contains("expected token ids below vocab_size=40 of the model"));
  CHECK(!fs::exists(scene.path("small/metrics.jsonl")));

  const Words wild = {"--learning-rate", "1e30", "--optimizer",         "adamw", "--clip-norm", "1e30",
                      "--save-every",    "1",    "--warmup-proportion", "0"};
  const Result bad = scene.try_run(scene.command("bad", joined(dense_model("9"), wild)));
  INFO(bad.err);
  CHECK(bad.code == 1);
  CHECK_THAT(bad.err, Contains("first bad operator"));
  const TensorFileReader last(scene.path("bad/last/model.safetensors"));
  for (const auto& [name, entry] : last.entries()) {
    const Tensor weights = last.read_tensor(name, Purpose::weights);
    CHECK(std::all_of(weights.data(), weights.data() + weights.size(), [](float x) { return std::isfinite(x); }));
  }
}

TEST_CASE(
    "texts longer than the table of positions end a run, and so do tables of another clip unless they are resized",
    "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene(pair_example);
  const auto refused = [&](const Words& words, int code, const std::string& message) {
    const Result result = scene.try_run(scene.command("refused", words));
    INFO(result.err);
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains(message));
  };
  const std::string rows = "--max-absolute-position-embeddings";
  const std::string longest = std::to_string(data::read_dataset_info(scene.path("train.h5")).max_long_len);
  refused(with_value(dense_model("1"), rows, "8"), 1,
          "train.h5: the longest example has " + longest +
              " long tokens: expected at most max_absolute_position_embeddings=8 (positions beyond have no row in the "
              "table: prepare shorter inputs, or take a model with more rows or with relative positions)");
  CHECK(!fs::exists(scene.path("refused/metrics.jsonl")));
  scene.run(scene.command("enough", with_value(dense_model("1"), rows, longest)));

  // The only step is warm-up, so the weights stay those of the start.
  const auto with_clip = [&](const std::string& clip, const Words& more, const std::string& method = "shaw") {
    const Words positions = {"--relative-positions", method, "--relative-clip", clip, "--warmup-proportion", "1"};
    return joined(joined(with_value(dense_model("1"), rows, "0"), positions), more);
  };
  scene.run(scene.command("near", with_clip("4", {})));
  const Words from = {"--init-from", scene.path("near/last")}, resized = joined(from, {"--resize-relative"});
  refused(with_clip("6", from), 1,
          "relative_table expected [13, 2, 16], got [9, 2, 16] (of another relative_clip: see resize_relative)");
  scene.run(scene.command("far", with_clip("6", resized)));
  const std::string name = "bert/encoder/layer_1/attention/self/relative_table";
  const Tensor near = TensorFileReader(scene.path("near/last/model.safetensors")).read_tensor(name, Purpose::weights),
               far = TensorFileReader(scene.path("far/last/model.safetensors")).read_tensor(name, Purpose::weights);
  REQUIRE(far.dim(0) == 13);
  for (std::int64_t distance = -6; distance <= 6; ++distance) {
    CAPTURE(distance);
    const float* const expected = near.data() + (std::clamp<std::int64_t>(distance, -4, 4) + 4) * 32;
    CHECK(std::equal(expected, expected + 32, far.data() + (distance + 6) * 32));
  }
  refused(with_clip("6", resized, "huang4"), 2,
          "resize_relative: expected a checkpoint with the model's relative_positions huang4, got shaw");
}

TEST_CASE("texts of few blocks see everything, which is said once", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene(pair_example);
  const Result result = scene.try_run(
      scene.command("run", joined(dense_model("3"), {"--attention", "bigbird", "--bigbird-block-size", "4"})));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const std::string warning = "tokens are fewer than 5 + 3 blocks of 4: it sees everything";
  const std::size_t first = result.err.find(warning);
  REQUIRE(first != std::string::npos);
  CHECK(result.err.find(warning, first + 1) == std::string::npos);
}

TEST_CASE("an evaluation of texts with hidden sentences tells all of its numbers", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene;
  scene.run(scene.command("run", etc_model("3")));
  const std::string scores = scene.run({"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5")});
  CHECK(value_of(scores, "masked_lm_loss") == Approx(std::log(64.0)).margin(0.5));
  CHECK(value_of(scores, "cpc_sentences") == 12);
  CHECK(value_of(scores, "cpc_choices") == 12);
  // For data whose masks are drawn at run time, every evaluation draws the same masks.
  const Words drawn = {"eval", "--model", scene.path("run/best"), "--data", scene.path("train.h5")};
  CHECK(scene.run(drawn) == scene.run(drawn));
  CHECK_THAT(scene.try_run({"eval", "--task", "pretrain", "--predictions", "x", "--gold", "y"}).err,
             Contains("task pretrain has no prediction file to score"));
  // A memory limit is kept to; one that is too low is refused.
  const std::string limited = scene.path("limited");
  CHECK_THAT(scene.try_run(scene.command(limited, joined(etc_model("2"), {"--memory-limit", "1GB"}))).err,
             Contains("memory limit"));
  CHECK_THAT(scene.try_run(scene.command("low", joined(etc_model("2"), {"--memory-limit", "1MB"}))).err,
             Contains("too low for this model"));
}

TEST_CASE("encode feeds hidden sentences as [MASK], as training does", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const Scene scene;
  scene.run(scene.command("run", etc_model("1")));
  scene.run({"encode", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output",
             scene.path("states.h5")});
  const auto ids = GoldenFile(scene.path("states.h5")).read_ragged<std::int64_t>("examples/long_token_ids");
  REQUIRE(ids.size() == 12);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(i);
    const data::Example example = sentences_example(500 + static_cast<std::int64_t>(i)).features;
    const auto numbers = [&](const char* name) { return std::get<std::vector<std::int64_t>>(example.at(name)); };
    auto expected = numbers("long_token_ids");
    const auto lengths = numbers("sentence_lengths");
    const auto hidden = numbers("cpc_sentences").at(0);
    const auto first = std::accumulate(lengths.begin(), lengths.begin() + hidden, expected.begin() + 1,
                                       [](auto at, std::int64_t length) { return at + length; });
    std::fill(first, first + lengths[static_cast<std::size_t>(hidden)], kMask);
    expected.at(static_cast<std::size_t>(numbers("masked_positions").at(0))) = numbers("masked_input_ids").at(0);
    CHECK(ids[i] == expected);
  }
}

TEST_CASE("from generated text to a trained model with the ready configurations", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const CommandScene scene("pretrain");
  scene.run({"sample", "--task", "pretrain", "--records", "12", "--seed", "3", "--output", scene.path("sample")});
  const std::string vocabulary = scene.path("sample/vocab.txt");
  struct Case {
    std::string objective, config, dynamic;
  };
  for (const Case& one : {Case{"mlm_nsp", "dense_tiny", "false"}, Case{"mlm_cpc", "etc_tiny", "true"}}) {
    CAPTURE(one.objective);
    const std::string train = one.objective + "_train.h5", dev = one.objective + "_dev.h5";
    const Words keys = {"--objective",       one.objective, "--max-seq-length", "64",
                        "--whole-word-mask", "true",        "--dupe-factor",    "1"};
    scene.prepare("train", scene.path("sample/train.txt"), vocabulary, train,
                  joined(keys, {"--dynamic-masking", one.dynamic}));
    scene.prepare("dev", scene.path("sample/dev.txt"), vocabulary, dev, keys);
    const std::string run = scene.path("run_" + one.config);
    const std::string config = (source_folder() / ("tasks/configs/pretrain_" + one.config + ".json")).string();
    scene.run({"train", "--config", config, "--data", scene.path(train), "--eval-data", scene.path(dev), "--vocab",
               vocabulary, "--output", run, "--steps", "2", "--batch-size", "4"});
    const std::string scores = scene.run({"eval", "--model", run + "/best", "--data", scene.path(dev)});
    CHECK(value_of(scores, "masked_lm_loss") == Approx(std::log(512.0)).margin(1));
  }
}
