// Real WikiHop records through the whole program: prepare, train, eval, predict.
#include <cstdio>
#include <numeric>
#include <set>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::test::Result;
using etc::test::Words;

TEST_CASE("real WikiHop records are prepared, learnt, evaluated and predicted", "[tasks][golden]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const auto data = etc::test::real_data_folder();
  if (!data) return;
  const fs::path raw = *data / "wikihop/wikihop_dev_28.json", vocab = *data / "vocab/bert_uncased_vocab.txt";
  const etc::test::TemporaryFolder folder;
  const fs::path prepared = folder / "dev.h5", model = folder / "run/best";
  const auto run = [&](const Words& words) {
    const Result result = etc::test::run_program(words, folder.path());
    INFO(result.err);
    REQUIRE(result.code == 0);
    return result.out;
  };
  run({"prepare", "--task", "wikihop", "--split", "dev", "--input", raw, "--vocab", vocab, "--splitter", "icu",
       "--long-seq-len", "512", "--global-seq-len", "128", "--output", prepared});
  Words training = {"train",    "--task",       "wikihop",      "--data", prepared,
                    "--output", folder / "run", "--vocab-size", "30522"};
  for (const char* word : {"--hidden-size",
                           "64",
                           "--num-hidden-layers",
                           "2",
                           "--num-attention-heads",
                           "4",
                           "--intermediate-size",
                           "256",
                           "--local-radius",
                           "32",
                           "--relative-pos-max-distance",
                           "12",
                           "--relative-vocab-size",
                           "32",
                           "--use-hard-g2l-mask",
                           "--use-residual-attention",
                           "--hidden-dropout-prob",
                           "0",
                           "--attention-probs-dropout-prob",
                           "0",
                           "--batch-size",
                           "14",
                           "--steps",
                           "20",
                           "--learning-rate",
                           "0.002",
                           "--log-every",
                           "1"}) {
    training.push_back(word);
  }
  run(training);

  std::vector<double> losses;
  std::istringstream lines(etc::read_file(folder / "run/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) losses.push_back(etc::Json::parse(line)["loss"]);
  REQUIRE(losses.size() == 20);
  const double before = std::accumulate(losses.begin(), losses.begin() + 5, 0.0) / 5;
  const double after = std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5;
  const std::string eval = run({"eval", "--model", model, "--data", prepared});
  std::printf("real WikiHop records, 20 steps: loss %.3f -> %.3f; on the same records %s", before, after, eval.c_str());
  CHECK(after < 0.5 * before);

  run({"predict", "--model", model, "--data", prepared, "--output", folder / "prepared.json"});
  run({"predict", "--model", model, "--input", raw, "--vocab", vocab, "--output", folder / "raw.json"});
  CHECK(etc::read_file(folder / "raw.json") == etc::read_file(folder / "prepared.json"));
  // {id: answer}, with an answer for every record, each one of its candidates.
  const etc::Json predictions = etc::read_json_file(folder / "raw.json");
  const etc::Json records = etc::Json::parse(etc::read_file(raw));
  CHECK(predictions.size() == records.size());
  for (const etc::Json& record : records) {
    const std::string id = record["id"];
    CAPTURE(id);
    const auto candidates = record["candidates"].get<std::set<std::string>>();
    CHECK(candidates.count(predictions.value(id, "")) == 1);
  }
  const std::string official = run({"eval", "--task", "wikihop", "--predictions", folder / "raw.json", "--gold", raw});
  const auto accuracy = [](const std::string& text) {
    const std::size_t at = text.find("string_accuracy ");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(accuracy(official) == accuracy(eval));
}

}  // namespace
