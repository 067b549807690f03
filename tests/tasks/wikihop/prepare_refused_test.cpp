// `etc prepare` as a program: what is refused before anything is read, and what options mean.
#include "data/dataset_info.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/wikihop/prepare_scene.h"

using namespace etc;
using namespace etc::test;
namespace fs = std::filesystem;

TEST_CASE("paths that cannot be meant are refused before anything is written", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string input = scene.bytes("in.json");
  check_refused(scene, {"--input", scene.at("none.json")}, 1, {"none.json", "no such file"});
  check_refused(scene, {"--input", scene.at("")}, 1, {"expected a file, got a folder"});
  check_refused(scene, {"--output", scene.at("in.json")}, 2, {"in.json", "expected another file than the input"});
  check_refused(scene, {"--report", scene.at("in.json")}, 2, {"in.json", "expected another file than the input"});
  check_refused(scene, {"--report", scene.at("out.h5")}, 2,
                {"--report", "expected another file than the other output"});
  check_refused(scene, {"--input", scene.at("in.json"), "--input", scene.at("in.json")}, 2, {"given twice"});
  fs::create_symlink(scene.at("in.json"), scene.at("link.json"));
  check_refused(scene, {"--output", scene.at("link.json")}, 2, {"expected another file than the input"});
  check_refused(scene, {"--output", "/proc/none/out.h5"}, 1, {"/proc/none/out.h5"});
  check_refused(scene, {"--output", scene.at("")}, 2, {"--output", "expected a file, got a folder"});
  check_refused(scene, {"--output", "/sys/out.h5"}, 1, {"/sys/out.h5", "cannot create"});  // not writable by any user
  check_refused(scene, {"--report", "/proc/none/report"}, 1, {"/proc/none/report"});
  check_refused(scene, {"--vocab", scene.at("none.txt")}, 1, {"--vocab " + scene.at("none.txt") + ": no such file"});
  check_refused(scene, {"--output", "-"}, 2,
                {"--output -: an HDF5 file cannot go to standard output: expected a file"});
  check_refused(scene, {"--output", "-", "--forecast"}, 2, {"--output -"});
  check_refused(scene, {"--report", "-"}, 2, {"--report -: the summary goes to standard output: expected a file"});
  CHECK(scene.bytes("in.json") == input);
}

TEST_CASE("options and configuration keys that cannot be meant are refused with the likely one", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  check_refused(scene, {"--task", "wikihopp"}, 2,
                {"--task: expected wikihop, ", "got wikihopp (did you mean wikihop?)"});
  check_refused(scene, {"--split", "foo"}, 2, {"--split: expected train, dev or test, got foo"});
  check_refused(scene, {"--split", "tran"}, 2, {"did you mean train?"});
  check_refused(scene, {"--long-seq-length", "5"}, 2, {"--long-seq-length", "--long-seq-len"});
  check_refused(scene, {"--long-seq-len", "0"}, 2, {"long_seq_len", "got 0"});
  check_refused(scene, {"--long-seq-len", "many"}, 2, {"--long-seq-len", "many"});
  check_refused(scene, {"--long-seq-len", "99999999999999999999"}, 2,
                {"--long-seq-len", "an integer", "got 99999999999999999999"});
  check_refused(scene, {"--global-seq-len", "40000"}, 2, {"global_seq_len", "got 40000"});
  check_refused(scene, {"--max-num-sentences", "-1"}, 2, {"max_num_sentences", "got -1"});
  check_refused(scene, {"--parity", "refrence"}, 2, {"parity", "refrence", "reference"});
  check_refused(scene, {"--splitter", "nltk"}, 2, {"nltk"});
  check_refused(scene, {"--splitter", "punkt:" + scene.at("none")}, 1, {"none"});
  check_refused(scene, {"--special-ids", "{\"questoin\": 3}"}, 2, {"questoin", "question"});
  check_refused(scene, {"--special-ids", "{\"question\": 999}"}, 2, {"special_ids: question: ", "got 999"});
  check_refused(scene, {"--special-ids", "[1]"}, 2, {"special_ids"});
  check_refused(scene, {"--max-rejects", "-1"}, 2, {"--max-rejects"});
  check_refused(scene, {"--threads", "0"}, 2, {"--threads"});
  const auto with_config = [&](const std::string& text, int code, const Words& parts) {
    scene.write("config.json", text);
    check_refused(scene, {"--config", scene.at("config.json")}, code, parts);
  };
  with_config("{\"long_seq_length\": 5}", 2, {"config.json", "long_seq_length", "long_seq_len"});
  with_config("{\"seq_len\": 5}", 2,
              {"config.json", "key seq_len belongs to task nq, squad, ", "and this is for task wikihop (expected ",
               "long_seq_len, "});
  with_config("{\"data\": {}}", 2, {"data is a section of a run's configuration (etc train --config)"});
  with_config("{\"long_seq_len\": \"5\"}", 2, {"config.json", "long_seq_len"});
  with_config("{\"do_lower_case\": 1}", 2, {"config.json", "do_lower_case"});
  with_config("[]", 2, {"config.json", "object"});
  with_config("{\"long_seq_len\": ", 1, {"config.json"});
  with_config("{\"splitter\": {\"name\": \"punkt\", \"tables_sha256\": \"00\"}}", 2, {"splitter", "punkt:DIR"});
  with_config("{\"splitter\": {\"name\": 5}}", 2, {"splitter"});
}

TEST_CASE("vocabularies that do not go with the task are refused up front", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  check_refused(scene, {"--do-lower-case", "false"}, 2, {"do_lower_case", "lower-casing"});
  check_refused(scene, {"--tokenizer", "sentencepiece"}, 2, {"tokenizer", "sentencepiece", "wordpiece"});
  check_refused(scene, {"--tokenizer", "bpe"}, 2, {"tokenizer", "bpe"});
  scene.write("words.model", small_vocabulary());
  check_refused(scene, {"--vocab", scene.at("words.model")}, 1, {"words.model"});
  scene.write("pieces.txt", small_sentencepiece_model());
  check_refused(scene, {"--vocab", scene.at("pieces.txt")}, 1, {"pieces.txt"});
  check_refused(scene, {"--vocab", scene.at("in.json")}, 1, {"in.json"});
  scene.write("small.model", small_sentencepiece_model());
  check_refused(scene, {"--vocab", scene.at("small.model"), "--tokenizer", "wordpiece"}, 2,
                {"tokenizer", "sentencepiece"});
  // A cased SentencePiece model, as the large models have, is accepted with either value of the WordPiece setting.
  for (const char* lower : {"true", "false"}) {
    const Result result = scene.prepare({"--vocab", scene.at("small.model"), "--do-lower-case", lower});
    CAPTURE(result.err);
    CHECK(result.code == 0);
    const auto config = data::read_dataset_info(scene.at("out.h5")).preprocess_config;
    CHECK(config.at("tokenizer") == "sentencepiece");
    CHECK(config.at("do_lower_case") == false);
  }
}

TEST_CASE("a configuration file and options give the same settings, options first", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  CHECK(scene.prepare({"--long-seq-len", "9", "--parity", "reference"}).code == 0);
  const std::string by_options = scene.bytes("out.h5");
  const auto stored = data::read_dataset_info(scene.at("out.h5")).preprocess_config;
  CHECK(stored.at("long_seq_len") == 9);
  scene.write("config.json", R"({"long_seq_len": 7, "parity": "reference"})");
  CHECK(scene.prepare({"--config", scene.at("config.json"), "--long-seq-len", "9"}).code == 0);
  CHECK(scene.bytes("out.h5") == by_options);
  scene.write("config.json", json_line(stored));  // the stored settings of a data set are accepted
  CHECK(scene.prepare({"--config", scene.at("config.json")}).code == 0);
  CHECK(scene.bytes("out.h5") == by_options);
  CHECK(scene.bytes("out.h5.rejects.jsonl").empty());
  CHECK(scene.prepare({"--config", scene.at("config.json"), "--list-truncated"}).code == 0);
  CHECK(report_rows(scene.at("out.h5.rejects.jsonl")).size() == 3);
}

TEST_CASE("the published preparation with other sentences than Punkt's is warned of", "[wikihop]") {
  if (without_program()) return;
  const Scene scene;
  const std::string warning = "the published preparation splits sentences with Punkt";
  const auto told = [&](const Words& options) {
    const Result result = scene.prepare(options);
    CAPTURE(result.err);
    CHECK(result.code == 0);
    return result.err.find(warning) != std::string::npos;
  };
  CHECK(told({"--parity", "reference"}));
  CHECK(told({"--parity", "reference", "--splitter", "icu"}));
  // The settings of a data set, of which the warning was given when it was made.
  scene.write("config.json", json_line(data::read_dataset_info(scene.at("out.h5")).preprocess_config));
  CHECK(!told({"--config", scene.at("config.json")}));
  CHECK(!told({}));
  CHECK(!told({"--parity", "reference", "--splitter", "punkt:" + scene.at("tables"), "--learn-splitter"}));
}
