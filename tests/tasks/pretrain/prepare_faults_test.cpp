// Bad input, case by case (pretraining 7).
#include "data/dataset_info.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/forecast.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/pretrain/prepare_scene.h"
#include "tests/tasks/stopped_preparation.h"

namespace etc::test {
namespace {

using Catch::Contains;

// Settings that the preparation must refuse, naming the key.
void check_refused(const Json& settings, const std::string& part) {
  PretrainScene scene;
  scene.settings = settings;
  scene.write("in.txt", "a\nb\n");
  CAPTURE(settings.dump());
  CHECK_THROWS_AS(scene.run(), UsageError);
  CHECK_THROWS_WITH(scene.run(), Contains(part));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5"));
}

}  // namespace

TEST_CASE("a text without a word is an error that names the files", "[pretrain]") {
  PretrainScene scene;
  scene.write("a.txt", "");
  scene.write("b.txt", "\n \n\t\n\x01\n");
  CHECK_THROWS_WITH(scene.run({"a.txt", "b.txt"}),
                    Contains("a.txt") && Contains("b.txt") && Contains("no document with a word"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.rejects.jsonl"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.parts"));
}

TEST_CASE("where every record is rejected the report is written and the error says how many, where and why",
          "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"text_key", "text"}};
  scene.write("in.jsonl", "{\"txt\": \"a\"}\n{\"text\": 5}\nno JSON\n");
  CHECK_THROWS_WITH(
      scene.run({"in.jsonl"}),
      Contains("no document with a word: expected text, got 3 rejected records; the first: in.jsonl, line "
               "1: text: missing_field: ") &&
          Contains("(all of them: " + (scene.folder / "out.h5.rejects.jsonl").string() + ")"));
  CHECK(scene.report().size() == 3);
  CHECK(scene.report()[1].code == "wrong_type");
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.parts"));
  // The same with a document that is too short.
  scene.settings["min_document_sentences"] = 3;
  scene.write("in.jsonl", "{\"text\": \"a\"}\n{}\n");
  CHECK_THROWS_WITH(scene.run({"in.jsonl"}), Contains("got 1 shorter ones (--min-document-sentences) and 1 rejected "
                                                      "record; the first: in.jsonl, line 2: "));
  CHECK(scene.report().size() == 1);
}

TEST_CASE("an error of a forecast names the files that were given, not the copies it reads", "[pretrain]") {
  PretrainScene scene;
  scene.write("in.txt", "");
  scene.write("in.jsonl", "{}\n");
  prepare::RunOptions options;
  options.split = "train";
  options.inputs = {scene.folder / "in.txt"};
  const std::string name = (scene.folder / "in.txt").string();
  CHECK_THROWS_WITH(prepare::forecast(*scene.make(), options),
                    "etc prepare: " + name + ": no document with a word: expected text");
  scene.settings = {{"text_key", "text"}};
  options.inputs = {scene.folder / "in.txt", scene.folder / "in.jsonl"};
  CHECK_THROWS_WITH(prepare::forecast(*scene.make(), options),
                    Contains(name + ", " + (scene.folder / "in.jsonl").string() + ": no document") &&
                        Contains("the first: in.jsonl, line 1: text: ") && Contains("(all of them: the report") &&
                        !Contains("etc_prepare_forecast"));
}

TEST_CASE("a damaged part of an earlier run is cut into pieces again, to equal bytes", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"dupe_factor", 2}};
  scene.write("a.txt", "a b c\nd \xff e f\n\ng h i\nj k l\n");
  scene.write("b.txt", "\nm n o\np q r\n");
  const auto run = [&] { scene.run({"a.txt", "b.txt"}); };
  run();
  const std::string whole = scene.bytes("out.h5"), report = scene.bytes("out.h5.rejects.jsonl");
  for (const std::string ending : {".pieces", ".sentences", ".begins", ".rejects.jsonl"}) {
    CAPTURE(ending);
    std::filesystem::remove(scene.folder / "out.h5");
    const auto parts = stopped_parts(scene.folder / "out.h5", scene.folder / "out.h5.rejects.jsonl", ending, run);
    REQUIRE(parts.size() == 2);
    for (const auto& part : parts) {
      std::string bytes = read_file(part);
      bytes.empty() ? bytes = "x" : bytes.replace(bytes.size() / 2, 1, "\x7f");
      test::write_file(part, bytes);
    }
    scene.write("log", "");
    log::also_to_file(scene.folder / "log");
    run();
    CHECK(scene.bytes("out.h5") == whole);
    CHECK(scene.bytes("out.h5.rejects.jsonl") == report);
    CHECK_THAT(scene.bytes("log"),
               Contains("its input is prepared again") && !Contains("is cut into pieces from an earlier run"));
  }
}

TEST_CASE("bytes that are no UTF-8 are left out, counted and told once for each file", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"dupe_factor", 1}};
  const auto examples = scene.prepared(
      "a\xff"
      "b \xc3\n\xe2\x82 c\n\nd\xf0\n");
  CHECK(scene.counts.codes.at("ignored invalid_byte") == 5);
  REQUIRE(scene.report().size() == 1);
  CHECK(scene.report()[0].code == "utf8_invalid");
  CHECK(scene.report()[0].severity == data::Severity::warn);
  CHECK(examples == scene.prepared("ab\nc\n\nd\n"));
  CHECK(scene.report().empty());
}

TEST_CASE("a document of one sentence serves pairs and is left out with a count for contrastive coding", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"dupe_factor", 4}};
  const std::string text = "a b c\n\nd e f\n";
  for (const data::Example& example : scene.prepared(text)) CHECK(number_of(example, "next_sentence_label") == 1);
  CHECK(scene.counts.examples == 8);
  CHECK(scene.counts.dropped == 0);
  scene.settings = {{"objective", "mlm_cpc"}};
  CHECK_THROWS_WITH(scene.prepared(text), Contains("at least 7 sentences, got 2 shorter ones"));
  scene.prepared(text + "\n" + "a\nb\nc\nd\ne\nf\ng\n");
  CHECK(scene.counts.dropped == 2);
  CHECK(scene.counts.records == 3);
  // A kept document of one sentence has no other sentence to distinguish a hidden one from.
  scene.settings["min_document_sentences"] = 1;
  scene.prepared(text + "\n" + "a\nb\n");
  CHECK(scene.counts.codes.at("drop chunk_short") == 2 * 10);
}

TEST_CASE("a single document is prepared with a warning, its random next comes from itself", "[pretrain]") {
  PretrainScene scene;
  log::also_to_file(scene.folder / "log");
  scene.settings = {{"max_seq_length", 16}};
  const auto examples = scene.prepared("a b c\nd e f\ng h i\nj k l\nm n o\n");
  std::int64_t random = 0;
  for (const data::Example& example : examples) random += number_of(example, "next_sentence_label");
  CHECK(random > 0);
  CHECK(scene.counts.records == 1);
  CHECK_THAT(scene.bytes("log"), Contains("the text is a single document, random next sentences come from that"));
  scene.write("other log", "");
  log::also_to_file(scene.folder / "other log");
  scene.settings["objective"] = "mlm";  // has no next sentences
  scene.prepared("a b c\nd e f\n");
  CHECK_THAT(scene.bytes("other log"), !Contains("single document"));
}

TEST_CASE("settings at the ends of their ranges give examples that hold", "[pretrain]") {
  const std::string text = "a b c d e f\ng h i\nj\nk l m n\n\no p q\nr s\n\nt u v w x y z a b c d e f g\n";
  const auto examples_with = [&](Json settings) {
    CAPTURE(settings.dump());
    PretrainScene scene;
    scene.settings = std::move(settings);
    scene.settings.update({{"min_document_sentences", 1}, {"dupe_factor", 4}});
    const std::int64_t most = scene.settings.value("max_seq_length", 512);
    const auto examples = scene.prepared(text);
    CHECK(!examples.empty());
    for (const data::Example& example : examples) check_example(example, most, 8 + 2 * 26, {4, 5, 6});
    return examples;
  };
  const auto lengths = [](const std::vector<data::Example>& examples) {
    std::vector<std::int64_t> all;
    for (const data::Example& example : examples) all.push_back(std::ssize(numbers_of(example, "long_token_ids")));
    return all;
  };
  // Without short instances, a chunk that does not end its document has the full length; with only short instances,
  // many are shorter.
  const auto full = lengths(examples_with({{"max_seq_length", 8}, {"short_seq_prob", 0.0}}));
  const auto brief = lengths(examples_with({{"max_seq_length", 8}, {"short_seq_prob", 1.0}}));
  CHECK(std::count(full.begin(), full.end(), 8) * std::ssize(brief) >
        std::count(brief.begin(), brief.end(), 8) * std::ssize(full));
  for (const std::string objective : {"mlm_nsp", "mlm", "mlm_cpc"}) {
    for (const std::int64_t length : lengths(examples_with({{"objective", objective}, {"max_seq_length", 5}}))) {
      CHECK(length <= 5);
    }
  }
  for (const data::Example& example : examples_with({{"max_seq_length", 12}, {"masked_lm_prob", 1.0}})) {
    CHECK(numbers_of(example, "masked_positions").size() == numbers_of(example, "long_token_ids").size() - 3);
  }
  for (const data::Example& example : examples_with({{"max_predictions_per_seq", 1}, {"masked_lm_prob", 1.0}})) {
    CHECK(numbers_of(example, "masked_positions").size() == 1);
  }
  // At least one sentence stays visible.
  for (const data::Example& example : examples_with({{"objective", "mlm_cpc"}, {"cpc_sentence_prob", 1.0}})) {
    CHECK(numbers_of(example, "cpc_sentences").size() == numbers_of(example, "sentence_lengths").size() - 1);
  }
}

TEST_CASE("settings that cannot be meant are refused with their key", "[pretrain]") {
  check_refused({{"max_seq_length", 4}}, "max_seq_length: expected an integer from 5");
  check_refused({{"max_predictions_per_seq", 0}}, "max_predictions_per_seq");
  check_refused({{"masked_lm_prob", 0.0}}, "masked_lm_prob");
  check_refused({{"masked_lm_prob", 1.01}}, "masked_lm_prob");
  check_refused({{"short_seq_prob", -0.1}}, "short_seq_prob");
  check_refused({{"short_seq_prob", 1.5}}, "short_seq_prob");
  check_refused({{"cpc_sentence_prob", 2.0}}, "cpc_sentence_prob");
  check_refused({{"cpc_sentence_prob", 0.0}}, "cpc_sentence_prob");
  check_refused({{"dupe_factor", 0}}, "dupe_factor");
  check_refused({{"objective", "nsp"}}, "objective: expected mlm_nsp, mlm or mlm_cpc");
  check_refused({{"whole_word_mask", "yes"}}, "whole_word_mask: expected true, false or null");
  check_refused({{"lines", "paragraphs"}, {"splitter", "words"}}, "expected \"icu\" or \"punkt:DIR\"");
  check_refused({{"sentences", 3}}, "unknown key sentences");
}

TEST_CASE("a vocabulary without a special piece is an error that names it", "[pretrain]") {
  for (const std::string piece : {"[CLS]", "[SEP]", "[MASK]"}) {
    PretrainScene scene;
    std::string lines = letter_vocabulary();
    lines.replace(lines.find(piece), piece.size(), "[GONE]");
    scene.write("vocab.txt", lines);
    scene.write("in.txt", "a\n");
    CHECK_THROWS_WITH(scene.run(), Contains("vocab.txt: the vocabulary has no piece \"" + piece + "\""));
  }
}

TEST_CASE("a sentence longer than an instance is cut, counted, and no piece is lost", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm_cpc"},
                    {"max_seq_length", 11},
                    {"min_document_sentences", 0},
                    {"max_sentence_tokens", 100},
                    {"dupe_factor", 1}};
  std::string sentence;
  for (int i = 0; i < 25; ++i) sentence += "a ";
  const auto examples = scene.prepared(sentence + "\nb\n");
  CHECK(scene.counts.codes.at("warn sentence_cut") == 1);
  REQUIRE(examples.size() == 1);  // 10, 10, and 5 with the next sentence; runs of one sentence are dropped
  CHECK(numbers_of(examples[0], "sentence_lengths") == Numbers{5, 1});
  CHECK(scene.counts.codes.at("drop chunk_short") == 2);
}

TEST_CASE("bad lines of JSON are reported with their places and cost themselves alone", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"text_key", "text"}, {"dupe_factor", 1}};
  scene.prepared("{\"text\": \"a\"}\n{\"text\": 5}\n[]\n{\"txt\": \"b\"}\n{\"text\": \"c\"\n{\"text\": \"d\"}\n");
  CHECK(scene.counts.examples == 2);
  CHECK(scene.counts.rejected == 4);
  CHECK(scene.counts.records == 6);
  std::vector<std::string> codes;
  for (const data::Fault& fault : scene.report()) {
    codes.push_back(fmt::format("{} {} {}", fault.record_index, fault.code, fault.field));
  }
  CHECK(codes == std::vector<std::string>{"1 wrong_type text", "2 record_not_object ", "3 missing_field text",
                                          "4 json_syntax "});
  const data::DatasetReader reader({scene.folder / "out.h5"}, pretrain::schema());
  CHECK(reader.faults().size() == 4);
}

TEST_CASE("a damaged packed file is prepared up to the fault and says that it is incomplete", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"objective", "mlm"}, {"dupe_factor", 1}};
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::string(1, static_cast<char>('a' + i * 7919 % 26)) + " b\n";
  const std::string packed = gzip(text);
  const auto examples = scene.prepared(packed.substr(0, packed.size() / 2));
  CHECK(scene.counts.fatal);
  CHECK(!examples.empty());
  const data::DatasetReader reader({scene.folder / "out.h5"}, pretrain::schema());
  REQUIRE(reader.info().missing.size() == 1);
  CHECK_THAT(reader.info().missing[0].reason, Contains("byte "));
  CHECK(scene.report().back().code == "gzip_truncated");
}

TEST_CASE("a strict run ends at the first bad line and writes nothing", "[pretrain]") {
  PretrainScene scene;
  scene.settings = {{"text_key", "text"}};
  scene.write("in.txt", "{\"text\": \"a\"}\n{}\n");
  prepare::RunOptions options;
  options.inputs = {scene.folder / "in.txt"};
  options.output = scene.folder / "out.h5";
  options.report = scene.folder / "report.jsonl";
  options.split = "train";
  options.strict = true;
  CHECK_THROWS_WITH(prepare::run(*scene.make(), options), Contains("in.txt: record 1: text: missing_field"));
  CHECK_FALSE(std::filesystem::exists(options.output));
  // The same if an earlier run has already cut the text with this line into pieces.
  options.strict = false;
  const auto run = [&] { prepare::run(*scene.make(), options); };
  REQUIRE(stopped_parts(options.output, options.report, ".pieces", run).size() == 1);
  options.strict = true;
  CHECK_THROWS_WITH(run(), Contains("in.txt, line 2: text: missing_field: ") && Contains("(without --strict it is"));
  CHECK_FALSE(std::filesystem::exists(options.output));
}

}  // namespace etc::test
