// Windows are merged into documents, a prediction file and the official scores as they arrive.
#include "tasks/nq/predictions.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/nq/prediction_file.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::nq;

namespace {

using Numbers = std::vector<std::int64_t>;

// A window of six positions whose tokens are first_token … first_token + 3; type -1: without labels.
data::LoadedExample window(std::int64_t id, std::int64_t index, std::int64_t first_token, std::int64_t type = 4) {
  data::LoadedExample loaded;
  loaded.features = {{"id", std::to_string(id) + "#" + std::to_string(index)},
                     {"unique_ids", id},
                     {"token_pos", Numbers{-1, first_token, first_token + 1, first_token + 2, first_token + 3, -1}},
                     {"sa_start", std::int64_t{2}},
                     {"sa_end", std::int64_t{2}},
                     {"la_start", std::int64_t{1}},
                     {"la_end", std::int64_t{4}},
                     {"answer_type", type}};
  return loaded;
}

struct Batch {
  std::vector<data::LoadedExample> examples;
  EncoderInput input;
  HeadOutput logits;

  // The logits of every window select its second token as the short answer and its first to last token as the long
  // answer, with `strength` each.
  explicit Batch(std::vector<data::LoadedExample> windows, const std::vector<float>& strengths)
      : examples(std::move(windows)) {
    const auto B = std::ssize(examples);
    Tensor positions = Tensor::empty({B * 6, 4}, Purpose::activations);
    Tensor types = Tensor::empty({B, 5}, Purpose::activations);
    std::fill_n(positions.data(), positions.size(), -1.0f);
    std::fill_n(types.data(), types.size(), 0.0f);
    for (std::int64_t b = 0; b < B; ++b) {
      input.long_offsets.push_back((b + 1) * 6);
      const float strength = strengths[static_cast<std::size_t>(b)];
      float* z = positions.data() + b * 24;
      for (std::int64_t c = 0; c < 4; ++c) z[c] = 1;
      z[2 * 4 + 0] = z[2 * 4 + 1] = z[1 * 4 + 2] = z[4 * 4 + 3] = strength;
      types.data()[b * 5 + 4] = 1;
    }
    logits = {Var(positions), Var(types)};
  }
};

data::Example gold(std::int64_t id, const std::vector<Span>& longs, const std::vector<std::vector<Span>>& shorts,
                   const Numbers& yes_no) {
  Numbers ls, le, counts, ss, se;
  for (const Span& span : longs) {
    ls.push_back(span.start_token);
    le.push_back(span.end_token);
  }
  for (const auto& list : shorts) {
    counts.push_back(std::ssize(list));
    for (const Span& span : list) {
      ss.push_back(span.start_token);
      se.push_back(span.end_token);
    }
  }
  const Numbers no_long_bytes(ls.size(), -1), no_short_bytes(ss.size(), -1);
  return {{"example_id", id},
          {"long_start_token", ls},
          {"long_end_token", le},
          {"long_start_byte", no_long_bytes},
          {"long_end_byte", no_long_bytes},
          {"yes_no", yes_no},
          {"short_count", counts},
          {"short_start_token", ss},
          {"short_end_token", se},
          {"short_start_byte", no_short_bytes},
          {"short_end_byte", no_short_bytes}};
}

std::map<std::string, double> by_name(const Metrics& metrics) {
  return {metrics.begin(), metrics.end()};
}

}  // namespace

TEST_CASE("windows of a document are merged, whatever batches they come in", "[tasks][nq]") {
  ops::register_cpu_ops();
  const test::TemporaryFolder folder;
  const std::vector<data::LoadedExample> windows = {window(5, 0, 10), window(5, 1, 30), window(-7, 0, 50),
                                                    window(8, 0, 70), window(8, 1, 90)};
  const std::vector<float> strengths = {3, 9, 2, 5, 4};
  const auto run = [&](const std::vector<std::size_t>& cuts, const std::string& name) {
    DocumentPredictions predictions({folder / name, {}, 0}, {});
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const auto begin = static_cast<std::ptrdiff_t>(cuts[c]), end = static_cast<std::ptrdiff_t>(cuts[c + 1]);
      const Batch batch({windows.begin() + begin, windows.begin() + end},
                        {strengths.begin() + begin, strengths.begin() + end});
      predictions.add(batch.examples, batch.input, batch.logits);
    }
    CHECK(predictions.metrics().empty());
    CHECK_FALSE(std::filesystem::exists(folder / name));
    predictions.finish();
    return read_file(folder / name);
  };
  const std::string text = run({0, 5}, "one.json");
  CHECK(run({0, 1, 2, 3, 4, 5}, "single.json") == text);
  CHECK(run({0, 1, 4, 5}, "mixed.json") == text);
  const Json file = Json::parse(text);
  REQUIRE(file["predictions"].size() == 3);  // in order of appearance
  CHECK(file["predictions"][0]["example_id"] == 5);
  CHECK(file["predictions"][1]["example_id"] == -7);
  CHECK(file["predictions"][0]["long_answer"]["start_token"] == 30);  // of the stronger window
  CHECK(file["predictions"][2]["long_answer"]["start_token"] == 70);
  CHECK(file["predictions"][0]["long_answer_score"] == 18.0);
  CHECK(read_predictions(folder / "one.json").at(5).short_answers[0].start_token == 31);

  DocumentPredictions none({folder / "none.json", {}, 0}, {});
  none.finish();
  CHECK(read_predictions(folder / "none.json").empty());
}

TEST_CASE("a document whose score is not finite has no answer, and the others keep theirs", "[tasks][nq]") {
  ops::register_cpu_ops();
  const test::TemporaryFolder folder;
  DocumentPredictions predictions({folder / "p.json", {}, 0}, {});
  Batch batch({window(5, 0, 10), window(5, 1, 20), window(6, 0, 30)}, {3, 9, 2});
  batch.logits[0].value().data()[6 * 4] = 0;  // of position 0 in the second window
  predictions.add(batch.examples, batch.input, batch.logits);
  predictions.finish();
  const PredictionMap read = read_predictions(folder / "p.json");
  CHECK(read.at(5).long_answer.null());
  CHECK(read.at(5).long_score == 0);
  CHECK(read.at(6).long_answer.start_token == 30);
}

TEST_CASE("windows of documents that are mixed up are refused", "[tasks][nq]") {
  ops::register_cpu_ops();
  DocumentPredictions predictions({}, {});
  const Batch batch({window(5, 0, 10), window(6, 0, 10), window(5, 1, 10)}, {1, 1, 1});
  CHECK_THROWS_WITH(predictions.add(batch.examples, batch.input, batch.logits),
                    Catch::Contains("example 5#1: other documents stand between"));
}

TEST_CASE("the official scores are those of the prediction file", "[tasks][nq]") {
  ops::register_cpu_ops();
  const Span none{}, long_5{30, 34}, short_5{31, 32}, long_7{50, 53};
  DocumentPredictions predictions({}, {});
  predictions.add_gold(gold(5, {long_5, long_5, none}, {{short_5}, {short_5}, {}}, {0, 0, 0}));
  predictions.add_gold(gold(-7, {long_7, long_7}, {{}, {}}, {1, 1}));
  predictions.add_gold(gold(9, {long_5, long_5}, {{}, {}}, {0, 0}));  // none of its windows was kept
  predictions.add_gold(gold(8, {}, {}, {}));                          // not annotated: not scored
  const Batch batch({window(5, 0, 10), window(5, 1, 30), window(-7, 0, 50), window(8, 0, 70, -1)}, {3, 9, 2, 5});
  predictions.add(batch.examples, batch.input, batch.logits);
  const auto check = [&] {
    const auto metrics = by_name(predictions.metrics());
    CHECK(predictions.metrics()[0].first == "f1");
    CHECK(metrics.at("documents") == 3);
    // Long: 5 right with the best score, -7 wrong, 9 missed. P = 1, R = 1/3 at the first threshold.
    CHECK(metrics.at("long_f1") == Approx(0.5));
    CHECK(metrics.at("long_threshold") == 18);
    // Short: 5 right, -7 has yes as gold and a span as prediction. P = 1, R = 1/2.
    CHECK(metrics.at("short_f1") == Approx(2.0 / 3));
    CHECK(metrics.at("f1") == Approx((0.5 + 2.0 / 3) / 2));
    CHECK(metrics.at("loss") > 0);
  };
  check();  // while the last document is still open
  predictions.finish();
  check();
}

TEST_CASE("damaged gold is refused", "[tasks][nq]") {
  data::Example row = gold(5, {Span{}}, {{Span{3, 4}}}, {0});
  CHECK(gold_of(row).annotations[0].short_answers[0].end_token == 4);
  row["short_count"] = Numbers{2};
  CHECK_THROWS_WITH(gold_of(row), Catch::Contains("document 5, annotation 0"));
  row["short_count"] = Numbers{1};
  row["yes_no"] = Numbers{3};
  CHECK_THROWS_AS(gold_of(row), Error);
}
