// Losses, argmax, accuracy and prediction file, against the reference's numbers and the worked examples.
#include "tasks/wikihop/decode.h"

#include <algorithm>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/wikihop/head.h"
#include "tasks/wikihop/metrics.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

namespace {

using etc::test::GoldenFile;
using etc::wikihop::candidate_losses;

// One example's loss; empty candidates: all positions.
double loss_of(std::vector<float> logits, std::int32_t label, double smoothing,
               std::vector<std::uint8_t> candidates = {}, std::vector<float>* dlogits = nullptr) {
  const std::vector<std::int64_t> offsets = {0, static_cast<std::int64_t>(logits.size())};
  const std::vector<std::uint8_t> all(logits.size(), 1);
  if (candidates.empty()) candidates = all;
  const std::vector<std::int32_t> labels = {label};
  if (dlogits != nullptr) dlogits->resize(logits.size());
  return candidate_losses({offsets, logits.data(), all, candidates, labels, smoothing, 1,
                           dlogits != nullptr ? dlogits->data() : nullptr})[0];
}

// Candidates of every record, keyed by source file and record index, from whichever feature file has them.
std::map<std::string, std::vector<std::string>> golden_candidates() {
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& path : etc::test::golden_files(".h5")) {
    if (path.filename().string().find("wikihop_features") == std::string::npos) continue;
    const GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      if (!file.has(group + "/features/candidates/values")) continue;
      const auto sources = file.read_strings(group + "/file");
      const auto records = file.read<std::int64_t>(group + "/record_index").values;
      const auto candidates = file.read_ragged_strings(group + "/features/candidates");
      for (std::size_t i = 0; i < sources.size(); ++i) {
        all[sources[i] + ":" + std::to_string(records[i])] = candidates[i];
      }
    }
  }
  return all;
}

TEST_CASE("losses, choices and accuracies equal the reference's", "[tasks][golden]") {
  const auto candidate_texts = golden_candidates();
  etc::ops::register_cpu_ops();
  std::int64_t files = 0;
  for (const auto& path : etc::test::golden_files(".h5")) {
    if (path.filename().string().find("wikihop_decode") == std::string::npos) continue;
    ++files;
    INFO(path.filename().string());
    const GoldenFile file(path);
    const auto logits = file.read<float>("logits");         // [n, G]
    const auto masked = file.read<float>("masked_logits");  // [n, G]
    const auto labels = file.read<std::int32_t>("label").values;
    const auto chosen = file.read<std::int32_t>("predicted_index").values;
    const auto answers = file.read_strings("predicted_answer");
    const auto sources = file.read_strings("file");
    const auto records = file.read<std::int64_t>("record_index").values;
    const auto losses = file.read<double>("loss").values;
    const auto smooth_losses = file.read<double>("loss_label_smoothing_0.1").values;
    const std::int64_t n = logits.shape[0], G = logits.shape[1];

    // Every position counts; the candidates are those that the reference left unmasked.
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i <= n; ++i) offsets.push_back(i * G);
    std::vector<std::uint8_t> candidates;
    for (const float z : masked.values) candidates.push_back(z > -9999.0f);
    const std::vector<std::uint8_t> all(candidates.size(), 1);
    const auto plain = candidate_losses({offsets, masked.values.data(), all, candidates, labels, 0, 1, nullptr});
    const auto smooth = candidate_losses({offsets, masked.values.data(), all, candidates, labels, 0.1, 1, nullptr});
    // As in training: raw logits, and only candidates count.
    const auto ours = candidate_losses({offsets, logits.values.data(), candidates, candidates, labels, 0, 1, nullptr});

    etc::wikihop::Accuracy accuracy, without_filler;
    double smooth_sum = 0;
    std::int64_t answers_checked = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      INFO("record " << i);
      const auto k = static_cast<std::size_t>(i);
      CHECK(plain[k] == Approx(losses[k]).epsilon(1e-5));
      CHECK(smooth[k] == Approx(smooth_losses[k]).epsilon(1e-5));
      CHECK(ours[k] == Approx(losses[k]).epsilon(1e-5));
      const auto row = candidates.begin() + offsets[k];
      const auto C = static_cast<std::size_t>(std::count(row, row + G, 1));
      const std::int64_t choice = etc::wikihop::best_candidate({logits.values.data() + offsets[k], C});
      CHECK(choice == chosen[k]);
      const auto texts = candidate_texts.find(sources[k] + ":" + std::to_string(records[k]));
      if (texts != candidate_texts.end()) {
        REQUIRE(texts->second.size() == C);
        CHECK(etc::wikihop::normalised_answer(texts->second[static_cast<std::size_t>(choice)]) == answers[k]);
        ++answers_checked;
      }
      accuracy.add(choice, labels[k], answers[k], choice == labels[k] ? answers[k] : "", plain[k]);
      smooth_sum += smooth[k];
      if (i < n - 2) without_filler.add(choice, labels[k], "", "", plain[k]);
    }
    CHECK(answers_checked > 0);
    const auto count = static_cast<double>(n);
    CHECK(accuracy.metrics()[0].second == Approx(file.real_attribute("", "accuracy")));
    CHECK(accuracy.metrics()[2].second == Approx(file.real_attribute("", "mean_loss")).epsilon(1e-5));
    CHECK(smooth_sum / (count + etc::wikihop::kLossEpsilon) ==
          Approx(file.real_attribute("", "mean_loss_label_smoothing_01")).epsilon(1e-5));
    CHECK(without_filler.metrics()[0].second == Approx(file.real_attribute("", "accuracy_last_two_are_filler")));
    CHECK(without_filler.metrics()[2].second ==
          Approx(file.real_attribute("", "mean_loss_last_two_are_filler")).epsilon(1e-5));
  }
  if (files == 0) etc::test::skip("no golden file wikihop_decode*.h5");
}

TEST_CASE("the loss gives the worked numbers", "[tasks]") {
  etc::ops::register_cpu_ops();
  CHECK(loss_of({2, 1, 0}, 0, 0) == Approx(0.4076060).epsilon(1e-6));
  CHECK(loss_of({2, 1, 0}, 2, 0) == Approx(2.4076060).epsilon(1e-6));
  CHECK(loss_of({2, 1, 0}, 0, 0.1) == Approx(0.5076060).epsilon(1e-6));
  CHECK((loss_of({2, 1, 0}, 0, 0) + loss_of({2, 1, 0}, 2, 0)) / (2 + etc::wikihop::kLossEpsilon) ==
        Approx(1.4075989).epsilon(1e-6));
  CHECK(loss_of({2, 1, 0}, -1, 0) == 0);
  CHECK(loss_of({2, 1, 0, -10000}, 0, 0.1, {1, 1, 1, 0}) == Approx(0.5076060).epsilon(1e-6));
}

TEST_CASE("the loss's gradient equals central differences", "[tasks]") {
  etc::ops::register_cpu_ops();
  const std::vector<float> logits = {0.5f, -1.25f, 2.0f, 0.25f};
  for (const double smoothing : {0.0, 0.2}) {
    std::vector<float> dlogits;
    loss_of(logits, 1, smoothing, {1, 1, 1, 1}, &dlogits);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      std::vector<float> up = logits, down = logits;
      up[i] += 0x1p-7f;
      down[i] -= 0x1p-7f;
      const double slope = (loss_of(up, 1, smoothing) - loss_of(down, 1, smoothing)) / 0x1p-6;
      CHECK(dlogits[i] == Approx(slope).margin(1e-4));
    }
  }
}

TEST_CASE("the lowest index wins a tie", "[tasks]") {
  CHECK(etc::wikihop::best_candidate(std::vector<float>{0.1f, -2.0f, 0.7f}) == 2);
  CHECK(etc::wikihop::best_candidate(std::vector<float>{0.7f, 0.7f, 0.1f}) == 0);
  CHECK(etc::wikihop::best_candidate(std::vector<float>{-3.0f}) == 0);
}

TEST_CASE("index and string accuracy give the worked totals", "[tasks]") {
  etc::wikihop::Accuracy accuracy;
  accuracy.add(2, 2, "norway", "norway", 0);
  accuracy.add(0, 1, "denmark", "new york", 0);
  accuracy.add(2, 0, "oslo", "oslo", 0);        // equal candidates
  accuracy.add(0, 0, "norway", " Norway ", 0);  // stripped and lower-cased
  const etc::Metrics metrics = accuracy.metrics();
  CHECK(metrics[0] == std::pair<std::string, double>("accuracy", 0.5));
  CHECK(metrics[1] == std::pair<std::string, double>("string_accuracy", 0.75));
  CHECK(etc::wikihop::Accuracy().metrics().empty());

  const etc::Json scored = etc::wikihop::score_predictions(
      {{"1", "norway"}, {"2", "denmark"}, {"3", "oslo"}, {"4", "norway"}, {"other", "x"}},
      {{"1", "norway"}, {"2", "new york"}, {"3", "oslo"}, {"4", "Norway"}, {"5", "a"}});
  CHECK(scored.at("metrics").at("string_accuracy") == Approx(0.6));
  CHECK(scored.at("missing") == 1);
  CHECK_THROWS_AS(etc::wikihop::score_predictions({}, {}), etc::Error);
}

TEST_CASE("a prediction file is one JSON object in the order of the examples, and appears whole", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const auto path = folder / "p.json";
  {
    etc::wikihop::PredictionFile file(path);
    file.add("WH_dev_0", "nor\"way");
    file.add("WH_dev_1", "\xc3\xa5land");
    CHECK_THROWS_AS(file.add("WH_dev_0", "x"), etc::Error);
    CHECK(!std::filesystem::exists(path));
    file.finish();
  }
  CHECK(etc::read_file(path) == "{\n\"WH_dev_0\": \"nor\\\"way\",\n\"WH_dev_1\": \"\xc3\xa5land\"\n}\n");
  {
    etc::wikihop::PredictionFile file(folder / "empty.json");
    file.finish();
  }
  CHECK(etc::read_json_file(folder / "empty.json") == etc::Json::object());
  { etc::wikihop::PredictionFile abandoned(folder / "half.json"); }
  CHECK(!std::filesystem::exists(folder / "half.json"));
}

}  // namespace
