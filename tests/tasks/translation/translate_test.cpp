// etc translate: lines of any text through a small encoder-decoder, whose translations are known from its own search.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "data/text/subword_vocab.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/translation/decode/translate.h"
#include "tasks/translation/translator.h"
#include "tests/core/nn/small_seq2seq.h"
#include "tests/support/folders.h"
#include "tests/tasks/command_scene.h"

namespace etc::translation {
namespace {

using Scene = test::CommandScene;
using Catch::Contains;
using test::Words;

// Words a … i are the ids 4 … 12.
std::string vocabulary() {
  data::SubwordVocab vocab;
  for (char word = 'a'; word <= 'i'; ++word) vocab.pieces.emplace_back(std::string(1, word), 5);
  return data::subword_vocab_text(vocab);
}

void write_folder(const std::string& folder, const test::SmallSeq2Seq& model, const Seq2SeqConfig& config,
                  const std::string& sha256) {
  const Json document = {{"model", config.to_json()},
                         {"data", {{"vocab_sha256", sha256}, {"vocab_file", "vocab.words"}}}};
  save_model(folder, document, model.parameters, {{"vocab.words", vocabulary()}});
}

// A small model in the folder "model" of a scene, with its vocabulary, v.words.
struct SavedModel {
  explicit SavedModel(const Scene& scene) {
    test::write_file(scene.path("v.words"), vocabulary());
    sha256 = data::load_tokenizer(scene.path("v.words"))->vocab_sha256();
    write_folder(scene.path("model"), model, config, sha256);
  }

  Seq2SeqConfig config = test::small_seq2seq();
  test::SmallSeq2Seq model{config};
  std::string sha256;
};

// The words of the best translation, <s> and </s> left out.
std::string best_of(const std::vector<Hypothesis>& found) {
  std::string text;
  if (found.empty()) return text;
  for (const std::int32_t id : found.front().tokens) {
    if (id == 0 || id == 2) continue;
    text += text.empty() ? "" : " ";
    text += id == 3 ? "<unk>" : std::string(1, static_cast<char>('a' + id - 4));
  }
  return text;
}

TEST_CASE("every line is translated as by the model's search, and the number of lines is kept", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  SavedModel saved(scene);
  auto& [config, model, sha256] = saved;

  const std::vector<std::string> lines = {"b c a", "", "   ",           "i zz a\r", "\xff\xfe b",
                                          "d",     "", "h h h h h h h", "c b"};
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  text.pop_back();  // the last line has no end
  std::vector<TranslationSource> sources(lines.size());
  sources[0].ids = {5, 6, 4, 2};
  sources[3].ids = {12, 3, 4, 2};
  sources[5].ids = {7, 2};
  sources[7].ids = {11, 11, 11, 11, 11, 11, 11, 2};
  sources[8].ids = {6, 5, 2};
  TranslateOptions options;
  options.search.beam = 3;
  options.search.length_penalty = 1;
  options.search.max_len_b = 9;
  const auto expected = translate({{model.encoder, model.decoder}}, sources, options);
  std::string best;
  for (const auto& found : expected) best += best_of(found) + "\n";
  REQUIRE(std::count(best.begin(), best.end(), '\n') == 9);
  REQUIRE(best_of(expected[0]) != best_of(expected[7]));  // the source makes a difference

  const Words command = {"translate",        "--model", scene.path("model"), "--beam", "3",
                         "--length-penalty", "1",       "--max-len-b",       "9",      "--input"};
  Words words = command;
  words.insert(words.end(), {"-", "--output", "-", "--window", "2"});
  CHECK(scene.run(words, text) == best);
  CHECK(scene.run(words, "").empty());
  CHECK(scene.run(words, "\n\n") == "\n\n");

  test::write_file(scene.path("in.txt"), text + "\n");
  words = command;
  words.insert(words.end(), {scene.path("in.txt"), "--output", scene.path("out.txt"), "--n-best-output",
                             scene.path("n.jsonl"), "--n-best", "2"});
  scene.run(words);
  CHECK(read_file(scene.path("out.txt")) == best);
  std::istringstream objects(read_file(scene.path("n.jsonl")));
  std::size_t line = 0;
  for (std::string object; std::getline(objects, object); ++line) {
    const Json answers = Json::parse(object);
    CHECK(answers.at("id") == std::to_string(line + 1));
    REQUIRE(answers.at("answers").size() == std::min<std::size_t>(2, expected.at(line).size()));
    for (std::size_t i = 0; i < answers.at("answers").size(); ++i) {
      CHECK(answers.at("answers")[i].at("score").get<double>() == Approx(expected[line][i].score).epsilon(1e-6));
    }
  }
  CHECK(line == lines.size());
}

TEST_CASE("translations begin with the prefixes given, and are made in the number type asked for", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  SavedModel saved(scene);
  auto& [config, model, sha256] = saved;
  const std::string text = "b c a\n\ni a\nd\n";
  std::vector<TranslationSource> sources(4);
  sources[0] = {{5, 6, 4, 2}, {7, 7}};
  sources[2] = {{12, 4, 2}, {}};
  sources[3] = {{7, 2}, {12}};
  TranslateOptions options;
  options.search.max_len_b = 9;
  const auto expected = [&](test::SmallSeq2Seq& of) {
    std::string best;
    for (const auto& found : translate({{of.encoder, of.decoder}}, sources, options)) best += best_of(found) + "\n";
    return best;
  };
  const Words command = {"translate", "--model", scene.path("model"), "--max-len-b",      "9", "--input", "-",
                         "--output",  "-",       "--prefix",          scene.path("p.txt")};
  test::write_file(scene.path("p.txt"), "d d\nb\n\ni\n");
  const std::string forced = expected(model);
  CHECK(forced.starts_with("d d"));
  CHECK(scene.run(command, text) == forced);
  Words words = command;
  words.insert(words.end(), {"--window", "1"});
  CHECK(scene.run(words, text) == forced);
  words.insert(words.end(), {"--compute", "int8"});
  test::SmallSeq2Seq rounded(config);
  rounded.encoder.release_kernels(ComputeType::int8);
  rounded.decoder.release_kernels(ComputeType::int8);
  CHECK(scene.run(words, text) == expected(rounded));
  for (const auto& [prefixes, message] :
       {std::pair("d\n", "expected a line for each of standard input, which has more than 1 lines"),
        {"\n\n\n\n\n", "which has only 4 lines"},
        {"a a a a a a a a a a\n\n\n\n", "line 1: its prefix: expected at most the 9 pieces of a translation, got 10"},
        {"\xff\n\n\n\n", "line 1: its prefix is not UTF-8"}}) {
    test::write_file(scene.path("p.txt"), prefixes);
    const test::Result result = scene.try_run(command, text);
    CHECK(result.code == 1);
    CHECK_THAT(result.err, Contains(message));
  }
}

TEST_CASE("models and lines that cannot be translated are refused by name", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  const SavedModel saved(scene);
  const auto& [config, model, sha256] = saved;
  write_folder(scene.path("other"), model, config, std::string(64, 'a'));
  Seq2SeqConfig large = config;
  large.vocab_size = 14;
  write_folder(scene.path("large"), test::SmallSeq2Seq(large), large, sha256);
  const auto refused = [&](const Words& more, const std::string& input, int code, const char* message) {
    Words words = {"translate", "--input", "-", "--output", scene.path("out.txt")};
    words.insert(words.end(), more.begin(), more.end());
    const test::Result result = scene.try_run(words, input);
    INFO(result.err);
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains(message));
    CHECK_THROWS(read_file(scene.path("out.txt")));
  };
  const std::string folder = scene.path("model");
  refused({"--model", folder, "--positions", "3"}, "a\nb c\na b c\n", 1, "line 3: expected at most 2 pieces, got 3");
  refused({"--model", folder, scene.path("other")}, "a\n", 1, "the models of an ensemble have one vocabulary");
  refused({"--model", scene.path("other")}, "a\n", 1,
          "another vocabulary than that of the data: expected SHA-256 aaaa");
  refused({"--model", scene.path("large")}, "a\n", 1, "expected tables of 13 rows");
  refused({"--model", folder, "--beam", "2", "--n-best", "3", "--n-best-output", "-"}, "a\n", 2, "at most the beam, 2");
  refused({"--model", folder, "--length-penalty", "some"}, "a\n", 2,
          "--length-penalty: expected a number, got \"some\"");
  refused({"--model", folder, "--length-penalty", "-1e308"}, "a\n", 2,
          "--length-penalty: expected a number from -10 to 10");
  refused({"--model", folder, "--length-penalty", "300"}, "a\n", 2,
          "--length-penalty: expected a number from -10 to 10");
  refused({"--model", folder, "--unknown-penalty", "-1e308"}, "a\n", 2,
          "--unknown-penalty: expected a number from -1000 to 1000");
  refused({"--model", folder, "--min-len", "300", "--max-len-b", "5"}, "a\n", 2,
          "--min-len: expected at most 5, as long as --max-len-b lets a translation be, got 300");
  refused({"--model", folder, "--min-len", "9", "--max-len-a", "3", "--positions", "8"}, "a\n", 2,
          "--min-len: expected at most 7, as long as --positions lets a translation be, got 9");
  refused({"--model", folder, "--prefix", "-"}, "a\n", 2, "--prefix: expected a file, as --input reads standard input");
  const Words cut = {"translate", "--model", folder,        "--input", "-",
                     "--output",  "-",       "--positions", "3",       "--truncate-source"};
  CHECK(scene.run(cut, "a b c\n") == scene.run(cut, "a b\n"));
  const test::Result wide =
      scene.try_run({"translate", "--model", folder, "--input", "-", "--output", "-", "--beam", "20"}, "a b\n");
  CHECK(wide.code == 0);
  CHECK_THAT(wide.err, Contains("beam 20 is reduced to 12: the vocabulary has 13 tokens"));
  // Words outside the vocabulary are translated as <unk>, and their share is reported.
  const test::Result lacks =
      scene.try_run({"translate", "--model", folder, "--input", "-", "--output", "-"}, "a zz b qq\na b c a\n");
  CHECK(lacks.code == 0);
  CHECK_THAT(lacks.err, Contains("2 lines, 25.000 % of 8 pieces are not in the vocabulary"));
}

TEST_CASE("nan of a model names the line in whose search it was found", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  const SavedModel saved(scene);
  test::SmallSeq2Seq broken(saved.config);
  // Folders with nan are refused, so the weights are finite and the logits overflow.
  for (const auto& parameter : broken.parameters.all()) {
    if (parameter->name != "seq2seq/decoder/layer_2/feed_forward/LayerNorm/beta") continue;
    std::fill_n(parameter->value.data(), parameter->value.size(), 3e38f);
  }
  write_folder(scene.path("broken"), broken, saved.config, saved.sha256);
  for (const char* window : {"1", "10"}) {
    const test::Result result = scene.try_run(
        {"translate", "--model", scene.path("broken"), "--input", "-", "--output", "-", "--window", window},
        "\nb c a\nd\n");
    CHECK(result.code == 1);
    // Of lines that are read together the shortest is searched first.
    const std::string line = window == std::string("1") ? "line 2" : "line 3";
    CHECK_THAT(result.err, Contains("beam search: " + line + ", step 0: the model's log-probabilities have nan"));
  }
}

TEST_CASE("progress is told while the lines are searched, and of a file with the number of its lines",
          "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  const SavedModel saved(scene);
  TranslatorRequest request;
  request.folders = {scene.path("model")};
  request.options = std::make_shared<Json>(Json{{"batch_tokens", 4}, {"max_len_b", 5}});
  const std::vector<SourceLine> lines{{"a b c", ""}, {"", ""}, {"d", ""}, {"e f", ""}, {"g", ""}};
  std::vector<double> shares;
  std::int64_t taken = 0;
  TranslationSink sink;
  sink.take = [&](const std::vector<LineTranslation>&) { ++taken; };
  sink.searched = [&](double share) {
    CHECK(taken == 0);
    shares.push_back(share);
  };
  translator_kind().open(request)->translate(lines, 1, sink);
  CHECK(taken == 5);
  CHECK(shares == std::vector<double>{4. / 11, 7. / 11, 1});  // lines 3 and 5; 4; 1, each with </s>

  const std::string text = "a b\n\nc";
  test::write_file(scene.path("in.txt"), text);
  const Words command = {"translate", "--model", scene.path("model"), "--output", scene.path("out.txt"), "--input"};
  Words words = command;
  words.emplace_back(scene.path("in.txt"));
  CHECK_THAT(scene.try_run(words).err, Contains("translate 3/3 lines"));
  words.back() = "-";
  CHECK_THAT(scene.try_run(words, text).err, Contains("translate 3 lines"));
}

TEST_CASE("a signal ends the translation of the only window of lines", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  const SavedModel saved(scene);
  std::string text;
  for (int line = 0; line < 300; ++line) text += "a b c\n";
  test::write_file(scene.path("in.txt"), text);
  test::Child child({*test::program(), "translate", "--model", scene.path("model"), "--input", scene.path("in.txt"),
                     "--output", scene.path("out.txt"), "--min-len", "900", "--max-len-b", "900", "--threads", "1"},
                    scene.path("child"));
  child.run_until([&] { return child.catches(SIGTERM); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the lines are read, and their search has begun
  child.send(SIGTERM);
  CHECK(child.wait() == 1);
  CHECK_THAT(read_file(scene.path("child.err")), Contains("etc translate: stopped before the end"));
  CHECK(!std::filesystem::exists(scene.path("out.txt")));
}

TEST_CASE("a model folder of an encoder-decoder says what it holds", "[translation]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Scene scene("translation");
  const Seq2SeqConfig config = test::small_seq2seq();
  const test::SmallSeq2Seq model(config);
  write_folder(scene.path("model"), model, config, std::string(64, 'a'));
  const std::string said = scene.run({"info", scene.path("model")});
  CHECK_THAT(said, Contains("seq2seq") && Contains("num_decoder_layers") && Contains("attention projections") &&
                       Contains("embeddings") && Contains("vocab.words"));
}

}  // namespace
}  // namespace etc::translation
