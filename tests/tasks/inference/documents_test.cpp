// etc ask and etc keyphrases on the user's own documents.
#include "data/text/characters.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/version.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/folders.h"
#include "tests/tasks/inference/small_scene.h"

using namespace etc;
namespace fs = std::filesystem;
using test::SmallScene;
using test::Words;

namespace {

constexpr const char* kDocument =
    "# The harbour\n\nThe *old* harbour was built by caf\xC3\xA9 owners. It is quiet &amp; small.\n\n- one pier\n- two "
    "piers\n\n## The tower\n\nThe tower is famous. Nobody knows why.\n";

// The document's text at a place, with its markup and line ends.
std::string at(const std::string& document, const Json& place) {
  const std::size_t begin = data::byte_of_character(document, place.at("start"));
  return document.substr(begin, data::byte_of_character(document, place.at("end")) - begin);
}

Json asked(const SmallScene& scene, const std::string& document, const Words& more = {}) {
  Words words = {"ask",      "--model",    scene.path("run"),        "--document", "-", "--form",
                 "markdown", "--question", "Who built the harbour?", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return Json::parse(scene.run(words, document));
}

}  // namespace

TEST_CASE("a HotpotQA model is asked about a document, and its answer has places in it", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  // With this threshold every sentence is evidence, so an answer span may lie anywhere.
  const Json answer = asked(scene, kDocument, {"--sf-threshold", "0"});
  CHECK(answer.at("question") == "Who built the harbour?");
  std::vector<std::string> evidence, found;
  for (const Json& place : answer.at("evidence")) {
    evidence.push_back(place.at("text"));
    found.push_back(at(kDocument, place));
  }
  CHECK(evidence == std::vector<std::string>{"The old harbour was built by caf\xC3\xA9 owners.", "It is quiet & small.",
                                             "one pier", "two piers", "The tower is famous.", "Nobody knows why."});
  CHECK(found == std::vector<std::string>{"The *old* harbour was built by caf\xC3\xA9 owners.",
                                          "It is quiet &amp; small.", "one pier", "two piers", "The tower is famous.",
                                          "Nobody knows why."});
  if (answer.at("answer_type") == "span") {
    REQUIRE(answer.at("places").size() == 1);
    CHECK(answer.at("places").at(0).at("text") == answer.at("answer"));
  }
  CHECK(answer.at("tokens").at("cut") == 0);
  CHECK(answer.at("tokens").at("read") > 30);

  // A document that is too long is truncated to the length of the model's training data.
  std::string text = kDocument;
  for (int i = 0; i < 400; ++i)
    text += "\nThe tower number " + std::to_string(i) + " is rather old and not so famous.\n";
  const Json cut = asked(scene, text).at("tokens");
  CHECK(cut.at("cut") > 1000);
  CHECK(cut.at("read") <= 4096);

  const std::string shown =
      scene.run({"ask", "--model", scene.path("run"), "--document", "-", "--question", "Who?"}, "The tower is famous.");
  CHECK_THAT(shown, Catch::Contains("answer  ") && Catch::Contains("tokens read ") && Catch::Contains(", cut 0\n"));
}

TEST_CASE("a Natural Questions model is asked about a page", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("nq", ".jsonl", {"--seq-len", "64", "--stride", "32", "--question-len", "12"});
  const Json answer = asked(scene, kDocument);
  for (const char* key : {"places", "evidence"}) {
    for (const Json& place : answer.at(key)) {
      const auto text = place.at("text").get<std::string>();
      const std::string found = at(kDocument, place);
      CHECK(found.substr(0, 2) == text.substr(0, 2));
      CHECK(found.back() == text.back());
    }
  }
  CHECK(answer.at("tokens").at("cut") >= 4);  // two headings
}

TEST_CASE("a SQuAD model is asked about a document, and says that there is no answer", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("squad", ".json", {"--seq-len", "48", "--stride", "16", "--question-len", "12"});
  const Json answer = asked(scene, kDocument);
  REQUIRE(answer.at("answer_type") == "span");
  const Json& place = answer.at("places").at(0);
  const std::string found = at(kDocument, place);
  CHECK(place.at("text") == answer.at("answer"));
  CHECK(found.substr(0, 2) == answer.at("answer").get<std::string>().substr(0, 2));
  CHECK(answer.at("score") > 0);
  CHECK(answer.at("tokens").at("cut") == 0);
  CHECK(answer.at("tokens").at("read") > 30);

  const Json none = asked(scene, kDocument, {"--version-2", "true", "--null-score-diff-threshold", "-1000"});
  CHECK(none.at("answer").is_null());
  CHECK(none.at("answer_type") == "none");
  CHECK(none.at("places").empty());
  CHECK(none.at("answer_type_scores").at("none") > 0);
}

TEST_CASE("a model keeps a byte-level vocabulary, and answers and encodes with it", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::CommandScene scene("hotpotqa");
  fs::create_directories(scene.path("v"));
  const auto tokenizer = test::small_byte_bpe(scene.path("v"));
  scene.run({"sample", "hotpotqa", "--records", "10", "--output", scene.path("sample")});
  const std::string vocab = scene.path("v/vocab.json"), run = scene.path("run");
  for (const std::string split : {"train", "dev"})
    scene.prepare(split, scene.path("sample/" + split + ".json"), vocab, split + ".h5");
  scene.train(vocab, test::small_model("1"));
  for (const char* name : {"vocab.json", "merges.txt"})
    CHECK(read_file(run + "/best/" + name) == read_file(scene.path("v") + "/" + name));
  CHECK(read_json_file(run + "/best/tokenizer.json").at("model").at("type") == "BPE");
  const TensorFileReader weights(run + "/best/model.safetensors");
  const Json data = read_json_file(run + "/best/config.json").at("data");
  CHECK(weights.metadata().at("vocab_sha256") == tokenizer->vocab_sha256());
  CHECK(weights.metadata().at("data_sha256") == data.at("content_sha256"));
  CHECK(weights.metadata().at("data_sha256").size() == 64);
  CHECK(weights.metadata().at("etc_version") == program_version());

  const Words ask = {"ask", "--model", run, "--document", "-", "--question", "Who?", "--json"};
  const Json answer = Json::parse(scene.run(ask, kDocument));
  CHECK(answer.at("tokens").at("cut") == 0);
  for (const Json& place : answer.at("places")) CHECK(place.at("text") == answer.at("answer"));
  const Json encoded = Json::parse(scene.run(
      {"encode", "--text", "-", "--model", run, "--states", "mean", "--output", "-"}, "\"The inner. The inn.\"\n"));
  std::vector<std::int32_t> ids = tokenizer->encode_ids("The inner.");
  tokenizer->append_word_ids("The inn.", ids);
  CHECK(encoded.at("tokens").at("read") == ids.size());
  fs::remove(run + "/best/merges.txt");
  CHECK_THAT(scene.try_run(ask, kDocument).err, Catch::Contains("a byte-level vocabulary is two files"));
}

TEST_CASE("key phrases of several documents, each with its places", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("openkp", ".jsonl");
  test::write_file(scene.path("a.md"), kDocument);
  test::write_file(scene.path("b.html"), "<p>The <i>tower</i>\n is famous.</p>");
  const std::string out =
      scene.run({"keyphrases", "--model", scene.path("run"), "--json", scene.path("a.md"), scene.path("b.html")});
  const Json first = Json::parse(out.substr(0, out.find('\n'))), second = Json::parse(out.substr(out.find('\n') + 1));
  CHECK(first.at("document") == scene.path("a.md"));
  CHECK(second.at("tokens").at("cut") == 0);
  REQUIRE(!first.at("keyphrases").empty());
  for (const Json& phrase : first.at("keyphrases")) {
    const std::string found = at(kDocument, phrase);
    INFO(found << " | " << phrase.at("text"));
    CHECK(found.back() == phrase.at("text").get<std::string>().back());
  }
  CHECK_THAT(scene.run({"keyphrases", "--model", scene.path("run"), scene.path("b.html")}),
             Catch::Contains("b.html\n  ") && Catch::Contains(" %  [") && Catch::Contains("tokens read "));
}

TEST_CASE("documents, questions and models that do not fit are refused with the reason", "[inference]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const SmallScene scene("hotpotqa", ".json");
  const auto refused = [&](const Words& words, const std::string& document, int code) {
    const test::Result result = scene.try_run(words, document);
    CHECK(result.code == code);
    CHECK(result.out.empty());
    return result.err;
  };
  const auto ask = [&](const std::string& question) {
    return Words{"ask", "--model", scene.path("run"), "--document", "-", "--question", question};
  };
  CHECK_THAT(refused(ask("Who?"), "", 1), Catch::Contains("standard input: the document is empty"));
  CHECK_THAT(refused(ask("Who?"), " \n ", 1), Catch::Contains("white space alone"));
  CHECK_THAT(refused(ask("Who?"), std::string("a\0b", 3), 1), Catch::Contains("binary file"));
  CHECK_THAT(refused(ask("Who?"),
                     std::string("\xFF\xFE"
                                 "a\0b\0",
                                 6),
                     1),
             Catch::Contains("the text is UTF-16"));
  CHECK_THAT(refused(ask("Who?"), "caf\xE9", 1), Catch::Contains("byte 3 is not valid UTF-8"));
  CHECK_THAT(refused(ask("Who?"), "<html><p> </p></html>", 1), Catch::Contains("no text in the document"));
  CHECK_THAT(refused(ask("  "), "Text.", 2), Catch::Contains("expected a question with a word in it"));
  CHECK_THAT(refused({"ask", "--model", scene.path("run"), "--document", "-"}, "Text.", 2),
             Catch::Contains("--question is required"));
  CHECK_THAT(refused({"keyphrases", "--model", scene.path("run"), "-"}, "Text.", 2),
             Catch::Contains("expected a model of openkp, got one of hotpotqa"));
  CHECK_THAT(refused({"predict", "nq", "--model", scene.path("run"), "--data", "d.h5", "--output", "-"}, "", 2),
             Catch::Contains("--task nq: the model is one of hotpotqa"));
  CHECK_THAT(
      refused({"ask", "--model", scene.path("run"), "--document", scene.path("none.txt"), "--question", "Who?"}, "", 1),
      Catch::Contains("none.txt: cannot open"));
}
