// The vocabulary of a converted checkpoint: found beside it, kept with the model, and checked when the model is used.
#include <algorithm>

#include "data/text/sha256.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/tiny_training.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;
using Catch::Contains;
using test::Result;
namespace fs = std::filesystem;

namespace {

std::string lines_of(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece + "\n";
  return text;
}

// 64 pieces, in this order or reversed.
std::string vocabulary(bool reversed = false, int pieces = 64) {
  std::vector<std::string> all = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  while (static_cast<int>(all.size()) < pieces) all.push_back("w" + std::to_string(all.size()));
  if (reversed) std::reverse(all.begin(), all.end());
  return lines_of(all);
}

// A published ETC checkpoint in tf/ and a BERT in bert/, both with 64 rows; train.h5 and reversed.h5 as prepared with
// the vocabulary and with its reverse.
struct VocabularyScene {
  test::TemporaryFolder folder;

  VocabularyScene() {
    fs::create_directories(folder / "tf");
    fs::create_directories(folder / "bert");
    const EtcConfig config = test::tiny_model();
    test::TfCheckpoint checkpoint(config);
    checkpoint.add();
    checkpoint.writer.write(at("tf/model.ckpt"));
    test::write_file(at("tf/etc_config.json"), json_text(config.to_json()));
    convert::BertConfig bert = test::small_bert();
    bert.vocab_size = bert.max_position_embeddings = 64;
    test::HubBert(bert).write(at("bert/model.safetensors"));
    Json bert_json = test::small_bert_json();
    bert_json["vocab_size"] = bert_json["max_position_embeddings"] = 64;
    test::write_file(at("bert/config.json"), json_text(bert_json));
    // Data sets identify their vocabulary by the SHA-256 of its bytes.
    test::write_readable_dataset(folder / "train.h5", 0, 20, vocabulary());
    test::write_readable_dataset(folder / "reversed.h5", 0, 20, vocabulary(true));
  }
  std::string at(const std::string& name) const { return folder / name; }
  Result run(std::vector<std::string> words) const { return test::run_program(words, folder.path()); }
  Result convert(std::vector<std::string> words) const {
    words.insert(words.begin(), "convert");
    words.insert(words.end(), {"--output", at("model"), "--overwrite"});
    const Result result = run(words);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return result;
  }
  Json data_section() const { return read_json_file(at("model/config.json")).value("data", Json()); }
  Result train(const std::string& data) const {
    fs::remove_all(at("run"));
    return run({"train", "--task", "wikihop", "--data", at(data), "--init-from", at("model"), "--output", at("run"),
                "--steps", "1", "--batch-size", "8", "--threads", "1"});
  }
  Result encode(const std::string& data) const {
    return run({"encode", "--model", at("model"), "--data", at(data), "--output", at("states.h5"), "--threads", "1"});
  }

  // The model records its vocabulary: data of another one are refused with both hashes, its own are accepted.
  void check_bound_to(const std::string& bytes, const std::string& name) const {
    CHECK(data_section()["vocab_sha256"] == data::sha256_hex(bytes));
    CHECK(data_section()["vocab_file"] == name);
    CHECK(read_file(at("model/" + name)) == bytes);
    for (const Result& result : {train("reversed.h5"), encode("reversed.h5")}) {
      INFO(result.err);
      CHECK(result.code == 1);
      CHECK_THAT(result.err, Contains(data::sha256_hex(vocabulary())) && Contains(data::sha256_hex(vocabulary(true))));
    }
    CHECK(!fs::exists(at("run/last")));
    CHECK(!fs::exists(at("states.h5")));
    for (const Result& result : {train("train.h5"), encode("train.h5")}) {
      INFO(result.err);
      CHECK(result.code == 0);
      CHECK_THAT(result.err, !Contains("does not say which vocabulary"));
    }
    fs::remove(at("states.h5"));
  }
};

}  // namespace

TEST_CASE("a converted checkpoint keeps the vocabulary beside it and refuses data of its reverse", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyScene scene;
  for (const char* kind : {"tf", "bert"}) test::write_file(scene.at(kind + std::string("/vocab.txt")), vocabulary());
  const std::vector<std::vector<std::string>> ways = {
      {"--from", "tf", scene.at("tf")},
      {"--from", "tf", scene.at("tf/model.ckpt")},
      {"--from", "bert", scene.at("bert")},
      {"--from", "bert", scene.at("bert/model.safetensors"), "--exact"},
  };
  for (const auto& words : ways) {
    CAPTURE(words);
    const Result result = scene.convert(words);
    CHECK_THAT(result.err, Contains("vocab.txt, SHA-256 " + data::sha256_hex(vocabulary())) &&
                               !Contains("vocabulary is not known"));
    scene.check_bound_to(vocabulary(), "vocab.txt");
  }
  // --vocab: the rows are permuted into its order, and it is the vocabulary that is kept.
  scene.convert({"--from", "bert", scene.at("bert"), "--vocab", scene.at("bert/vocab.txt")});
  scene.check_bound_to(vocabulary(), "vocab.txt");
  // A vocabulary in another place, given by --source-vocab.
  test::write_file(scene.at("mine.txt"), vocabulary());
  fs::remove(scene.at("bert/vocab.txt"));
  scene.convert({"--from", "bert", scene.at("bert"), "--source-vocab", scene.at("mine.txt")});
  scene.check_bound_to(vocabulary(), "vocab.txt");
  // Exported and converted back, it is still kept.
  REQUIRE(scene.run({"convert", "--to", "tf-names", scene.at("model"), "--output", scene.at("exported")}).code == 0);
  CHECK(read_file(scene.at("exported/vocab.txt")) == vocabulary());
  // The exported file may be replaced; a file added by the user may not.
  const std::vector<std::string> again = {
      "convert", "--to", "tf-names", scene.at("model"), "--output", scene.at("exported"), "--overwrite"};
  const Result replaced = scene.run(again);
  CAPTURE(replaced.err);
  CHECK(replaced.code == 0);
  test::write_file(scene.at("exported/words.txt"), "mine");
  const Result refused = scene.run(again);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("holds more than a model: words.txt"));
}

TEST_CASE("a SentencePiece model beside a checkpoint is its vocabulary, too", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyScene scene;
  const std::string model = test::small_sentencepiece_model();
  test::write_file(scene.at("tf/spiece.model"), model);
  scene.convert({"--from", "tf", scene.at("tf")});
  CHECK(scene.data_section()["vocab_sha256"] == data::sha256_hex(model));
  CHECK(read_file(scene.at("model/vocab.model")) == model);
  CHECK(scene.train("train.h5").code == 1);
  // Two candidates: an error instead of a guess.
  test::write_file(scene.at("tf/vocab.txt"), vocabulary());
  const Result two = scene.run({"convert", "--from", "tf", scene.at("tf"), "--output", scene.at("other")});
  CHECK(two.code == 2);
  CHECK_THAT(two.err, Contains("are both beside the checkpoint") && Contains("--vocab"));
  CHECK(!fs::exists(scene.at("other")));
  scene.convert({"--from", "tf", scene.at("tf"), "--vocab", scene.at("tf/vocab.txt")});
  scene.check_bound_to(vocabulary(), "vocab.txt");
}

TEST_CASE("RoBERTa's merges are kept with its vocab.json", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyScene scene;
  convert::BertConfig bert = test::small_bert();
  bert.vocab_size = bert.max_position_embeddings = 268;
  Json config = read_json_file(scene.at("bert/config.json"));
  config.update({{"vocab_size", 268}, {"max_position_embeddings", 268}});
  test::write_file(scene.at("bert/config.json"), json_line(config));
  test::HubBert(bert, "roberta.").write(scene.at("bert/model.safetensors"));
  const auto tokenizer = test::small_byte_bpe(scene.at("bert"));
  REQUIRE(tokenizer->vocab_size() == 268);
  scene.convert({"--from", "roberta", scene.at("bert"), "--exact"});
  CHECK(scene.data_section()["vocab_sha256"] == tokenizer->vocab_sha256());
  for (const char* name : {"vocab.json", "merges.txt"})
    CHECK(read_file(scene.at(std::string("model/") + name)) == read_file(scene.at(std::string("bert/") + name)));
}

TEST_CASE("RoBERTa's vocab.json is kept with an exact conversion, and no data fit it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyScene scene;
  convert::BertConfig bert = test::small_bert();
  bert.vocab_size = bert.max_position_embeddings = 64;
  test::HubBert(bert, "roberta.").write(scene.at("bert/model.safetensors"));
  Json rows;
  for (int i = 0; i < 64; ++i) rows["w" + std::to_string(i)] = i;
  test::write_file(scene.at("bert/vocab.json"), json_line(rows));
  const Result result = scene.convert({"--from", "roberta", scene.at("bert"), "--exact"});
  CHECK_THAT(result.err, Contains("without merges.txt beside it no data can be prepared with this vocabulary"));
  CHECK(scene.data_section()["vocab_sha256"] == data::sha256_hex(json_line(rows)));
  CHECK(read_file(scene.at("model/vocab.json")) == json_line(rows));
  CHECK(scene.train("train.h5").code == 1);
  CHECK(scene.encode("train.h5").code == 1);
}

TEST_CASE("a vocabulary of another size is refused with both sizes, and none at all is warned of", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const VocabularyScene scene;
  for (const std::string kind : {"tf", "bert"}) {
    test::write_file(scene.at(kind + "/vocab.txt"), vocabulary(false, 70));
    const Result large = scene.run({"convert", "--from", kind, scene.at(kind), "--output", scene.at("model")});
    INFO(large.err);
    CHECK(large.code == 2);
    CHECK_THAT(large.err,
               Contains("vocab.txt: expected at most 64 pieces, the rows of the checkpoint's token table, got "
                        "70") &&
                   !Contains("damaged"));
    CHECK(!fs::exists(scene.at("model")));
    test::write_file(scene.at(kind + "/vocab.txt"), "a\na\n");  // not a vocabulary: skipped
    CHECK_THAT(scene.convert({"--from", kind, scene.at(kind)}).err,
               Contains("not taken for the checkpoint's vocabulary") && Contains("vocabulary is not known"));
    fs::remove_all(scene.at("model"));
    fs::remove(scene.at(kind + "/vocab.txt"));
    CHECK_THAT(scene.convert({"--from", kind, scene.at(kind)}).err,
               Contains("the checkpoint's vocabulary is not known") && Contains("--vocab"));
    CHECK(scene.data_section().is_null());
    for (const Result& result : {scene.train("reversed.h5"), scene.encode("train.h5")}) {
      INFO(result.err);
      CHECK(result.code == 0);
      CHECK_THAT(result.err, Contains("does not say which vocabulary it has"));
    }
    fs::remove_all(scene.at("model"));
  }
}

TEST_CASE("data with more pieces than the model has rows are no damaged file", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  test::write_readable_dataset(folder / "train.h5", 0, 20);
  const Result result = test::run_program(
      test::joined({"train", "--task", "wikihop", "--data", folder / "train.h5", "--output", folder / "run"},
                   test::tiny_training("1", "8")),
      folder.path());
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK_THAT(result.err, Contains("expected token ids below vocab_size=8 of the model, got ") &&
                             Contains("larger vocabulary than the model") && !Contains("damaged"));
}
