// Dense encoders through the program: Natural Questions and OpenKP, whose heads read long states only; messages of the
// other tasks; stop and resume; memory forecast and limit.
#include <algorithm>
#include <csignal>
#include <iterator>
#include <map>
#include <sstream>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/command_scene.h"
#include "tests/tasks/train/small_run.h"

using namespace etc;
using Catch::Contains;
using test::joined;
using test::value_of;
using test::Words;

namespace {

// Generated pages as short windows, train.h5 and dev.h5.
struct Scene : test::CommandScene {
  explicit Scene(const std::string& task = "nq") : CommandScene(task) {
    run({"sample", "--task", task, "--records", "40", "--long-tokens", "160", "--output", path("sample")});
    const Words more =
        task == "nq" ? Words{"--seq-len", "64", "--stride", "32", "--question-len", "12", "--global-seq-len", "24"}
                     : Words{};
    for (const std::string split : {"train", "dev"}) {
      const Words labels = task == "nq" && split == "dev" ? Words{"--is-train", "false"} : Words{};
      prepare(split, path("sample/" + split + ".jsonl"), vocab(), split + ".h5", joined(more, labels));
    }
  }
  std::string vocab() const { return path("sample/vocab.txt"); }

  Words command(const std::string& run, const Words& more) const {
    const Words words = {"train",   "--data", path("train.h5"), "--eval-data", path("dev.h5"),
                         "--vocab", vocab(),  "--output",       path(run)};
    return joined(words, more);
  }
  std::string weights(const std::string& run) const { return read_file(path(run + "/last/model.safetensors")); }
};

struct Sizes {
  std::string hidden = "32", inner = "64", batch = "4";
};

Words small_dense(const std::string& task, const std::string& steps = "8", const Sizes& sizes = {}) {
  const Words model = {"--task",
                       task,
                       "--model-kind",
                       "dense",
                       "--vocab-size",
                       "512",
                       "--hidden-size",
                       sizes.hidden,
                       "--intermediate-size",
                       sizes.inner,
                       "--num-hidden-layers",
                       "2",
                       "--batch-size",
                       sizes.batch,
                       "--num-attention-heads",
                       "2",
                       "--max-absolute-position-embeddings",
                       "300"};
  return joined(model, {"--steps", steps, "--eval-every", "4", "--learning-rate", "0.003"});
}

// From a benchmark's table: megabytes of each point ("off fp32 512") without the program's own. column: of the total.
std::map<std::string, double> buffers_of_points(const std::string& table, std::size_t column) {
  std::map<std::string, double> points;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line);
    const Words words{std::istream_iterator<std::string>(text), {}};
    if (words.size() <= column || (words[0] != "off" && words[0] != "sum")) continue;
    points[words[0] + " " + words[1] + " " + words[2]] = std::stod(words[column]) - std::stod(words.back());
  }
  return points;
}

// The last memory figures in a text, in the program's format.
struct Megabytes {
  double all = 0, program = 0;

  explicit Megabytes(const std::string& text) {
    const std::string said = text.substr(text.rfind("peak memory ") + 12);
    all = std::stod(said);
    program = std::stod(said.substr(said.find("program ") + 8));
  }
  double buffers() const { return all - program; }
};

// Models that differ in every setting that changes how a step is computed.
const std::vector<Words>& variants() {
  static const std::vector<Words> kVariants = {
      {},
      {"--use-residual-attention", "--norm", "pre_ln", "--sublayer-order", "ssff"},
      {"--use-residual-attention", "--use-running-mean", "--norm", "rezero_post_ln", "--rezero-per-branch"},
      {"--norm", "rezero", "--local-radius", "12"}};
  return kVariants;
}

}  // namespace

TEST_CASE("dense encoders go through every command with Natural Questions", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const std::string dev = scene.path("sample/dev.jsonl"), best = scene.path("run/best");
  for (const Words& variant : variants()) {
    CAPTURE(json_line(Json(variant)));
    std::filesystem::remove_all(scene.path("run"));
    scene.run(scene.command("run", joined(small_dense("nq"), variant)));
    CHECK(read_json_file(scene.path("run/best/config.json")).at("model").at("kind") == "dense");

    const std::string predictions = scene.path("p.json");
    const std::string by_model =
        scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--output", predictions});
    const std::string by_file = scene.run({"eval", "--task", "nq", "--predictions", predictions, "--gold", dev});
    CHECK(value_of(by_model, "f1") == value_of(by_file, "average_f1"));
    scene.run({"predict", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("a.json")});
    CHECK(read_file(scene.path("a.json")) == read_file(predictions));
    scene.run({"predict", "--model", best, "--input", dev, "--output", scene.path("b.json")});
    CHECK(read_file(scene.path("b.json")) == read_file(predictions));

    scene.run(
        {"encode", "--model", best, "--data", scene.path("dev.h5"), "--output", scene.path("s.h5"), "--all-layers"});
    const test::GoldenFile states(scene.path("s.h5"));
    CHECK(states.has("examples/long"));
    CHECK(states.has("examples/layer_1_long"));
    CHECK(!states.has("examples/global"));
    const bool residual = !variant.empty() && variant[0] == "--use-residual-attention";
    CHECK(states.has("examples/layer_1_scores_self") == residual);
    CHECK_THAT(scene.run({"info", best}), Contains("kind") && Contains("dense"));
    for (const char* compute : {"int8", "bf16"}) {
      if (!cpu_offers(std::string(compute) == "int8" ? ComputeType::int8 : ComputeType::bf16)) continue;
      const std::string reduced =
          scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--compute", compute});
      CHECK(value_of(reduced, "loss") == Approx(value_of(by_model, "loss")).epsilon(0.05));
    }
    const std::string half = scene.run({"eval", "--model", best, "--data", scene.path("dev.h5"), "--scores", "fp16"});
    if (residual) {
      CHECK(value_of(half, "loss") == Approx(value_of(by_model, "loss")).epsilon(1e-3));
    } else {
      CHECK(value_of(half, "loss") == value_of(by_model, "loss"));
    }
  }
}

TEST_CASE("a dense run has the same bits for any threads, checkpointing, and after it was killed", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  for (const Words& variant : variants()) {
    CAPTURE(json_line(Json(variant)));
    for (const char* run : {"one", "two", "killed"}) std::filesystem::remove_all(scene.path(run));
    const Words model =
        joined(small_dense("nq", "6"), joined(variant, {"--save-every", "1", "--micro-batch-tokens", "150"}));
    scene.run(scene.command("one", joined(model, {"--threads", "1"})));
    const std::string expected = scene.weights("one");
    scene.run(scene.command("two", joined(model, {"--threads", "2", "--grad-checkpointing-period", "1"})));
    CHECK(scene.weights("two") == expected);

    Words command = scene.command("killed", joined(model, {"--threads", "1"}));
    command.insert(command.begin(), test::program().value());
    {
      test::Child child(command, scene.path("log"));
      child.run_until([&] { return std::filesystem::exists(scene.path("killed/last")); });
      child.send(SIGKILL);
      child.wait();
    }
    scene.run({"train", "--resume", scene.path("killed")});
    CHECK(test::bits_of(scene.path("killed")) == test::bits_of(scene.path("one")));
  }
}

TEST_CASE("dense encoders learn pages of OpenKP, whose visual features go into the text alone", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("openkp");
  const Words model = small_dense("openkp");
  const test::Result refused = scene.try_run(scene.command("run", model));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("task.visual_features_in_global: true needs an encoder with global tokens"));
  CHECK(!std::filesystem::exists(scene.path("run")));
  scene.run(scene.command("run", joined(model, {"--visual-features-in-global", "false"})));
  scene.run(
      {"eval", "--model", scene.path("run/best"), "--data", scene.path("dev.h5"), "--output", scene.path("p.json")});
  scene.run(
      {"eval", "--task", "openkp", "--predictions", scene.path("p.json"), "--gold", scene.path("sample/dev.jsonl")});
}

TEST_CASE("tasks that read global tokens refuse a dense encoder before anything else", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::CommandScene scene("wikihop");
  const auto message = [&](const std::string& task, const Words& more) {
    const Words words = joined({"train", "--data", scene.path("none.h5"), "--output", scene.path("run")}, more);
    const test::Result result = scene.try_run(joined(words, small_dense(task)));
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(message("wikihop", {}), Contains("task wikihop, whose candidates are global tokens, needs an encoder"));
  CHECK_THAT(message("hotpotqa", {}), Contains("task hotpotqa, whose sentences are global tokens, needs an encoder"));
  CHECK_THAT(message("nq", {"--global-attention", "false"}), Contains("task.global_attention: false needs an encoder"));
  CHECK(!std::filesystem::exists(scene.path("run")));
}

TEST_CASE("a run takes tables of relative positions of another clip only when it is told to resize them",
          "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  test::write_file(scene.path("c.json"), R"({"task": {"name": "nq"}, "training": {"steps": 1, "batch_size": 4},
    "model": {"kind": "dense", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
              "num_attention_heads": 2, "max_absolute_position_embeddings": 0, "relative_positions": "shaw",
              "relative_clip": 8}})");
  scene.run(scene.command("near", {"--config", scene.path("c.json")}));
  const Words on = {"--task", "nq", "--steps", "1", "--init-from", scene.path("near/best"), "--relative-clip", "20"};
  const test::Result refused = scene.try_run(scene.command("none", on));
  CHECK(refused.code != 0);
  CHECK_THAT(refused.err, Contains("relative_table expected [41, 2, 16], got [17, 2, 16] (of another relative_clip"));
  scene.run(scene.command("far", joined(on, {"--resize-relative"})));
  const TensorFileReader last(scene.path("far/last/model.safetensors"));
  CHECK(last.entry("bert/encoder/layer_0/attention/self/relative_table").shape == std::vector<std::int64_t>{41, 2, 16});
}

TEST_CASE("a run says where its model computes something else with the checkpoint's weights", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  const auto positions = [](const std::string& method, const Words& more = {}) {
    Words words = small_dense("nq", "1");
    words[static_cast<std::size_t>(std::find(words.begin(), words.end(), "300") - words.begin())] = "0";
    return joined(words, joined({"--relative-positions", method}, more));
  };
  scene.run(scene.command("shaw", positions("shaw", {"--relative-clip", "8"})));
  const Words from = {"--init-from", scene.path("shaw/last"), "--relative-clip", "8"};
  const auto messages = [&](const Words& words) {
    std::filesystem::remove_all(scene.path("again"));
    const test::Result result = scene.try_run(scene.command("again", joined(words, from)));
    INFO(result.err);
    CHECK(result.code == 0);
    return result.err;
  };
  CHECK_THAT(messages(positions("shaw")), !Contains("but the checkpoint was trained with"));
  CHECK_THAT(messages(positions("shaw", {"--attention", "full"})), !Contains("attention: "));  // as without
  CHECK_THAT(messages(positions("huang4")),
             Contains("warning: relative_positions: huang4, but the checkpoint was trained with: shaw\n") &&
                 !Contains("causal: ") && !Contains("hidden_act: "));
  CHECK_THAT(messages(positions("shaw", {"--causal", "--hidden-act", "relu", "--local-radius", "8"})),
             Contains("warning: causal: true, but the checkpoint was trained with: false\n") &&
                 Contains("warning: hidden_act: relu, but the checkpoint was trained with: gelu\n") &&
                 Contains("warning: attention: window, but the checkpoint was trained with: full\n"));
}

TEST_CASE("a run on a dense checkpoint is a dense run, and keys of another kind are refused by name",
          "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  scene.run(scene.command("run", joined(small_dense("nq", "2"), {"--norm", "pre_ln"})));
  scene.run(scene.command("more", {"--task", "nq", "--init-from", scene.path("run/best"), "--steps", "2"}));
  const Json model = read_json_file(scene.path("more/config.json")).at("model");
  CHECK(model.at("kind") == "dense");
  CHECK(model.at("norm") == "pre_ln");
  CHECK(model.at("hidden_size") == 32);

  const auto message = [&](const Words& more) {
    const test::Result result = scene.try_run(scene.command("none", joined({"--task", "nq"}, more)));
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(message({"--init-from", scene.path("run/best"), "--model-kind", "etc"}),
             Contains("is of kind dense, and the run is to be of kind etc"));
  CHECK_THAT(
      message({"--norm", "pre_ln"}),
      Contains("model.norm is a key of models of kind dense or seq2seq, and this one is of kind etc (--model-kind)"));
  CHECK_THAT(message({"--model-kind", "dense", "--share-kv-projections"}), Contains("is a key of models of kind etc"));
  CHECK_THAT(message({"--model-kind", "dens"}), Contains("did you mean dense?"));
  CHECK_THAT(message({"--sublayer-ordr", "sf"}), Contains("did you mean --sublayer-order?"));
  test::write_file(scene.path("c.json"), R"({"model": {"kind": "dense", "nrom": "pre_ln"}})");
  CHECK_THAT(message({"--config", scene.path("c.json")}),
             Contains("unknown key model.nrom (did you mean model.norm?)"));
  const std::string help = scene.run({"train", "--help"});
  CHECK_THAT(help, Contains("--model-kind") && Contains("--residual-init-scale") && Contains("dense only") &&
                       Contains("etc only"));
}

TEST_CASE("a dense run takes the memory that was forecast, and keeps to a limit", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene;
  for (const bool residual : {false, true}) {
    CAPTURE(residual);
    Words model = joined(small_dense("nq", "3", {"128", "512", "32"}), {"--threads", "2"});
    if (residual) model.push_back("--use-residual-attention");
    const std::string run = residual ? "residual" : "plain", limited = run + "_limited";
    const Megabytes forecast(scene.run(scene.command(run, joined(model, {"--forecast"}))));
    scene.run(scene.command(run, model));
    const Megabytes measured(read_file(scene.path(run + "/log.txt")));
    const int limit = static_cast<int>(0.8 * forecast.all);
    scene.run(scene.command(limited, joined(model, {"--memory-limit", std::to_string(limit) + "MB"})));
    const Megabytes kept(read_file(scene.path(limited + "/log.txt")));
    std::printf("dense run, MB without the program: forecast %.1f, measured %.1f; limited %.1f\n", forecast.buffers(),
                measured.buffers(), kept.buffers());
    CHECK(measured.buffers() == Approx(forecast.buffers()).epsilon(0.05));
    CHECK(kept.buffers() < measured.buffers());
    CHECK(kept.all < 1.1 * limit);
  }
}

TEST_CASE("benchmark measures dense encoders, and their memory is what it forecast", "[tasks][dense]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::CommandScene scene("nq");
  // At least 6 MB at every point, since the table has one decimal. Many narrow layers: the program times a few of them,
  // up to two seconds for each point.
  const std::string fields = R"("hidden_size": 64, "num_hidden_layers": 12, "num_attention_heads": 2,
    "intermediate_size": 512, "max_absolute_position_embeddings": 1024, "vocab_size": 512)";
  test::write_file(scene.path("c.json"), R"({"model": {"kind": "dense", )" + fields + "}}");
  for (const auto& [mode, lengths] : {std::pair("infer", "512"), std::pair("train", "128")}) {
    CAPTURE(mode);
    const Words words = {"benchmark",  "--config", scene.path("c.json"), "--lengths", lengths,     "--mode", mode,
                         "--residual", "off,sum",  "--repeats",          "1",         "--threads", "1"};
    const auto expected = buffers_of_points(scene.run(joined(words, {"--forecast"})), 4);
    const auto measured = buffers_of_points(scene.run(joined(words, {"--output", scene.path(mode)})), 7);
    REQUIRE(expected.size() == 2);
    REQUIRE(measured.size() == 2);
    for (const auto& [point, megabytes] : expected) {
      CAPTURE(point, megabytes, measured.at(point));
      CHECK(measured.at(point) / megabytes > 0.85);  // as for a run (forecast_test.cpp)
      CHECK(measured.at(point) / megabytes < 1.05);
    }
  }
  const test::Result unknown = scene.try_run({"benchmark", "--preset", "dense-bas"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, Contains("dense-small") && Contains("dense-base"));
}
