// End to end through the program: a lifted BERT or RoBERTa is pre-trained as an ETC and fine-tuned.
#include <algorithm>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/folders.h"
#include "tests/support/sentencepiece_model.h"
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

// The number of names of the second file, with this prefix, that have the same bytes in both files.
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

// A library's names: the prefix of BERT's or RoBERTa's weights, and the tensors of the masked-language-model head.
struct HubNames {
  std::string prefix, bias, dense, norm;
};
const HubNames kBert = {"bert.", "cls.predictions.bias", "cls.predictions.transform.dense",
                        "cls.predictions.transform.LayerNorm"};
const HubNames kRoberta = {"roberta.", "lm_head.bias", "lm_head.dense", "lm_head.layer_norm"};

// Writes a folder with a small BERT as libraries do: weights with the masked-language-model head, and the sizes.
void write_hub(const fs::path& folder, const HubNames& names, std::int64_t pieces) {
  convert::BertConfig bert = small_bert();
  bert.vocab_size = pieces;
  HubBert hub(bert, names.prefix);
  const std::int64_t hidden = bert.hidden_size;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    hub.tensors[name] = Tensor::zeros(std::move(shape), Purpose::weights);
    hub.tensors[name].data()[0] = 0.5f;
  };
  add(names.bias, {pieces});
  add(names.dense + ".weight", {hidden, hidden});
  add(names.dense + ".bias", {hidden});
  add(names.norm + ".weight", {hidden});
  add(names.norm + ".bias", {hidden});
  fs::create_directories(folder);
  hub.write(folder / "model.safetensors");
  Json json = small_bert_json();
  json["vocab_size"] = pieces;
  test::write_file(folder / "config.json", json_text(json));
}

// The only step is warm-up with a learning rate of 0, so the weights stay those of the start.
const Words kStart = {"--steps", "1", "--batch-size", "4", "--warmup-proportion", "1", "--threads", "1"};

// Pre-trains the model in folder `lifted`, with residual scores, into folder `run`.
void pretrain_lifted(const CommandScene& scene, const std::string& vocabulary) {
  test::write_file(scene.path("text"), "the old market said what was quiet\nthere the tower is stony\n");
  scene.prepare("train", scene.path("text"), vocabulary, "text.h5",
                {"--objective", "mlm_cpc", "--min-document-sentences", "2"});
  const Result trained = scene.try_run(joined(
      {"train", "--task", "pretrain", "--objective", "mlm_cpc", "--data", scene.path("text.h5"), "--vocab", vocabulary,
       "--init-from", scene.path("lifted"), "--output", scene.path("run"), "--use-residual-attention"},
      kStart));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, Contains("cls/predictions/output_bias") &&
                              Contains("fresh: cls/cpc/projection/kernel, cls/cpc/projection/bias") &&
                              Contains("residual scores: running sum, but the checkpoint was trained with: off"));
  const std::string lifted = scene.path("lifted/model.safetensors"), run = scene.path("run/last/model.safetensors");
  CHECK(equal_tensors(run, lifted, "cls/predictions/") == 5);
  CHECK(equal_tensors(run, lifted, "etc_document_bert/") > 40);
}

// Fine-tunes from the pre-trained encoder, with and without residual scores. The records of the task are in a folder
// with its name.
void fine_tune(const CommandScene& scene, const std::string& task, const std::string& vocabulary) {
  const std::string json = scene.path(task + "/train.json"), data = scene.path(task + ".h5");
  scene.run({"prepare", "--task", task, "--split", "train", "--input", fs::exists(json) ? json : json + "l", "--vocab",
             vocabulary, "--output", data});
  for (const std::string scores : {"true", "false"}) {
    CAPTURE(task, scores);
    const std::string tuned = scene.path(task + "_" + scores);
    const Result result =
        scene.try_run(joined({"train", "--task", task, "--data", data, "--vocab", vocabulary, "--init-from",
                              scene.path("run/last"), "--output", tuned, "--use-residual-attention", scores},
                             kStart));
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK_THAT(result.err, Contains("the encoder; this task's head starts fresh"));
    const std::string run = scene.path("run/last/model.safetensors");
    CHECK(equal_tensors(tuned + "/last/model.safetensors", run, "etc_document_bert/") > 40);
    CHECK(read_json_file(tuned + "/last/config.json").at("model").at("use_residual_attention") == (scores == "true"));
  }
}

void write_records(const CommandScene& scene, const std::vector<std::string>& tasks) {
  for (const std::string& task : tasks) {
    scene.run({"sample", "--task", task, "--records", "4", "--output", scene.path(task)});
  }
}

}  // namespace

TEST_CASE("a lifted BERT keeps its head, is pre-trained with scores and fine-tuned on any task with or without",
          "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const CommandScene scene("pretrain");
  const std::vector<std::string> tasks = {"wikihop", "hotpotqa", "nq", "openkp"};
  write_records(scene, tasks);
  // NQ uses the highest unused entries as special pieces, so its vocabulary serves all tasks.
  const std::string pieces = read_file(scene.path("nq/vocab.txt")), vocabulary = scene.path("bert/vocab.txt");
  write_hub(scene.path("bert"), kBert, std::count(pieces.begin(), pieces.end(), '\n'));
  test::write_file(vocabulary, pieces);
  scene.run({"convert", "--from", "bert", scene.path("bert"), "--output", scene.path("lifted")});
  scene.run({"convert", "--from", "bert", scene.path("bert"), "--without-heads", "--output", scene.path("encoder")});
  CHECK(!TensorFileReader(scene.path("encoder/model.safetensors")).has("cls/predictions/output_bias"));
  pretrain_lifted(scene, vocabulary);
  for (const std::string& task : tasks) fine_tune(scene, task, vocabulary);
}

TEST_CASE("a lifted RoBERTa goes the same way with a SentencePiece model of its pieces", "[tasks][pretrain]") {
  if (!program()) return skip("ETC_PROGRAM is not set");
  const CommandScene scene("pretrain");
  write_records(scene, {"wikihop", "openkp"});
  // Letters with and without a preceding blank: RoBERTa writes it as U+0120, SentencePiece as U+2581.
  std::vector<ModelPiece> pieces = {{"<unk>", 0, PieceType::unknown},
                                    {"[CLS]", 0, PieceType::user_defined},
                                    {"[SEP]", 0, PieceType::user_defined},
                                    {"[MASK]", 0, PieceType::user_defined},
                                    {"\u2581", -3}};
  std::vector<std::string> rows = {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "\u0120"};
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const std::string one(1, letter);
    pieces.insert(pieces.end(), {{one, -4}, {"\u2581" + one, -4}});
    rows.insert(rows.begin() + 3, {"\u0120" + one, one});  // in another order
  }
  Json of_row;
  for (std::size_t i = 0; i < rows.size(); ++i) of_row[rows[i]] = i;
  write_hub(scene.path("roberta"), kRoberta, std::ssize(rows));
  test::write_file(scene.path("roberta/vocab.json"), json_line(of_row));
  const std::string vocabulary = scene.path("spiece.model");
  test::write_file(vocabulary, sentencepiece_model(pieces));
  const std::string said = scene.run(
      {"convert", "--from", "roberta", scene.path("roberta"), "--vocab", vocabulary, "--output", scene.path("lifted")});
  CHECK_THAT(said, Contains("57 of 57 pieces found, 0 initialised"));
  pretrain_lifted(scene, vocabulary);
  for (const char* task : {"wikihop", "openkp"}) fine_tune(scene, task, vocabulary);
}
