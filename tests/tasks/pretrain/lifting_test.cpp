// The whole way through the program: a lifted BERT is pre-trained as an ETC and fine-tuned on every task.
#include <algorithm>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/tasks/command_scene.h"

using namespace etc;
using namespace etc::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

std::string tensor_bytes(const TensorFileReader& file, const std::string& name) {
  const TensorEntry& entry = file.entry(name);
  std::string bytes(entry.end - entry.begin, '\0');
  file.read_raw(name, bytes.data());
  return bytes;
}

// Names of the second file that have the same bytes in both.
std::size_t equal_tensors(const std::string& a, const std::string& b, const std::string& prefix) {
  const TensorFileReader left(a), right(b);
  std::size_t equal = 0;
  for (const auto& [name, entry] : right.entries()) {
    if (!name.starts_with(prefix)) continue;
    CAPTURE(name);
    REQUIRE(left.has(name));
    CHECK(tensor_bytes(left, name) == tensor_bytes(right, name));
    ++equal;
  }
  return equal;
}

// A folder with a small BERT as libraries write it: weights and the head of masked pieces, sizes, vocabulary.
void write_hub_bert(const fs::path& folder, const std::string& vocabulary) {
  const std::int64_t pieces = std::count(vocabulary.begin(), vocabulary.end(), '\n');
  convert::BertConfig bert = small_bert();
  bert.vocab_size = pieces;
  HubBert hub(bert);
  const std::int64_t hidden = bert.hidden_size;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    hub.tensors[name] = Tensor::zeros(std::move(shape), Purpose::weights);
    hub.tensors[name].data()[0] = 0.5f;
  };
  add("cls.predictions.bias", {pieces});
  add("cls.predictions.transform.dense.weight", {hidden, hidden});
  add("cls.predictions.transform.dense.bias", {hidden});
  add("cls.predictions.transform.LayerNorm.weight", {hidden});
  add("cls.predictions.transform.LayerNorm.bias", {hidden});
  fs::create_directories(folder);
  hub.write(folder / "model.safetensors");
  Json json = small_bert_json();
  json["vocab_size"] = pieces;
  write_file_atomically(folder / "config.json", json_text(json));
  write_file_atomically(folder / "vocab.txt", vocabulary);
}

}  // namespace

TEST_CASE("a lifted BERT keeps its head, is pre-trained with scores and fine-tuned on any task with or without",
          "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const CommandScene scene("pretrain");
  const std::vector<std::string> tasks = {"wikihop", "hotpotqa", "nq", "openkp"};
  for (const std::string& task : tasks) {
    scene.run({"sample", "--task", task, "--records", "4", "--output", scene.path(task)});
  }
  // NQ's special pieces are the highest unused ones: its vocabulary serves all.
  write_hub_bert(scene.path("bert"), read_file(scene.path("nq/vocab.txt")));
  const std::string vocabulary = scene.path("bert/vocab.txt");
  scene.run({"convert", "--from", "bert", scene.path("bert"), "--output", scene.path("lifted")});
  scene.run({"convert", "--from", "bert", scene.path("bert"), "--without-heads", "--output", scene.path("encoder")});
  const std::string lifted = scene.path("lifted/model.safetensors"), run = scene.path("run/last/model.safetensors");
  CHECK(!TensorFileReader(scene.path("encoder/model.safetensors")).has("cls/predictions/output_bias"));

  write_file_atomically(scene.path("text"), "the old market said what was quiet\nthere the tower is stony\n");
  scene.prepare("train", scene.path("text"), vocabulary, "text.h5",
                {"--objective", "mlm_cpc", "--min-document-sentences", "2"});
  // All of the one step is warm-up, with a rate of 0: the weights afterwards are those of the start.
  const Words start = {"--steps", "1", "--batch-size", "4", "--warmup-proportion", "1", "--threads", "1"};
  const Result trained = scene.try_run(joined(
      {"train", "--task", "pretrain", "--objective", "mlm_cpc", "--data", scene.path("text.h5"), "--vocab", vocabulary,
       "--init-from", scene.path("lifted"), "--output", scene.path("run"), "--use-residual-attention"},
      start));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, Contains("cls/predictions/output_bias") &&
                              Contains("fresh: cls/cpc/projection/kernel, cls/cpc/projection/bias") &&
                              Contains("residual scores: running sum, but the checkpoint was trained with: off"));
  CHECK(equal_tensors(run, lifted, "cls/predictions/") == 5);
  CHECK(equal_tensors(run, lifted, "etc_document_bert/") > 40);

  // Fine-tuning takes the encoder, whichever the scores.
  for (const std::string& task : tasks) {
    const std::string json = scene.path(task + "/train.json"), data = scene.path(task + ".h5");
    scene.run({"prepare", "--task", task, "--split", "train", "--input", fs::exists(json) ? json : json + "l",
               "--vocab", vocabulary, "--output", data});
    for (const std::string scores : {"true", "false"}) {
      CAPTURE(task, scores);
      const std::string tuned = scene.path(task + "_" + scores);
      const Result result =
          scene.try_run(joined({"train", "--task", task, "--data", data, "--vocab", vocabulary, "--init-from",
                                scene.path("run/last"), "--output", tuned, "--use-residual-attention", scores},
                               start));
      INFO(result.err);
      REQUIRE(result.code == 0);
      CHECK_THAT(result.err, Contains("the encoder; this task's head starts fresh"));
      CHECK(equal_tensors(tuned + "/last/model.safetensors", run, "etc_document_bert/") > 40);
      CHECK(read_json_file(tuned + "/last/config.json").at("model").at("use_residual_attention") == (scores == "true"));
    }
  }
}
