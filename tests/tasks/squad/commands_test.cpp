// SQuAD through the program: sample, prepare, train, eval, predict, official score; on a dense encoder and an ETC, in short
// windows and in long ones.
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/command_walk.h"

using namespace etc;
using test::joined;
using test::value_of;
using test::Words;

namespace {

// The first texts of a generated file joined into one, with the question of every n-th text; answer positions are
// characters of the joined text.
Json joined_texts(const Json& file, std::size_t texts, std::size_t n) {
  std::string context;
  Json questions = Json::array(), paragraphs = Json::array();
  for (const Json& article : file.at("data")) {
    for (const Json& paragraph : article.at("paragraphs")) paragraphs.push_back(paragraph);
  }
  for (std::size_t i = 0; i < texts; ++i) {
    const Json& paragraph = paragraphs.at(i);
    Json question = paragraph.at("qas").at(0);
    Json& start = question["answers"][0]["answer_start"];
    start = start.get<std::size_t>() + context.size();  // generated texts are ASCII
    if (i % n == n - 1) questions.push_back(question);
    context += paragraph.at("context").get<std::string>() + " ";
  }
  const Json whole = {{"context", context}, {"qas", questions}};
  return {{"version", "1.1"}, {"data", Json::array({{{"title", "t"}, {"paragraphs", Json::array({whole})}}})}};
}

}  // namespace

TEST_CASE("generated SQuAD questions go through every command, with and without global tokens", "[squad][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Words version_2 = {"--version-2", "true"};
  const test::GeneratedScene scene("squad",
                                   {".json",
                                    {"--records", "40", "--impossible", "3"},
                                    joined({"--seq-len", "24", "--stride", "8", "--question-len", "8"}, version_2),
                                    {"--is-training", "false"}});
  for (const Words& model : {test::small_dense_model(), test::small_model("10")}) {
    scene.train(joined(model, version_2));
    const auto [by_model, by_file] = scene.scores("squad", "p.json");
    for (const char* name : {"exact", "f1", "HasAns_exact", "HasAns_f1", "HasAns_total"}) {
      INFO(name);
      CHECK(value_of(by_model, name) == value_of(by_file, name));
    }
    CHECK(value_of(by_model, "best_exact") >= value_of(by_model, "exact"));

    CHECK_THAT(scene.same_predictions("a.json"),
               Catch::Contains("squad_dev_0: Who ") && Catch::Contains("  answer: ") && Catch::Contains("%"));
    CHECK(read_json_file(scene.path("a.json")).size() == 8);
    scene.run({"predict", "--model", scene.best(), "--input", scene.raw("dev"), "--output", scene.path("b.json"),
               "--n-best-output", scene.path("n.json"), "--null-odds-output", scene.path("q.json")});
    scene.with_best("predict", {"--output", scene.path("t.json"), "--null-odds-output", scene.path("o.json"),
                                "--null-score-diff-threshold", "1e9"});
    CHECK(read_file(scene.path("o.json")) == read_file(scene.path("q.json")));
    const Json listed = read_json_file(scene.path("n.json")), answers = read_json_file(scene.path("b.json"));
    CHECK(listed.size() == answers.size());
    for (const auto& [id, list] : listed.items()) {
      CHECK(answers.contains(id));
      CHECK(std::any_of(list.begin(), list.end(), [](const Json& entry) { return entry.at("text") == ""; }));
    }
    const std::string with_odds = scene.run({"eval", "--task", "squad", "--predictions", scene.path("t.json"), "--gold",
                                             scene.raw("dev"), "--null-odds", scene.path("o.json")});
    CHECK(value_of(with_odds, "best_exact") == value_of(by_model, "best_exact"));
    CHECK(value_of(with_odds, "best_f1_thresh") == Approx(value_of(by_model, "best_f1_thresh")).epsilon(1e-5));
  }
  // The scores count questions without an answer, so a part of the examples would lower them.
  const test::Result refused =
      scene.try_run(joined({"train", "--task", "squad", "--data", scene.path("train.h5"), "--eval-data",
                            scene.path("dev.h5"), "--output", scene.path("part"), "--eval-batches", "1"},
                           test::small_dense_model()));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("training.eval_batches: expected 0 with task squad, whose scores count"));
}

TEST_CASE("an ETC reads 4,096 tokens without windows, and merges the windows of longer texts", "[squad][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("squad", {".json", {"--records", "240"}});
  const Json texts = read_json_file(scene.raw("train"));
  const Words evaluation = {"--is-training", "false"};
  struct Case {
    std::size_t texts, questions;
    const char* examples;
  };
  for (const Case& one : {Case{180, 4, "examples: 4\n"}, Case{240, 2, "examples: 4\n"}}) {
    CAPTURE(one.texts);
    const std::string raw = scene.path("long.json");
    test::write_file(raw, json_text(joined_texts(texts, one.texts, one.texts / one.questions)));
    const auto prepared = [&](const std::string& output, const Words& more) {
      return scene.run(
          joined({"prepare", "--task", "squad", "--split", "train", "--input", raw, "--vocab", scene.vocabulary(),
                  "--output", scene.path(output), "--seq-len", "4096", "--stride", "2048"},
                 more));
    };
    CHECK_THAT(prepared("train.h5", {}), Catch::Contains(one.examples));
    prepared("dev.h5", evaluation);
    scene.train(test::small_model("2"));
    const std::string scores = scene.with_best("eval", {"--output", scene.path("p.json")});
    CHECK(value_of(scores, "questions") == static_cast<double>(one.questions));
    const Json answers = read_json_file(scene.path("p.json"));
    CHECK(answers.size() == one.questions);
    CHECK(scene.run({"eval", "--task", "squad", "--predictions", scene.path("p.json"), "--gold", raw}).find("f1") !=
          std::string::npos);
  }
}

TEST_CASE("null odds are of questions that may have no answer", "[squad][commands]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("squad", {".json", {"--records", "8"}, {}, {"--is-training", "false"}});
  scene.train(test::small_dense_model("1"));
  const test::Result refused = scene.try_run(
      {"predict", "--model", scene.best(), "--data", scene.path("dev.h5"), "--null-odds-output", scene.path("o.json")});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("--null-odds-output: this task's answers have no null odds"));
  const test::Result odds = scene.try_run({"eval", "--task", "nq", "--predictions", scene.raw("dev"), "--gold",
                                           scene.raw("dev"), "--null-odds", scene.vocabulary()});
  CHECK(odds.code == 2);
  CHECK_THAT(odds.err, Catch::Contains("--null-odds: task nq has no null odds"));
}

TEST_CASE("the ready tiny configurations find the answers of held-out texts", "[squad][commands][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::GeneratedScene scene("squad", {".json", {"--records", "16000"}, {}, {"--is-training", "false"}});
  for (const char* name : {"squad_tiny.json", "squad_dense_tiny.json"}) {
    CAPTURE(name);
    scene.train({"--config", (test::source_folder() / "tasks/configs" / name).string()});
    CHECK(scene.evaluated("f1") >= 95);
  }
}
