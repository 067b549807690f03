// Key phrases from n-gram scores: the worked list, the golden decodes and their scores, the prediction file.
#include "tasks/openkp/decode.h"

#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/openkp/metrics.h"
#include "tasks/openkp/prediction_file.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/golden_pages.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Strings = std::vector<std::string>;

Strings texts_of(const std::vector<ScoredPhrase>& phrases) {
  Strings texts;
  for (const ScoredPhrase& phrase : phrases) texts.push_back(phrase.text);
  return texts;
}

constexpr std::int64_t kEverything = 1 << 20;  // counts every entry

// One golden decode: n-gram logits of some rows of a configuration, and what the reference makes of them. The scores in
// it are those of openkp_metrics.json, which the tests of scores compare.
class GoldenDecode {
 public:
  GoldenDecode(const test::GoldenFile& file, const test::GoldenFile& features, const std::string& name)
      : sides_(features.read_strings(file.string_attribute(name, "config") + "/record/text_example_json")),
        rows_(file.read<std::int64_t>(name + "/record_row").values),
        logits_(file.read<float>(name + "/ngram_logits")),
        ties_(file.read<std::int64_t>(name + "/tie_dependent").values),
        result_(Json::parse(file.read_strings(name + "/result_json").at(0))) {
    REQUIRE(result_.at("name") == name);
    REQUIRE(result_.at("rows").size() == rows_.size());
    REQUIRE(std::ssize(rows_) == logits_.shape.at(0));
    // The order of equal logits, which the reference leaves open, decides nothing.
    REQUIRE(ties_ == std::vector<std::int64_t>(rows_.size(), 0));
  }

  void require_equal(const DecodeOptions& options) const {
    const std::int64_t entries = logits_.shape[1] * logits_.shape[2];
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Json& expected = result_.at("rows").at(i);
      const Json side = Json::parse(sides_.at(static_cast<std::size_t>(rows_[i])));
      CAPTURE(expected.at("url").get<std::string>());
      REQUIRE(expected.at("row") == rows_[i]);
      REQUIRE(expected.at("url") == side.at("url"));
      REQUIRE(expected.at("tie_dependent") == 0);
      const std::span<const float> z(logits_.values.data() + static_cast<std::int64_t>(i) * entries,
                                     static_cast<std::size_t>(entries));
      Json phrases = Json::array();
      for (const ScoredPhrase& phrase :
           decode(counted_classes(z, logits_.shape[2], kEverything), side.at("text").get<std::string>(), options)) {
        phrases.push_back(Json::array({phrase.text}));
      }
      REQUIRE(phrases == expected.at("KeyPhrases"));
    }
  }

 private:
  Strings sides_;
  std::vector<std::int64_t> rows_;
  test::GoldenArray<float> logits_;  // [n, K, L]
  std::vector<std::int64_t> ties_;
  Json result_;
};

}  // namespace

TEST_CASE("the best distinct phrases are taken, ranges beyond the text cut", "[tasks][openkp]") {
  ops::register_cpu_ops();
  const std::string text = "Blue Lake Trout Guide Fishing blue lake trout at dawn";
  constexpr std::int64_t kPositions = 24;
  std::vector<float> logits(3 * kPositions, -10);
  const auto set = [&](std::int64_t word, std::int64_t k, float score) {
    logits[static_cast<std::size_t>((k - 1) * kPositions + word)] = score;
  };
  set(0, 3, 5.0f);
  set(5, 3, 4.0f);
  set(4, 1, 3.5f);
  set(20, 2, 3.2f);
  set(9, 2, 3.0f);
  set(7, 1, 2.0f);
  const auto first = [&](std::int64_t counted, std::int64_t phrases) {
    return texts_of(decode(counted_classes(logits, kPositions, counted), text, {100, phrases}));
  };
  CHECK(first(kEverything, 4) == Strings{"blue lake trout", "fishing", "dawn", "trout"});
  // Only phrases inside the ten words count: the range that was cut to "dawn" does not.
  CHECK(first(10, 3) == Strings{"blue lake trout", "fishing", "trout"});
  CHECK(decode(counted_classes(logits, kPositions, kEverything), text, {100, 1})[0].score == 5.0f);
}

TEST_CASE("of equal scores the shorter phrase comes first, then the earlier one", "[tasks][openkp]") {
  ops::register_cpu_ops();
  const std::vector<float> logits = {1, 1, 0, 1, 1, 0};  // k = 1: a b c, k = 2: a b, b c
  CHECK(texts_of(decode(counted_classes(logits, 3, kEverything), "a b c", {3, 5})) == Strings{"a", "b", "a b"});
  CHECK(texts_of(decode(counted_classes(logits, 3, kEverything), "home", {100, 5})) == Strings{"home"});
  CHECK(texts_of(decode(counted_classes(logits, 3, kEverything), "", {100, 5})).empty());
}

TEST_CASE("decodes equal the reference's in every golden case", "[tasks][openkp][golden]") {
  ops::register_cpu_ops();
  const auto files = test::golden_named("openkp_decode", ".h5");
  if (files.empty()) return test::skip("no golden file openkp_decode*.h5");
  for (const auto& path : files) {
    const test::GoldenFile file(path), features(test::openkp_features_beside(path));
    CHECK(file.string_attribute("", "task") == "openkp");
    test::require_groups(file, "", {"head", "loss"});
    const DecodeOptions options{file.int_attribute("", "max_position_predictions"),
                                file.int_attribute("", "max_kp_predictions")};
    for (const std::string& name : file.groups()) {
      if (name == "loss" || name == "head") continue;
      CAPTURE(path.filename().string(), name);
      const GoldenDecode golden(file, features, name);
      golden.require_equal(options);
    }
    file.require_all_read("", {{"loss*", "compared by the test of losses"},
                               {"head*", "compared by the test of the head"},
                               {"*@kind", "describes the logits"}});
  }
}

TEST_CASE("the golden scores belong to the golden decodes", "[tasks][openkp][golden]") {
  for (const auto& path : test::golden_named("openkp_metrics", ".json")) {
    const test::GoldenFile file(path.parent_path() / "openkp_decode.h5");
    std::size_t decodes = 0;
    for (const std::string& name : file.groups()) decodes += file.has(name + "/result_json");
    const Json golden = read_json_file(path);
    CHECK(golden.at("cases").size() == decodes);
    for (const Json& one : golden.at("cases")) {
      const auto name = one.at("name").get<std::string>();
      CAPTURE(name);
      CHECK(Json::parse(file.read_strings(name + "/result_json").at(0)) == one);
    }
  }
}

TEST_CASE("a prediction file holds one page per line and appears whole", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  {
    PredictionFile file(folder / "p.jsonl");
    file.add("http://a", {{"blue \"lake\"", 1}, {"trout", 0.5}});
    file.add("http://b", {});
    CHECK_THROWS_AS(file.add("http://a", {}), Error);
    CHECK(!std::filesystem::exists(folder / "p.jsonl"));
    file.finish();
  }
  CHECK(read_predictions(folder / "p.jsonl") ==
        PhraseMap{{"http://a", {{"blue \"lake\""}, {"trout"}}}, {"http://b", {}}});
}
