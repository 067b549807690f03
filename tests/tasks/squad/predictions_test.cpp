// A pass over windows, which are merged into questions, written and scored.
#include "tasks/squad/predictions.h"

#include <cmath>

#include "etc_core/base/files.h"
#include "etc_core/nn/backends.h"
#include "tasks/squad/feed.h"
#include "tests/support/catch.h"
#include "tests/support/small_config.h"
#include "tests/tasks/squad/small_questions.h"

using namespace etc;
using namespace etc::squad;

namespace {

// Logits that choose one position for start and end of every window.
HeadOutput choosing(std::int64_t tokens, const std::vector<std::int64_t>& positions) {
  std::vector<float> logits(static_cast<std::size_t>(2 * tokens));
  for (const std::int64_t position : positions) {
    logits[static_cast<std::size_t>(2 * position)] = logits[static_cast<std::size_t>(2 * position + 1)] = 5;
  }
  return {Var(Tensor::from(logits, {tokens, 2}, Purpose::activations))};
}

class AnswerPass {
 public:
  explicit AnswerPass(bool version_2, std::int64_t n_best = 0) {
    register_cpu_backend();
    PredictionRequest request;
    request.output = folder_ / "p.json";
    request.n_best_output = folder_ / "n.json";
    request.n_best = n_best;
    request.null_odds_output = folder_ / "o.json";
    DecodeOptions options;
    options.version_2 = version_2;
    predictions_.emplace(request, options, test::tokenizer_of(test::squad_vocabulary()));
  }

  // Windows of four pieces.
  std::vector<data::LoadedExample> prepare(const Json& question) {
    PrepareConfig config = test::small_squad_config(10, 4);
    config.is_training = false;
    prepare::Converted converted = test::converted_question(question, config);
    predictions_->add_gold(*converted.gold);
    std::vector<data::LoadedExample> windows;
    for (data::Example& example : converted.examples) windows.push_back({0, 0, std::move(example)});
    return windows;
  }

  void add(const std::vector<data::LoadedExample>& windows, const std::vector<std::int64_t>& positions) {
    const EncoderInput input = squad::feed(windows, test::small_config({.vocabulary = 64}), {}, "test");
    predictions_->add(windows, input, choosing(input.long_tokens(), positions));
  }

  QuestionPredictions& predictions() { return *predictions_; }
  Json file(const char* name) const { return read_json_file(folder_ / name); }
  std::string text(const char* name) const { return read_file(folder_ / name); }

 private:
  test::TemporaryFolder folder_;
  std::optional<QuestionPredictions> predictions_;
};

double metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  FAIL("no " << name);
  return 0;
}

}  // namespace

TEST_CASE("windows of a question give one answer, whatever the micro-batches", "[squad]") {
  for (const bool together : {true, false}) {
    const std::int64_t n_best = together ? 0 : 2;
    AnswerPass pass(false, n_best);
    const auto first = pass.prepare(test::small_question("a b c d e q", "e", 8, "x"));
    const auto second = pass.prepare(test::small_question("a b", "b", 2, "y"));
    const auto none = pass.prepare(test::small_question(" ", "b", 0, "z"));
    REQUIRE(first.size() == 2);
    REQUIRE(none.empty());
    if (together) {
      auto all = first;
      all.insert(all.end(), second.begin(), second.end());
      pass.add(all, {10 + 5, 18 + 5});  // e is the second window's first piece, a that of the other question
    } else {
      pass.add({first[0]}, {});
      pass.add({first[1]}, {5});
      CHECK(metric(pass.predictions().metrics(), "questions") == 3);
      pass.add(second, {5});
    }
    const Metrics metrics = pass.predictions().metrics();
    CHECK(metrics.front().first == "f1");
    CHECK(metric(metrics, "exact_match") == Approx(100.0 / 3));
    pass.predictions().finish();
    CHECK(pass.text("p.json") == "{\n\"x\": \"e\",\n\"y\": \"a\",\n\"z\": \"empty\"\n}\n");
    const Json listed = pass.file("n.json");
    CHECK(listed.size() == 3);
    CHECK(listed.at("x").at(0).at("text") == "e");
    CHECK((n_best > 0 ? listed.at("x").size() == 2 : listed.at("x").size() > 2));
    CHECK(listed.at("z") ==
          Json::array({{{"text", "empty"}, {"probability", 1.0}, {"start_logit", 0.0}, {"end_logit", 0.0}}}));
  }
}

TEST_CASE("version 2 answers nothing where CLS is best, and writes its odds", "[squad]") {
  AnswerPass pass(true);
  Json impossible = test::small_question("a b", "b", 2, "i");
  impossible["question"]["answers"] = Json::array();
  impossible["question"]["is_impossible"] = true;
  const auto answered = pass.prepare(test::small_question("a b", "b", 2, "a"));
  const auto unanswered = pass.prepare(impossible);
  const auto none = pass.prepare(test::small_question(" ", "b", 0, "n"));
  pass.add(answered, {6});
  pass.add(unanswered, {0});
  const Metrics metrics = pass.predictions().metrics();
  CHECK(metric(metrics, "exact") == Approx(200.0 / 3));
  CHECK(metric(metrics, "HasAns_total") == 2);
  CHECK(metric(metrics, "NoAns_exact") == 100);
  CHECK(metric(metrics, "best_exact_thresh") == -10);
  pass.predictions().finish();
  CHECK(pass.file("p.json") == Json{{"a", "b"}, {"i", ""}, {"n", ""}});
  // Every list has the answer "", last where it is the worst, and probabilities that add up to 1.
  const Json listed = pass.file("n.json");
  CHECK(listed.size() == 3);
  CHECK(listed.at("i").at(0).at("text") == "");
  CHECK(listed.at("a").back().at("text") == "");
  for (const auto& [id, list] : listed.items()) {
    CAPTURE(id);
    double sum = 0;
    for (const Json& entry : list) sum += entry.at("probability").get<double>();
    CHECK(sum == Approx(1));
  }
  CHECK(pass.file("o.json") == Json{{"a", -10.0}, {"i", 10.0}, {"n", nullptr}});
}

TEST_CASE("unlabelled questions have no metrics", "[squad]") {
  AnswerPass pass(false);
  Json question = test::small_question("a b", "b", 2, "u");
  question["question"].erase("answers");
  pass.add(pass.prepare(question), {5});
  CHECK(pass.predictions().metrics().empty());
}

TEST_CASE("windows of a question that comes back are refused", "[squad]") {
  AnswerPass pass(false);
  const auto a = pass.prepare(test::small_question("a b", "b", 2, "a")),
             b = pass.prepare(test::small_question("a b", "b", 2, "b"));
  pass.add(a, {5});
  pass.add(b, {5});
  CHECK_THROWS_WITH(pass.add(a, {5}), Catch::Contains("example a: other documents stand between"));
}

TEST_CASE("a logit that is no number names its question", "[squad]") {
  AnswerPass pass(false);
  const auto windows = pass.prepare(test::small_question("a b", "b", 2, "a"));
  const EncoderInput input = squad::feed(windows, test::small_config({.vocabulary = 64}), {}, "test");
  HeadOutput logits = choosing(input.long_tokens(), {});
  logits[0].value().data()[3] = NAN;
  CHECK_THROWS_WITH(pass.predictions().add(windows, input, logits), Catch::Contains("example a: a logit is nan"));
}
