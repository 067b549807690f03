// etc train --init-from: runs started from checkpoints that etc convert made, and from checkpoints of other tasks.
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;
using Catch::Contains;
using test::Result;
namespace fs = std::filesystem;

namespace {

constexpr const char* kHeadStartsFresh = ": the encoder; this task's head starts fresh";

// A folder with prepared data, and the two commands of a user: convert, then train one step with rate 0 (all of it
// warm-up), so that the weights afterwards are the initial ones.
struct Workplace {
  test::TemporaryFolder folder;

  Workplace() { test::write_readable_dataset(folder / "train.h5", 0, 20); }
  std::string path(const std::string& name) const { return folder / name; }

  // A published checkpoint of this configuration with another task's head, converted with it.
  void convert(const EtcConfig& config) const {
    test::TfCheckpoint checkpoint(config);
    checkpoint.add();
    const std::vector<float> numbers(static_cast<std::size_t>(config.hidden_size), 0.5f);
    checkpoint.writer.add("cls/nq/long_output_weights", {1, config.hidden_size}, numbers.data());
    checkpoint.writer.write(path("model.ckpt"));
    test::write_file(path("etc_config.json"), json_text(config.to_json()));
    const Result result = test::run_program(
        {"convert", "--from", "tf", path("model.ckpt"), "--overwrite", "--output", path("model")}, folder.path());
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
  Result train(const std::string& from, const std::vector<std::string>& more = {}) const {
    fs::remove_all(path("run"));
    std::vector<std::string> arguments = {
        "train",    "--task",    "wikihop", "--data", path("train.h5"), "--init-from", path(from),
        "--output", path("run"), "--steps", "1",      "--batch-size",   "8",           "--warmup-proportion",
        "1",        "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_program(arguments, folder.path());
  }
  void check_encoder_is_that_of(const std::string& model) const {
    const TensorFileReader source(path(model + "/model.safetensors")), run(path("run/last/model.safetensors"));
    int compared = 0;
    for (const auto& [name, entry] : source.entries()) {
      if (!name.starts_with("etc_document_bert/")) continue;
      CAPTURE(name);
      REQUIRE(run.has(name));
      std::string expected(entry.end - entry.begin, '\0'), got(expected.size(), '\1');
      source.read_raw(name, expected.data());
      run.read_raw(name, got.data());
      CHECK(got == expected);
      ++compared;
    }
    CHECK(compared > 40);
  }
};

}  // namespace

TEST_CASE("a run takes the encoder of a published checkpoint of another task, scores switched as it says", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Workplace work;
  const std::vector<std::string> on = {"--use-residual-attention"}, off = {"--use-residual-attention", "false"},
                                 mean = {"--use-residual-attention", "--use-running-mean"};
  EtcConfig config = test::tiny_model();
  struct Case {
    std::vector<std::string> options;
    std::string message;
  };
  const auto check = [&](const std::vector<Case>& cases) {
    work.convert(config);
    for (const Case& one : cases) {
      CAPTURE(one.message);
      const Result result = work.train("model", one.options);
      INFO(result.err);
      REQUIRE(result.code == 0);
      CHECK_THAT(result.err, Contains(kHeadStartsFresh) && Contains("residual scores: " + one.message));
      CHECK_THAT(read_file(work.path("run/log.txt")), Contains("residual scores: " + one.message));
      work.check_encoder_is_that_of("model");
      const TensorFileReader run(work.path("run/last/model.safetensors"));
      CHECK(!run.has("cls/nq/long_output_weights"));
      CHECK(run.has("output_weights"));
    }
  };
  check({{{}, "off, as the checkpoint was trained with"},  // the checkpoint determines the model
         {on, "running sum, but the checkpoint was trained with: off"},
         {mean, "running mean, but the checkpoint was trained with: off"}});
  config.use_residual_attention = true;
  check({{{}, "running sum, as the checkpoint was trained with"},
         {off, "off, but the checkpoint was trained with: running sum"},
         {mean, "running mean, but the checkpoint was trained with: running sum"}});
}

TEST_CASE("a run takes the encoder of a lifted RealFormer", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Workplace work;
  convert::BertConfig bert = test::small_bert();
  bert.vocab_size = 64;
  fs::create_directories(work.path("bert"));
  test::HubBert(bert).write(work.path("bert/model.safetensors"));
  Json config = test::small_bert_json();
  config["vocab_size"] = 64;
  config["use_running_mean"] = true;  // RealFormer's own configurations contain only this key
  test::write_file(work.path("bert/config.json"), json_text(config));
  const Result converted = test::run_program(
      {"convert", "--from", "bert", work.path("bert"), "--output", work.path("model")}, work.folder.path());
  INFO(converted.err);
  REQUIRE(converted.code == 0);
  const Result result = work.train("model");
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, Contains("residual scores: running mean, as the checkpoint was trained with"));
  work.check_encoder_is_that_of("model");
}

TEST_CASE("tensors named alike in another task's checkpoint are not taken for this task's head", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Workplace work;
  work.convert(test::tiny_model());
  REQUIRE(work.train("model", {"--add-final-layer", "false"}).code == 0);
  fs::rename(work.path("run/best"), work.path("wikihop"));
  const Result same = work.train("wikihop", {"--add-final-layer", "false"});
  INFO(same.err);
  REQUIRE(same.code == 0);
  CHECK_THAT(same.err, Contains(": encoder and head"));
  // The same names and shapes in a model that names OpenKP as its task.
  Json config = read_json_file(work.path("wikihop/config.json"));
  config["task"]["name"] = "openkp";
  test::write_file(work.path("wikihop/config.json"), json_text(config));
  const Result other = work.train("wikihop", {"--add-final-layer", "false"});
  INFO(other.err);
  REQUIRE(other.code == 0);
  CHECK_THAT(other.err, Contains(kHeadStartsFresh));
  work.check_encoder_is_that_of("wikihop");
}

TEST_CASE("a run refuses a checkpoint that its configuration does not fit, listing tensors", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Workplace work;
  EtcConfig config = test::tiny_model();
  config.share_qkv_projections = false;
  work.convert(config);
  const Result result = work.train("model", {"--share-qkv-projections", "true"});
  CHECK(result.code == 1);
  CHECK_THAT(result.err, Contains("model.safetensors: ") && Contains(" tensors unmatched: ") &&
                             Contains("global_query_projection/linear/kernel [16, 16] unused"));
  CHECK(work.train("none").code != 0);
  const Result resized = work.train("model", {"--resize-relative"});
  CHECK(resized.code == 2);
  CHECK_THAT(resized.err,
             Contains("resize_relative: expected dense encoders, whose tables of relative positions have a "
                      "clip, got a checkpoint of kind etc for a model of kind etc"));
}
