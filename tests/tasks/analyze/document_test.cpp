// etc analyze --document of raw records of every task, and the page in a real browser.
#include <cstdlib>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/command_walk.h"

namespace {

using Catch::Contains;
using etc::test::GeneratedScene;
using etc::test::joined;
using etc::test::Result;
using etc::test::Words;

// The data embedded in a page are valid JSON.
etc::Json data_of(const std::string& page) {
  const std::string html = etc::read_file(page);
  const std::size_t begin = html.find("const D=") + 8, end = html.find(";\nconst el");
  REQUIRE(end != std::string::npos);
  return etc::Json::parse(html.substr(begin, end - begin));
}

struct TaskRecords {
  std::string task;
  GeneratedScene::Records records;
  Words train = {};
};

// A trained model and the page of one raw record of its task.
struct RawScene : GeneratedScene {
  explicit RawScene(const TaskRecords& of) : GeneratedScene(of.task, of.records) {
    train(joined(joined(etc::test::small_model("2"), of.train), {"--use-residual-attention", "true"}));
  }
  Result page(const std::string& source, const std::string& from, const Words& more = {}) const {
    return try_run(
        joined({"analyze", "--model", best(), source, from, "--overwrite", "--output", path("page.html")}, more));
  }
};

// The page of a raw record has the tokens and the attention of the prepared example.
void compare_pages(const TaskRecords& of, const Words& record, const std::string& example) {
  CAPTURE(of.task);
  const RawScene scene(of);
  const Result raw = scene.page("--input", scene.raw("dev"), record);
  INFO(raw.err);
  REQUIRE(raw.code == 0);
  const etc::Json page = data_of(scene.path("page.html"));
  CHECK_THAT(page.at("title").get<std::string>(), Contains("record " + record[1] + " of"));
  CHECK(page.at("task") == of.task);
  const Result prepared = scene.page("--data", scene.path("dev.h5"), {"--document", example});
  INFO(prepared.err);
  REQUIRE(prepared.code == 0);
  const etc::Json same = data_of(scene.path("page.html"));
  for (const char* part : {"longs", "globals", "layers"}) CHECK(page.at(part) == same.at(part));
}

const Words kSet = {"--data-set", "sst-2"};

TEST_CASE("a page of a raw record has the tokens and the attention of the prepared example", "[analyze]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  compare_pages({"glue", {".tsv", {"--records", "40"}, kSet}, kSet}, {"--document", "1"}, "1");
}

TEST_CASE("raw records of every task have a page, windows and questions by part", "[analyze][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Words first = {"--document", "1"}, second_part = {"--document", "0", "--part", "1"};
  compare_pages({"wikihop", {".json", {"--records", "40"}, {"--splitter", "icu"}}}, first, "1");
  compare_pages({"hotpotqa", {".json", {"--records", "40"}, {}, {"--is-training", "false"}}}, first, "1");
  compare_pages({"openkp", {".jsonl", {"--records", "40"}}}, first, "1");
  compare_pages({"squad",
                 {".json",
                  {"--records", "40"},
                  {"--seq-len", "24", "--stride", "8", "--question-len", "8"},
                  {"--is-training", "false"}}},
                second_part, "1");
  compare_pages({"nq", {".jsonl", {"--records", "40"}, {}, {"--is-train", "false"}}}, {"--document", "0"}, "0");
}

// Generated texts and an ETC trained on them.
struct Texts : etc::test::CommandScene {
  Texts() : CommandScene("pretrain") {
    run({"sample", "--task", "pretrain", "--records", "20", "--output", path("sample")});
    for (const char* split : {"train", "dev"}) {
      prepare(split, path(std::string("sample/") + split + ".txt"), path("sample/vocab.txt"),
              std::string(split) + ".h5", {"--objective", "mlm_cpc", "--max-seq-length", "64"});
    }
    train(path("sample/vocab.txt"), joined(etc::test::small_model("2"), {"--objective", "mlm_cpc"}));
  }
};

TEST_CASE("a document of a plain text has a page; numbers beyond the input are refused", "[analyze][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Texts scene;
  const std::string text = scene.path("two.txt"), page = scene.path("page.html"), model = scene.path("run/best");
  etc::test::write_file(text, "\nThe first.\nIt has two lines.\n\n\nThe second. It has two sentences.\n");
  const auto words = [&](const Words& more) {
    return joined({"analyze", "--model", model, "--input", text, "--output", page, "--overwrite"}, more);
  };
  scene.run(words({"--document", "1"}));
  const etc::Json data = data_of(page);
  CHECK(data.at("longs").at(0) == "[CLS]");
  CHECK(data.at("globals").size() == 2);
  CHECK_THAT(data.at("title").get<std::string>(), Contains("document 1 of"));
  const Result beyond = scene.try_run(words({"--document", "2"}));
  CHECK(beyond.code == 2);
  CHECK_THAT(beyond.err, Contains("expected the number of a document below 2"));
  CHECK_THAT(scene.try_run(words({"--document", "0", "--part", "1"})).err, Contains("a text is one example"));
  CHECK_THAT(scene.try_run(words({"--document", "0", "--layers", "0,7"})).err,
             Contains("expected layers below 2, got 7"));
  CHECK_THAT(scene.try_run(words({"--document", "0", "--layers", "top"})).err, Contains("numbers of layers, got top"));
  const Result both = scene.try_run(words({"--document", "0", "--data", scene.path("dev.h5")}));
  CHECK(both.code == 2);
  CHECK_THAT(both.err, Contains("expected one of the two"));
}

// The DOM of a page after a headless browser has run its scripts; empty if there is no browser.
std::string opened(const std::string& page, const std::string& choice) {
  const std::string output = page + ".dom";
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) return "";
  const std::string command = "chromium --headless --no-sandbox --disable-gpu --dump-dom 'file://" + page + "#" +
                              choice + "' >'" + output + "' 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  return etc::read_file(output);
}

TEST_CASE("a page of 4,096 tokens stays below 5 MB and works in a browser", "[analyze][slow]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const Texts scene;
  const std::string model = scene.path("long"), text = scene.path("long.txt"), page = scene.path("page.html");
  std::string words;
  for (int n = 0; n < 2000; ++n) words += n % 20 == 19 ? "harbour.\n" : "The old ";
  etc::test::write_file(text, words);
  scene.run({"train",
             "--task",
             "pretrain",
             "--objective",
             "mlm_cpc",
             "--data",
             scene.path("train.h5"),
             "--vocab",
             scene.path("sample/vocab.txt"),
             "--output",
             model,
             "--vocab-size",
             "30522",
             "--hidden-size",
             "48",
             "--num-hidden-layers",
             "12",
             "--num-attention-heads",
             "12",
             "--intermediate-size",
             "48",
             "--local-radius",
             "84",
             "--use-residual-attention",
             "true",
             "--steps",
             "1",
             "--batch-size",
             "2"});
  const std::string out =
      scene.run({"analyze", "--model", model, "--input", text, "--document", "0", "--output", page});
  const etc::Json data = data_of(page);
  REQUIRE(data.at("longs").size() > 3600);
  CHECK_THAT(out, Contains("of 12, "));
  CHECK(data.at("top").get<int>() >= 4);
  CHECK(std::filesystem::file_size(page) <= 5'000'000);
  const std::string of_token = opened(page, "layer=11&head=3&token=1000");
  if (of_token.empty()) return etc::test::skip("chromium is not installed");
  CHECK_THAT(of_token, Contains("layer 11, head 3: token 1000 ") && Contains("% on the keys shown") &&
                           Contains("<th>own score</th><th>with carry</th>"));
  CHECK_THAT(opened(page, "layer=99&head=12&token=5000"),
             Contains("layer 11, head 0: token 0 ") && !Contains("undefined"));
  CHECK_THAT(opened(page, "layer=11&head=0&global=2"), Contains("layer 11, head 0: global 2 ") && Contains("g2g: "));
}

}  // namespace
