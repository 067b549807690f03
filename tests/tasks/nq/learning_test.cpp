// What the supplied tiny configuration learns on generated pages, and that it learns this through global tokens.
#include <map>

#include "data/sample/nq_sample.h"
#include "tasks/nq/prepare.h"
#include "tasks/prepare/run.h"
#include "tasks/train/run_config.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

namespace {

// Generated pages prepared as train.h5 and dev.h5.
class Pages {
 public:
  explicit Pages(std::int64_t records) {
    data::NqSampleOptions sample;
    sample.records = records;
    data::write_nq_sample(sample, folder_.path());
    for (const std::string split : {"train", "dev"}) {
      Json settings = nq::prepare_settings().defaults();
      settings["is_train"] = split == "train";
      prepare::RunOptions run;
      run.inputs = {folder_ / (split + ".jsonl")};
      run.output = folder_ / (split + ".h5");
      run.report = folder_ / (split + ".rejects.jsonl");
      run.split = split;
      const auto preparation = nq::make_preparation(settings, folder_ / "vocab.txt", prepare::Labels::required);
      REQUIRE(prepare::run(*preparation, run).examples > 0);
    }
  }

  // Scores of the held-out pages, at the best evaluation; changes: {section: {key: value}} over the configuration.
  std::map<std::string, double> scores(const Json& changes, const std::string& name = "nq_tiny.json") const {
    Json options = {
        {"data", {{"train", {(folder_ / "train.h5").string()}}, {"eval", {(folder_ / "dev.h5").string()}}}}};
    options.merge_patch(changes);
    const RunConfig config = resolve_config(test::source_folder() / "tasks/configs" / name, options, nullptr);
    const test::TemporaryFolder run;
    const TrainReport report = train(config, run / "run");
    REQUIRE(report.best.at(0).first == "f1");
    const std::map<std::string, double> best(report.best.begin(), report.best.end());
    WARN(json_line(changes) << ": long F1 " << best.at("long_f1") << ", short F1 " << best.at("short_f1"));
    return best;
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("the tiny model finds the answers of held-out pages with every seed", "[nq][slow]") {
  const Pages pages(16000);
  for (const int seed : {1, 2, 3}) {
    const auto scores = pages.scores({{"training", {{"seed", seed}}}});
    CHECK(scores.at("long_f1") >= 0.9);
    CHECK(scores.at("short_f1") >= 0.9);
  }
}

TEST_CASE("a tiny dense encoder finds them, too, with relative positions in place of global tokens", "[nq][slow]") {
  const Pages pages(16000);
  const auto scores = pages.scores(Json::object(), "nq_dense_tiny.json");
  CHECK(scores.at("long_f1") >= 0.9);
  CHECK(scores.at("short_f1") >= 0.9);
}

TEST_CASE("without global attention the tiny model stays near chance", "[nq][slow]") {
  // Chance level is one block of four; the best of a few evaluations on 1,600 pages exceeds it by chance (standard
  // deviation 0.011 each).
  const Pages pages(16000);
  const auto scores = pages.scores({{"task", {{"global_attention", false}}}});
  CHECK(scores.at("long_f1") <= 0.32);
  CHECK(scores.at("short_f1") <= 0.32);
}
