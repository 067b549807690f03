// The official scores against the worked examples and the numbers of the official scorer.
#include "tasks/openkp/metrics.h"

#include <fstream>
#include <map>

#include "etc_core/base/error.h"
#include "tasks/openkp/prediction_file.h"
#include "tasks/openkp/prepare.h"
#include "tests/support/catch.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/golden_pages.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Strings = std::vector<std::string>;
using Scores = std::vector<double>;

constexpr double kTolerance = 1e-12;

void check_page(const Strings& candidates, const std::vector<Phrase>& references, const Scores& precision,
                const Scores& recall, const Scores& f1) {
  const Strings wanted = normalised_phrases(references);
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    const Score score = score_at(kDepths[d], candidates, wanted);
    CHECK(score.precision == Approx(precision[d]).margin(1e-6));
    CHECK(score.recall == Approx(recall[d]).margin(1e-6));
    CHECK(score.f1 == Approx(f1[d]).margin(1e-6));
  }
}

void check_metrics(const Json& expected, const Json& ours) {
  for (const auto& [key, value] : expected.items()) {
    INFO(key);
    CHECK(std::abs(value.get<double>() - ours.at(key).get<double>()) <= kTolerance);
  }
}

// A labelled row of a golden case: its scores at each depth, with the phrases of the side output as reference.
void check_row(const Json& row, const Json& side, ScoreSum& sum) {
  Strings candidates, references;
  for (const Json& phrase : row.at("KeyPhrases")) candidates.push_back(phrase.at(0));
  for (const Json& phrase : side.at("KeyPhrases")) references.push_back(phrase.at(0));
  CHECK(row.at("reference").get<Strings>() == references);
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    const Score score = score_at(kDepths[d], candidates, references);
    CHECK(std::abs(score.precision - row.at("P@1,3,5")[d].get<double>()) <= kTolerance);
    CHECK(std::abs(score.recall - row.at("R@1,3,5")[d].get<double>()) <= kTolerance);
    CHECK(std::abs(score.f1 - row.at("F1@1,3,5")[d].get<double>()) <= kTolerance);
  }
  sum.add(candidates, references);
}

void check_reference_scorer(const Json& reference, const ScoreSum& sum, std::int64_t labelled) {
  REQUIRE(reference.size() == 20);
  CHECK(reference.at("n") == labelled);
  const double removed = reference.at("eval_fraction_of_removed_examples");
  const std::map<std::string, std::string> names = {{"P", "precision"}, {"R", "recall"}, {"F1", "f1"}};
  for (const auto& [ours, theirs] : names) {
    for (const std::int64_t depth : kDepths) {
      const std::string key = fmt::format("{}@{}", ours, depth), their_key = fmt::format("{}_at_{}", theirs, depth);
      INFO(key);
      CHECK(std::abs(sum.means().at(key) - reference.at(their_key).get<double>()) <= kTolerance);
      CHECK(std::abs(sum.means(removed).at(key) - reference.at(their_key + "_deflated").get<double>()) <= kTolerance);
    }
  }
}

// The key phrases that the record has in its configuration: after the first pass those it keeps.
std::vector<Phrase> key_phrases(const test::GoldenPages& pages, const data::JsonRecord& record) {
  prepare::FaultList faults;
  return chosen_phrases(read_page(record, pages.config(), faults), pages.config(), faults);
}

}  // namespace

TEST_CASE("scores give the worked numbers", "[tasks][openkp]") {
  check_page({"trout", "fishing", "blue lake", "at dawn", "lake"}, {{"Blue", "Lake"}, {"Trout"}}, {1, 2.0 / 3, .4},
             {.5, 1, 1}, {2.0 / 3, .8, .571429});
  check_page({"nba", "nba 2k17"}, {{"NBA", "2K17"}}, {0, 1.0 / 3, .2}, {0, 1, 1}, {0, .5, 1.0 / 3});
  check_page(normalised_phrases({{"NBA"}, {"nba"}, {"Xbox"}}), {{"Xbox"}, {"xbox"}}, {0, 1.0 / 3, .2}, {0, 1, 1},
             {0, .5, 1.0 / 3});
  check_page(normalised_phrases({{"New ", "York"}}), {{"New", "York"}}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0});
  check_page(normalised_phrases({{"Trout "}}), {{"trout"}, {}, {"", ""}}, {1, 1.0 / 3, .2}, {1, 1, 1},
             {1, .5, 1.0 / 3});
  check_page({}, {{"nba"}}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0});
}

TEST_CASE("phrases are lower-cased, joined and listed once", "[tasks][openkp]") {
  CHECK(normalised_phrases({{"New ", "York"}, {"Trout \u00A0"}, {}, {"", "x"}, {"TROUT"}, {"ΟΔΟΣ"}}) ==
        Strings{"new  york", "trout", "οδος"});
}

TEST_CASE("means count removed pages as 0", "[tasks][openkp]") {
  ScoreSum sum;
  sum.add({"trout", "fishing", "blue lake", "at dawn", "lake"}, {"blue lake", "trout"});
  sum.add({"nba", "nba 2k17"}, {"nba 2k17"});
  sum.add({}, {"nba"});
  CHECK(sum.means().at("F1@1") == Approx(.222222).margin(1e-6));
  CHECK(sum.means().at("F1@3") == Approx(.433333).margin(1e-6));
  CHECK(sum.means().at("F1@5") == Approx(.301587).margin(1e-6));
  CHECK(sum.means(0.25).at("F1@3") == Approx(.325).margin(1e-6));
}

TEST_CASE("pages must be the same on both sides and have a key phrase", "[tasks][openkp]") {
  const auto message = [](const PhraseMap& predictions, const PhraseMap& gold) {
    try {
      evaluate(predictions, gold, "p.jsonl");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const PhraseMap one = {{"u", {{"a"}}}};
  CHECK(evaluate(one, one, "p.jsonl").at("metrics").at("P@1") == 1);
  CHECK(evaluate(one, one, "p.jsonl").at("few_phrases") == 1);
  CHECK(message({}, one) == "p.jsonl: no prediction for these gold pages: u");
  PhraseMap many = one;
  for (char c = 'a'; c < 'm'; ++c) many[std::string("x") + c] = {};
  CHECK(message(many, one) ==
        "p.jsonl: predictions for pages that are not in gold: xa, xb, xc, xd, xe, xf, xg, xh, xi, xj and 2 more");
  CHECK(message({{"v", {}}}, one) ==
        "p.jsonl: no prediction for these gold pages: u; predictions for pages that are not in gold: v");
  CHECK(message(one, {{"u", {{}}}}) == "eval: gold page u: no key phrase to compare with");
  CHECK(message({}, {}) == "eval: the gold files have no page to compare with");
}

TEST_CASE("scores equal the official scorer's on its sample and on real predictions", "[tasks][openkp][golden]") {
  const auto data = test::real_data_folder();
  if (!data || !std::filesystem::exists(*data / "golden" / "openkp_metrics.json")) {
    return test::skip("no official OpenKP metrics");
  }
  const auto folder = *data / "golden";
  for (const Json& one : read_json_file(folder / "openkp_metrics.json")) {
    INFO(json_line(one.at("name")));
    if (one.contains("candidate")) {
      const PhraseMap predictions = read_predictions(folder / one.at("candidate").get<std::string>());
      PhraseMap gold;
      const auto reference = one.at("reference").get<std::string>();
      if (std::filesystem::exists(folder / reference)) {
        gold = read_gold({folder / reference});
      } else {
        // Gold made from the candidates: of line i the phrases of rank r with (i + r) % 3 == 0, and one more where i is
        // odd.
        std::ifstream lines(folder / one.at("candidate").get<std::string>());
        std::string line;
        for (std::size_t i = 0; std::getline(lines, line); ++i) {
          const Json page = Json::parse(line);
          auto& phrases = gold[page.at("url")];
          for (std::size_t r = 0; r < page.at("KeyPhrases").size(); ++r) {
            if ((i + r) % 3 == 0) phrases.push_back(page.at("KeyPhrases")[r]);
          }
          if (i % 2 == 1) phrases.push_back({"unmatched phrase"});
        }
      }
      check_metrics(one.at("metrics"), evaluate(predictions, gold, "p").at("metrics"));
    } else if (one.contains("candidate_phrases")) {
      const auto lower = [&](const char* key) {
        std::vector<Phrase> phrases;
        for (const Json& phrase : one.at(key)) phrases.push_back({phrase});
        return normalised_phrases(phrases);
      };
      for (std::int64_t k = 1; k <= one.at("max_depth").get<std::int64_t>(); ++k) {
        const Score score = score_at(k, lower("candidate_phrases"), lower("reference_phrases"));
        const auto at = static_cast<std::size_t>(k - 1);
        CHECK(std::abs(score.precision - one.at("precision")[at].get<double>()) <= kTolerance);
        CHECK(std::abs(score.recall - one.at("recall")[at].get<double>()) <= kTolerance);
        CHECK(std::abs(score.f1 - one.at("f1")[at].get<double>()) <= kTolerance);
      }
    }
  }
}

TEST_CASE("scores equal the reference's own scorer and the official one on every golden case",
          "[tasks][openkp][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("openkp_metrics", ".json")) {
    const Json golden = read_json_file(path);
    const test::GoldenFile features(test::openkp_features_beside(path)),
        decodes(path.parent_path() / "openkp_decode.h5");
    test::RawPages raw(path.parent_path());
    CHECK(golden.at("task") == "openkp");
    for (const Json& one : golden.at("cases")) {
      INFO(path.filename().string() << ": " << json_line(one.at("name")));
      REQUIRE(one.size() == 4);
      const std::string config = decodes.string_attribute(one.at("name"), "config");
      const test::GoldenPages pages(features, config);
      const auto sides = features.read_strings(config + "/record/text_example_json");
      ScoreSum sum;
      std::int64_t labelled = 0;
      PhraseMap predictions, gold;
      for (const Json& row : one.at("rows")) {
        INFO("row " << json_line(row.at("row")));
        const auto index = row.at("row").get<std::size_t>();
        const Json side = Json::parse(sides.at(index));
        REQUIRE(row.size() == (side.contains("KeyPhrases") ? 8 : 4));
        if (!side.contains("KeyPhrases")) continue;
        ++labelled;
        check_row(row, side, sum);
        predictions[row.at("url")] = row.at("KeyPhrases").get<std::vector<Phrase>>();
        gold[row.at("url")] = key_phrases(pages, raw.record(pages.places().at(index)));
      }
      check_reference_scorer(one.at("reference_scorer"), sum, labelled);
      const Json official = evaluate(predictions, gold, "golden").at("metrics");
      REQUIRE(one.at("official_scorer").size() == 9);
      check_metrics(one.at("official_scorer"), official);
      ++cases;
    }
  }
  if (cases == 0) test::skip("no golden file openkp_metrics*.json");
}

TEST_CASE("a page has few phrases below the greatest depth, five", "[tasks][openkp]") {
  const PhraseMap gold = {{"u", {{"a"}}}};
  const auto few = [&](const std::vector<Phrase>& phrases) {
    return evaluate({{"u", phrases}}, gold, "p").at("few_phrases").get<std::int64_t>();
  };
  CHECK(few({{"a"}, {"b"}, {"c"}, {"d"}}) == 1);
  CHECK(few({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}) == 0);
  CHECK(few({{"a"}, {"b"}, {"c"}, {"d"}, {"D"}}) == 1);  // equal phrases count once
}
