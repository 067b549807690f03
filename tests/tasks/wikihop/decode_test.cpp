// Losses, argmax, accuracy and prediction file, against the reference's numbers and the worked examples.
#include "tasks/wikihop/decode.h"

#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/ops/register.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"
#include "tasks/wikihop/head.h"
#include "tasks/wikihop/metrics.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/wikihop/examples.h"

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

// What the feature files tell of a record.
struct GoldenRecord {
  std::string id;
  std::vector<std::string> candidates;
  double label = -1;
};

// The records of the configuration that the decodes name, keyed by source file and record index.
std::map<std::string, GoldenRecord> golden_records(const GoldenFile& decodes) {
  std::map<std::string, GoldenRecord> all;
  for (const auto& path : etc::test::golden_named("wikihop_features", ".h5")) {
    const GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      if (group == "sentences" || file.string_attribute(group, "vocab") != decodes.string_attribute("", "vocab"))
        continue;
      bool same = true;
      for (const char* length : {"long_seq_len", "global_seq_len", "max_num_sentences"}) {
        same = same && file.int_attribute(group, length) == decodes.int_attribute("", length);
      }
      if (!same) continue;
      const auto sources = file.read_strings(group + "/file");
      const auto records = file.read<std::int64_t>(group + "/record_index").values;
      const auto ids = file.read_strings(group + "/id");
      const auto candidates = file.read_ragged_strings(group + "/features/candidates");
      const auto labels = file.read_ragged<double>(group + "/features/label_id");
      for (std::size_t i = 0; i < sources.size(); ++i) {
        all[sources[i] + ":" + std::to_string(records[i])] = {ids[i], candidates[i], labels[i].at(0)};
      }
    }
  }
  return all;
}

// The logits of a file and what the reference made of them.
struct GoldenDecodes {
  const GoldenFile& file;
  etc::test::GoldenArray<float> logits, masked;  // [n, G]
  std::vector<std::int32_t> labels, chosen;
  std::vector<std::string> answers, keys, ids;
  std::vector<double> losses, smooth_losses;

  explicit GoldenDecodes(const GoldenFile& golden)
      : file(golden),
        logits(file.read<float>("logits")),
        masked(file.read<float>("masked_logits")),
        labels(file.read<std::int32_t>("label").values),
        chosen(file.read<std::int32_t>("predicted_index").values),
        answers(file.read_strings("predicted_answer")),
        ids(file.read_strings("id")),
        losses(file.read<double>("loss").values),
        smooth_losses(file.read<double>("loss_label_smoothing_0.1").values) {
    const auto sources = file.read_strings("file");
    const auto records = file.read<std::int64_t>("record_index").values;
    for (std::size_t i = 0; i < sources.size(); ++i) keys.push_back(sources[i] + ":" + std::to_string(records.at(i)));
  }
  std::int64_t n() const { return logits.shape[0]; }
  std::int64_t G() const { return logits.shape[1]; }
};

// Compares every record; returns the accuracy of the first `counted` records.
etc::Metrics compare_records(const GoldenDecodes& g, const std::map<std::string, GoldenRecord>& records,
                             std::int64_t counted, double& smooth_sum) {
  const std::int64_t G = g.G();
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i <= g.n(); ++i) offsets.push_back(i * G);
  std::vector<std::uint8_t> candidates;
  std::vector<float> masked;  // by our mask
  for (std::int64_t i = 0; i < g.n() * G; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const auto& record = records.at(g.keys.at(static_cast<std::size_t>(i / G)));
    candidates.push_back(i % G < std::ssize(record.candidates));
    masked.push_back(candidates[k] ? g.logits.values[k] : -10000.0f);
  }
  REQUIRE((masked == g.masked.values));
  // Every position counts.
  const std::vector<std::uint8_t> all(candidates.size(), 1);
  const auto plain = candidate_losses({offsets, masked.data(), all, candidates, g.labels, 0, 1, nullptr});
  const auto smooth = candidate_losses({offsets, masked.data(), all, candidates, g.labels, 0.1, 1, nullptr});
  // As in training: raw logits, and only candidates count.
  const auto ours =
      candidate_losses({offsets, g.logits.values.data(), candidates, candidates, g.labels, 0, 1, nullptr});
  etc::wikihop::Accuracy accuracy;
  smooth_sum = 0;
  for (std::int64_t i = 0; i < g.n(); ++i) {
    INFO("record " << i);
    const auto k = static_cast<std::size_t>(i);
    const GoldenRecord& record = records.at(g.keys[k]);
    CHECK(g.ids.at(k) == record.id);
    CHECK(g.labels.at(k) == record.label);
    CHECK(plain[k] == Approx(g.losses.at(k)).epsilon(1e-5));
    CHECK(smooth[k] == Approx(g.smooth_losses.at(k)).epsilon(1e-5));
    CHECK(ours[k] == Approx(g.losses[k]).epsilon(1e-5));
    const std::int64_t choice =
        etc::wikihop::best_candidate({g.logits.values.data() + offsets[k], record.candidates.size()});
    CHECK(choice == g.chosen.at(k));
    CHECK(etc::wikihop::normalised_answer(record.candidates.at(static_cast<std::size_t>(choice))) == g.answers.at(k));
    smooth_sum += smooth[k];
    if (i < counted) accuracy.add(choice, g.labels[k], "", "", plain[k]);
  }
  return accuracy.metrics();
}

TEST_CASE("losses, choices and accuracies equal the reference's", "[tasks][golden]") {
  etc::ops::register_cpu_ops();
  const auto files = etc::test::golden_named("wikihop_decode", ".h5");
  if (files.empty()) return etc::test::skip("no golden file wikihop_decode*.h5");
  for (const auto& path : files) {
    INFO(path.filename().string());
    const GoldenFile file(path);
    REQUIRE(file.string_attribute("", "task") == "wikihop");
    const GoldenDecodes golden(file);
    const auto records = golden_records(file);
    CHECK(records.size() == golden.keys.size());
    CHECK(std::set<std::string>(golden.keys.begin(), golden.keys.end()).size() == golden.keys.size());
    double smooth_sum = 0;
    const auto check = [&](std::int64_t counted, const std::string& accuracy, const std::string& loss) {
      const etc::Metrics metrics = compare_records(golden, records, counted, smooth_sum);
      CHECK(metrics[0].second == Approx(file.real_attribute("", accuracy)).epsilon(1e-12));
      CHECK(metrics[2].second == Approx(file.real_attribute("", loss)).epsilon(1e-5));
    };
    check(golden.n(), "accuracy", "mean_loss");
    check(golden.n() - 2, "accuracy_last_two_are_filler", "mean_loss_last_two_are_filler");
    CHECK(smooth_sum / (static_cast<double>(golden.n()) + etc::wikihop::kLossEpsilon) ==
          Approx(file.real_attribute("", "mean_loss_label_smoothing_01")).epsilon(1e-5));
    file.require_all_read("", {{"@unicode_version", "a description"}, {"@content", "a description"}});
  }
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
  // An answer that is no candidate and a record without a prediction are wrong strings.
  accuracy.add(0, -1, "norway", "sweden", 0);
  accuracy.add_missing();
  CHECK(accuracy.metrics()[0].second == 0.5);
  CHECK(accuracy.metrics()[1].second == 0.5);
  CHECK(accuracy.metrics()[3].second == 4);
  etc::wikihop::Accuracy empty;
  empty.add_missing();
  CHECK(empty.metrics().empty());
  empty.add(0, -1, "norway", "norway", 0);
  CHECK(empty.metrics()[0] == std::pair<std::string, double>("string_accuracy", 0.5));

  const etc::Json scored = etc::wikihop::score_predictions(
      {{"1", "norway"}, {"2", "denmark"}, {"3", "oslo"}, {"4", "norway"}, {"other", "x"}},
      {{"1", "norway"}, {"2", "new york"}, {"3", "oslo"}, {"4", "Norway"}, {"5", "a"}});
  CHECK(scored.at("metrics").at("string_accuracy") == Approx(0.6));
  CHECK(scored.at("missing") == 1);
  CHECK_THROWS_AS(etc::wikihop::score_predictions({}, {}), etc::Error);
}

TEST_CASE("rejected records and answers that are no candidates count as wrong strings", "[tasks]") {
  etc::ops::register_cpu_ops();
  const etc::test::TemporaryFolder folder;
  std::vector<etc::data::LoadedExample> examples = {etc::test::worked_example(0), etc::test::worked_example(1)};
  examples[1].features["label_id"] = std::int64_t{-1};
  examples[1].features["answer"] = std::string("sweden");
  etc::EncoderInput input;
  input.global_offsets = {0, 9, 18};
  for (int i = 0; i < 2; ++i) {
    for (const std::int32_t type : {6, 6, 5, 5, 7, 0, 0, 7, 0}) input.global_segment_ids.push_back(type);
  }
  std::vector<float> scores(18, 0);
  scores[0] = scores[9] = 1;  // norway
  const auto task = etc::make_task(etc::default_config("wikihop").at("task"), etc::test::tiny_model());
  etc::PredictionRequest request;
  request.output = folder / "p.json";
  const auto predictions = task->start_predictions(request);
  predictions->add(examples, input, {etc::Var(etc::Tensor::from(scores, {18, 1}, etc::Purpose::activations))});
  etc::data::Fault fault;
  for (const auto& [id, code] :
       {std::pair{"bad", "query_empty"}, std::pair{"bad", "duplicate_id"}, std::pair{"", "wrong_type"},
        std::pair{"bare", "label_missing"}, std::pair{"worked_0", ""}}) {
    fault.id = id;
    fault.code = code;
    predictions->add_rejected(fault);
  }
  const etc::Metrics metrics = predictions->metrics();
  CHECK(metrics[0] == std::pair<std::string, double>("accuracy", 1));
  CHECK(metrics[1].first == "string_accuracy");
  CHECK(metrics[1].second == Approx(1.0 / 3));
  predictions->finish();
  CHECK(etc::read_json_file(request.output) == etc::Json({{"worked_0", "norway"}, {"worked_1", "norway"}}));
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
