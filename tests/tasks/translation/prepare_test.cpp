// Parallel texts through the preparation: what is kept, what is dropped and why, what a data set then holds, and damaged
// input.
#include "tasks/translation/prepare.h"

#include <algorithm>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/readers/parallel_lines.h"
#include "data/sample/translation_sample.h"
#include "data/text/subword_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "tasks/prepare/run.h"
#include "tasks/translation/schema.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/stopped_preparation.h"

namespace etc::test {
namespace {

using namespace etc::translation;
using Numbers = std::vector<std::int64_t>;

const std::string kVocab =
    "#version: 0.2\nl o\nlo w</w>\ne r</w>\n#dictionary words=13a case=mixed\nlow 5\nlo@@ 3\nw@@ 3\ner 3\n, 1\n";

struct Scene {
  TemporaryFolder folder;
  Json settings = Json::object();
  std::string vocab = "v.bpe", split = "train";
  bool strict = false;
  prepare::Counts counts;

  Scene() { write("v.bpe", kVocab); }
  // Without fsync, which takes longer than the rest.
  void write(const std::string& name, const std::string& bytes) const { test::write_file(folder / name, bytes); }

  void run(const std::vector<std::string>& sources, const std::vector<std::string>& targets) {
    const prepare::PreparationKind& kind = preparation_kind();
    prepare::RunOptions options;
    for (const auto& name : sources) options.inputs.push_back(folder / name);
    for (const auto& name : targets) options.targets.push_back(folder / name);
    options.output = folder / "out.h5";
    options.report = folder / "report.jsonl";
    options.split = split;
    options.strict = strict;
    options.labelled = split != "test";
    const auto labels = options.labelled ? prepare::Labels::required : prepare::Labels::optional;
    const auto preparation =
        kind.make(with_overrides(kind, kind.settings.defaults(), settings, "test"), folder / vocab, labels);
    counts = prepare::run(*preparation, options);
  }

  // Prepares this pair of texts.
  void run_texts(const std::string& source, const std::string& target) {
    write("s", source);
    write("t", target);
    run({"s"}, {"t"});
  }

  std::vector<data::Example> examples() const {
    const data::DatasetReader reader({folder / "out.h5"}, schema());
    std::vector<data::Example> all;
    for (std::int64_t i = 0; i < reader.size(); ++i) all.push_back(reader.read(i));
    return all;
  }
  data::DatasetInfo info() const { return data::read_dataset_info(folder / "out.h5"); }
};

const Numbers& numbers(const data::Example& example, const char* name) {
  return std::get<Numbers>(example.at(name));
}
const std::string& text(const data::Example& example, const char* name) {
  return std::get<std::string>(example.at(name));
}

TEST_CASE("pairs of lines become ids with </s>, numbered over all files", "[translation]") {
  Scene scene;
  scene.write("a", "low lower\r\nlower\n");
  scene.write("b", "low");
  scene.write("x", "lower, low\nlow");
  scene.write("y.gz", gzip("lower\n"));
  scene.split = "dev";
  scene.run({"a", "b"}, {"x", "y.gz"});
  const auto examples = scene.examples();
  REQUIRE(examples.size() == 3);
  CHECK(numbers(examples[0], "source_ids") == Numbers{4, 5, 6, 7, 2});
  CHECK(numbers(examples[0], "target_ids") == Numbers{5, 6, 7, 8, 4, 2});
  CHECK(text(examples[0], "reference") == "lower, low");
  CHECK(text(examples[2], "id") == "3");
  CHECK(std::get<std::int64_t>(examples[2].at("record_index")) == 0);
  CHECK(numbers(examples[2], "target_ids") == Numbers{5, 6, 7, 2});
  const data::DatasetInfo info = scene.info();
  CHECK(info.labelled);
  CHECK(info.max_long_len == 5);
  CHECK(info.max_global_len == 6);
  CHECK(info.source_files.size() == 4);
  CHECK(info.source_files[3].name == "y.gz");
  CHECK(info.preprocess_config["special_ids"] == Json{{"bos", 0}, {"pad", 1}, {"eos", 2}, {"unk", 3}});
  CHECK(info.preprocess_config["subword"] == "bpe");
}

TEST_CASE("a stopped preparation goes on behind its finished pairs of files, to equal bytes", "[translation]") {
  Scene scene;
  scene.split = "dev";
  scene.write("s0", "low\nl\xff\nlower\n");
  scene.write("t0", "lower\nlow\nqq\n");
  scene.write("s1", "er\n");
  scene.write("t1", "low, er\n");
  const auto run = [&] { scene.run({"s0", "s1"}, {"t0", "t1"}); };
  run();
  const std::string whole = read_file(scene.folder / "out.h5"), report = read_file(scene.folder / "report.jsonl");
  REQUIRE(report.find("reject") != std::string::npos);
  const std::string counts = scene.counts.summary();
  CHECK_THAT(counts, Catch::Contains("ignored unknown_piece"));
  const auto stop = [&] {
    std::filesystem::remove(scene.folder / "out.h5");
    return stopped_parts(scene.folder / "out.h5", scene.folder / "report.jsonl", ".rejects.jsonl", run);
  };
  REQUIRE(stop().size() == 1);
  run();
  CHECK(read_file(scene.folder / "out.h5") == whole);
  CHECK(read_file(scene.folder / "report.jsonl") == report);
  CHECK(scene.counts.summary() == counts);
  CHECK(text(scene.examples().back(), "id") == "4");
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5.parts"));
  // The part that was kept is used; with a changed target it is not.
  const auto said = [&](const std::string& name) {
    log::also_to_file(scene.folder / name);
    run();
    return read_file(scene.folder / name);
  };
  stop();
  CHECK_THAT(said("log"), Catch::Contains("s0 is finished from an earlier run"));
  stop();
  scene.write("t0", "lower\nlow\nlow\n");
  CHECK_THAT(said("other log"), !Catch::Contains("from an earlier run"));
  CHECK(read_file(scene.folder / "report.jsonl") == report);
}

TEST_CASE("training keeps no references; its empty pairs are dropped and counted", "[translation]") {
  Scene scene;
  scene.run_texts("low\n\nlow\n \t\nlow\n", "low\nlow\n\n\nlower\n");
  CHECK(scene.examples().size() == 2);
  CHECK(text(scene.examples()[1], "id") == "5");
  CHECK(text(scene.examples()[1], "reference").empty());
  CHECK(scene.counts.records == 5);
  CHECK(scene.counts.dropped == 3);
  CHECK(scene.counts.codes.at("drop empty_line") == 3);
}

TEST_CASE("a test keeps every line, also without a target", "[translation]") {
  Scene scene;
  scene.split = "test";
  scene.run_texts("low\n\nlow\n", "low\nlow\n\n");
  auto examples = scene.examples();
  REQUIRE(examples.size() == 3);
  CHECK(numbers(examples[1], "source_ids") == Numbers{2});
  CHECK(numbers(examples[2], "target_ids") == Numbers{2});
  CHECK(scene.info().labelled);
  scene.run({"s"}, {});
  examples = scene.examples();
  REQUIRE(examples.size() == 3);
  CHECK(numbers(examples[0], "source_ids") == Numbers{4, 2});
  CHECK(numbers(examples[0], "target_ids").empty());
  CHECK_FALSE(scene.info().labelled);
}

TEST_CASE("long pairs are dropped by words, pieces, ratio and positions, each counted by its reason", "[translation]") {
  Scene scene;
  // Words 1 1, 2 1, 5 5, 1 4; pieces: "lower" has three, "low" one.
  const std::string source = "low\nlow low\nlow low low low low\nlower\n";
  const std::string target = "low\nlow\nlow low low low low\nlow low low low\n";
  const auto left_out = [&](const Json& settings) {
    scene.settings = settings;
    scene.run_texts(source, target);
    std::map<std::string, std::int64_t> drops;
    for (const auto& [code, count] : scene.counts.codes) drops[code] = count;
    return drops;
  };
  using Drops = std::map<std::string, std::int64_t>;
  CHECK(left_out(Json::object()).empty());
  CHECK(left_out({{"max_words", 3}}) == Drops{{"drop too_many_words", 2}});
  CHECK(left_out({{"max_pieces", 2}}) == Drops{{"drop too_many_pieces", 2}});
  CHECK(left_out({{"max_length_ratio", 1.5}}) == Drops{{"drop length_ratio", 1}});
  CHECK(left_out({{"max_positions", 5}}) == Drops{{"drop too_long", 1}});
  CHECK(left_out({{"max_words", 4}, {"max_length_ratio", 1.3}}) ==
        Drops{{"drop too_many_words", 1}, {"drop length_ratio", 2}});
}

TEST_CASE("a test's sentence longer than the positions is rejected, or its source cut where asked", "[translation]") {
  Scene scene;
  scene.split = "test";
  scene.settings = {{"max_positions", 3}};
  scene.run_texts("low low low\nlow\n", "low\nlow\n");
  CHECK(scene.counts.rejected == 1);
  CHECK(read_file(scene.folder / "report.jsonl")
            .find("4 pieces with </s>, at most 3 (max_positions; "
                  "--truncate-source true cuts it)") != std::string::npos);
  scene.settings["truncate_source"] = true;
  scene.run_texts("low low low\nlow\n", "low\nlow\n");
  CHECK(scene.counts.rejected == 0);
  CHECK(scene.counts.codes.at("warn source_truncated") == 1);
  CHECK(numbers(scene.examples()[0], "source_ids") == Numbers{4, 4, 2});
}

TEST_CASE("texts of different lengths are an error with both counts, and leave nothing", "[translation]") {
  Scene scene;
  CHECK_THROWS_WITH(scene.run_texts("a\nb\nc\n", "a\n"),
                    Catch::Contains("source and target have different numbers of lines: 3 and 1"));
  CHECK_THROWS_WITH(scene.run_texts("a\n", "a\nb\nc\nd"), Catch::Contains("different numbers of lines: 1 and 4"));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out.h5"));
}

TEST_CASE("a line that is not UTF-8 is rejected with its side, the others are kept", "[translation]") {
  Scene scene;
  scene.run_texts("low\nl\xff\nlow\n", "low\nlow\nlow\xc3\n");
  CHECK(scene.examples().size() == 1);
  CHECK(scene.counts.rejected == 2);
  const std::string report = read_file(scene.folder / "report.jsonl");
  CHECK(report.find("byte 1 of the line is not UTF-8") != std::string::npos);
  CHECK(report.find("\"field\":\"target\"") != std::string::npos);
  scene.strict = true;
  CHECK_THROWS_WITH(scene.run_texts("l\xff\n", "low\n"),
                    Catch::Contains("record 0: source: utf8_invalid: byte 1 of the line is not UTF-8"));
}

TEST_CASE("damaged gzip data on either side end the pairs there, and the data set says so", "[translation]") {
  std::string lines;
  for (std::uint32_t i = 0; i < 3000; ++i) lines += "low lower " + std::to_string(philox({i, 0, 0, 0}, 1)[0]) + "\n";
  const std::string packed = gzip(lines);
  for (const bool source : {true, false}) {
    Scene scene;
    const std::string cut = packed.substr(0, packed.size() / 2);
    scene.run_texts(source ? cut : packed, source ? packed : cut);
    CHECK(scene.counts.fatal);
    CHECK(scene.counts.codes.at("fatal gzip_truncated") == 1);
    CHECK((scene.counts.examples > 100 && scene.counts.examples < 3000));
    REQUIRE(scene.info().missing.size() == 1);
    CHECK((scene.info().missing[0].reason.find("in the target file") != std::string::npos) == !source);
  }
}

TEST_CASE("the same pairs give the same bytes for any number of threads", "[translation]") {
  data::TranslationSampleOptions options;
  options.records = 600;
  Scene scene;
  data::write_translation_sample(options, scene.folder.path());
  scene.vocab = "vocab.words";
  scene.settings = {{"subword", "word"}};
  std::vector<std::string> bytes;
  for (const int threads : {1, 3, 2}) {
    set_thread_count(threads);
    scene.run({"train.source"}, {"train.target"});
    bytes.push_back(read_file(scene.folder / "out.h5"));
  }
  CHECK(bytes[0] == bytes[1]);
  CHECK(bytes[0] == bytes[2]);
  CHECK(scene.counts.examples == 600);
  CHECK(scene.counts.codes.count("ignored unknown_piece") == 0);
}

TEST_CASE("a vocabulary of another kind or case than the settings say is refused", "[translation]") {
  Scene scene;
  scene.settings = {{"subword", "word"}};
  CHECK_THROWS_WITH(scene.run_texts("a", "a"), Catch::Contains("subword: expected word, but") &&
                                                   Catch::Contains("is a bpe vocabulary (*.bpe, *.words, *.model)"));
  scene.settings = {{"do_lower_case", true}};
  CHECK_THROWS_WITH(scene.run_texts("a", "a"), Catch::Contains("was learned from text as it is"));
  scene.settings = Json::object();
  scene.write("s", "a");
  CHECK_THROWS_WITH(scene.run({"s"}, {}), Catch::Contains("--target is required for split train"));
}

TEST_CASE("a SentencePiece model serves as well, where it can end a sentence", "[translation]") {
  Scene scene;
  scene.vocab = "small.model";
  scene.settings = {{"subword", "sentencepiece"}};
  scene.write("small.model", sentencepiece_model({{"<unk>", 0, PieceType::unknown}, {"\u2581a", -1}, {"b", -2}}));
  CHECK_THROWS_WITH(scene.run_texts("a\n", "a\n"), Catch::Contains("</s>"));
  scene.write("small.model",
              sentencepiece_model(
                  {{"<unk>", 0, PieceType::unknown}, {"</s>", 0, PieceType::control}, {"\u2581a", -1}, {"b", -2}}));
  scene.run_texts("ab a\n", "a\n");
  CHECK(numbers(scene.examples().at(0), "source_ids") == Numbers{2, 3, 2, 1});
  CHECK(scene.info().preprocess_config["special_ids"] == Json{{"bos", -1}, {"pad", -1}, {"eos", 1}, {"unk", 0}});
  const auto tokenizer = data::load_tokenizer(scene.folder / "small.model");
  CHECK(sentence_of(*tokenizer, std::vector<std::int32_t>{2, 3, 2, 1}) == "ab a");
}

TEST_CASE("a SentencePiece model writes its pieces as the library does, in one line", "[translation]") {
  std::vector<test::ModelPiece> pieces = {{"<unk>", 0, PieceType::unknown},
                                          {"</s>", 0, PieceType::control},
                                          {"<ctl>", 0, PieceType::control},
                                          {"\u2581a", -1}};
  const auto first_byte = static_cast<std::int32_t>(pieces.size());
  for (int byte = 0; byte < 256; ++byte) pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, PieceType::byte});
  const std::string uses_bytes("\x12\x03\x98\x02\x01", 5);  // the trainer's setting byte_fallback
  const TemporaryFolder folder;
  test::write_file(folder / "bytes.model", sentencepiece_model(pieces) + uses_bytes);
  const auto tokenizer = data::load_tokenizer(folder / "bytes.model");
  const auto text = [&](const std::vector<std::int32_t>& ids) { return sentence_of(*tokenizer, ids); };
  CHECK(text({3, 0, 3, 1}) == "a \u2047  a");  // unknown text
  CHECK(text({3, first_byte + 0xC3, first_byte + 0xA9, 2, 3, 1}) == "a\u00e9 a");
  CHECK(text({3, first_byte + '\n', 3, 1}) == "a  a");
}

// ---- Vocabularies learned. ----

TEST_CASE("a joint vocabulary is learned from both sides, equal for any number of threads", "[translation]") {
  const TemporaryFolder folder;
  data::TranslationSampleOptions options;
  options.records = 300;
  data::write_translation_sample(options, folder.path());
  const std::vector<std::filesystem::path> inputs = {folder / "train.source", folder / "train.target"};
  const Json settings = prepare_settings().defaults();
  std::vector<std::string> bytes;
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    translation::learn_vocabulary(inputs, settings, 60, folder / "v.bpe");
    bytes.push_back(read_file(folder / "v.bpe"));
  }
  CHECK(bytes[0] == bytes[1]);
  const data::SubwordVocab vocab = data::parse_subword_vocab(bytes[0], "v");
  CHECK(vocab.merges->size() == 60);
  CHECK((vocab.pieces.size() + 4) % 8 == 0);
  const auto tokenizer = data::load_tokenizer(folder / "v.bpe");
  for (const char* name : {"dev.source", "dev.target"}) {
    const std::string lines = read_file(folder / name);
    const std::string line = lines.substr(0, lines.find('\n'));
    const std::vector<std::int32_t> ids = tokenizer->encode_ids(line);
    CHECK(std::count(ids.begin(), ids.end(), 3) == 0);
    CHECK(sentence_of(*tokenizer, ids) == line);  // the sample's words have blanks around them
  }
}

TEST_CASE("learning says what it cannot do", "[translation]") {
  const TemporaryFolder folder;
  test::write_file(folder / "t", "\n \n");
  Json settings = prepare_settings().defaults();
  const auto learn = [&](const char* output) {
    translation::learn_vocabulary({folder / "t"}, settings, 5, folder / output);
  };
  CHECK_THROWS_WITH(learn("v.txt"), Catch::Contains("expected a name that ends in .bpe"));
  CHECK_THROWS_WITH(learn("v.bpe"), Catch::Contains("no word in the texts"));
  settings["subword"] = "word";
  CHECK_THROWS_WITH(learn("v.bpe"), Catch::Contains("expected a name that ends in .words"));
  settings["subword"] = "sentencepiece";
  CHECK_THROWS_WITH(learn("v.model"), Catch::Contains("SentencePiece models are made by its own trainer"));
  const std::string packed = gzip(std::string(100000, 'a') + "\n");
  test::write_file(folder / "t", packed.substr(0, packed.size() / 2));
  settings["subword"] = "word";
  CHECK_THROWS_AS(learn("v.words"), Error);
  CHECK_FALSE(std::filesystem::exists(folder / "v.words"));
}

// ---- Damaged input. ----

// Damaged copies of either side, plain and compressed. Every pair that can be read gives an example or a fault. Some
// mutants go through the whole run, which ends in an Error or in a data set whose counts add up.
class Mutants {
 public:
  Mutants() {
    for (std::uint32_t i = 0; i < 12; ++i) {
      source_ += "low lower, l\u00f6w \"" + std::to_string(i) + "\".\n";
      target_ += (i % 5 == 0 ? "" : "lower l\u4e2dw low") + std::string("\n");
    }
    packed_ = gzip(source_);
    const prepare::PreparationKind& kind = preparation_kind();
    for (const auto labels : {prepare::Labels::required, prepare::Labels::optional}) {
      preparations_.push_back(kind.make(kind.settings.defaults(), scene_.folder / "v.bpe", labels));
    }
  }

  void run(std::uint64_t count) {
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      CAPTURE(seed);
      const bool gz = seed % 4 == 0;
      const std::string source = gz ? mutate(packed_, seed) : seed % 2 == 1 ? mutate(source_, seed) : source_;
      const std::string target = !gz && seed % 2 == 0 ? mutate(target_, seed) : target_;
      seed % 50 == 7 ? run_whole(source, target) : read(source, target, *preparations_[seed / 4 % 2]);
    }
    CHECK(errors_ > 0);
    CHECK(faults_ > 0);
    CHECK(rejected_ > 0);
    CHECK(taken_ > 0);
  }

 private:
  void read(const std::string& source, const std::string& target, const prepare::Preparation& preparation) {
    scene_.write("s", source);
    scene_.write("t", target);
    try {
      data::ByteStream stream(scene_.folder / "s");
      data::ParallelLines lines(stream, scene_.folder / "t");
      for (data::RecordSlice record; lines.next(record);) check(preparation.convert_record(record));
    } catch (const data::InputFault& fault) {
      CHECK(std::string(fault.what()).starts_with("byte "));
      ++faults_;
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Catch::Contains("different numbers of lines"));
      ++errors_;
    }
  }

  void check(const prepare::Converted& converted) {
    const bool kept = !converted.faults.rejected() && !converted.faults.dropped();
    CHECK(converted.examples.size() == (kept ? 1 : 0));
    for (const data::Fault& row : converted.faults.rows()) CHECK((!row.code.empty() && !row.message.empty()));
    rejected_ += converted.faults.rejected() ? 1 : 0;
    for (const data::Example& example : converted.examples) check(example);
  }

  void check(const data::Example& example) {
    ++taken_;
    for (const char* side : {"source_ids", "target_ids"}) {
      CHECK(numbers(example, side).back() == 2);
      for (const std::int64_t id : numbers(example, side)) CHECK((id >= 2 && id < 9));
    }
  }

  void run_whole(const std::string& source, const std::string& target) {
    try {
      scene_.run_texts(source, target);
    } catch (const Error&) {
      ++errors_;
      return;
    }
    const prepare::Counts& counts = scene_.counts;
    CHECK(counts.examples + counts.rejected + counts.dropped == counts.records);
    for (const data::Example& example : scene_.examples()) check(example);
  }

  Scene scene_;
  std::string source_, target_, packed_;
  std::vector<std::unique_ptr<prepare::Preparation>> preparations_;
  std::int64_t errors_ = 0, faults_ = 0, rejected_ = 0, taken_ = 0;
};

TEST_CASE("damaged parallel texts are an error or a sound data set", "[translation]") {
  Mutants().run(200);
}

TEST_CASE("5,000 damaged parallel texts are an error or a sound data set", "[translation][slow]") {
  Mutants().run(5000);
}

}  // namespace
}  // namespace etc::test
