// A pass over rows: the head, its losses, submission files, their scores.
#include "tasks/glue/predictions.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/convert/pickle/zip_writer.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/glue/head.h"
#include "tasks/glue/prediction_file.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/small_config.h"
#include "tests/support/written_files.h"
#include "tests/tasks/prediction_mutants.h"

using namespace etc;
using namespace etc::glue;

namespace {

data::LoadedExample row(std::int64_t record, std::int64_t label, std::optional<float> score = std::nullopt) {
  return {0,
          0,
          {{"id", std::to_string(record)},
           {"record_index", record},
           {"label", label},
           {"scored", std::int64_t{score.has_value()}},
           {"score", score.value_or(0)}}};
}

struct Written {
  std::string file;
  Metrics metrics;
};

Written predicted(DataSet set, const std::vector<data::LoadedExample>& rows, const std::vector<float>& logits) {
  register_cpu_backend();
  const test::TemporaryFolder folder;
  PredictionRequest request;
  request.output = folder / "p.tsv";
  RowPredictions predictions(request, info_of(set));
  const std::int64_t n = info_of(set).outputs();
  predictions.add(rows, {}, {Var(Tensor::from(logits, {std::ssize(rows), n}, Purpose::activations))});
  predictions.finish();
  return {read_file(folder / "p.tsv"), predictions.metrics()};
}

const std::string kRte = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\tnot_entailment\n";
const std::string kRtePredictions = "index\tprediction\n0\tentailment\n1\tentailment\n";

void run_mutants(std::uint64_t count) {
  const bool both = test::run_prediction_mutants(kRtePredictions, kRte, count, [](const auto& p, const auto& g) {
    // The data set is derived from the file name, so the damaged file is copied under a name that has one.
    const auto named = p.parent_path() / "RTE.tsv", gold = p.parent_path() / "g.jsonl";
    CHECK(g == gold);
    test::write_file(named, read_file(p));
    try {
      test::check_metrics(score_files(named, {g}));
    } catch (const Error& error) {
      throw Error(std::string(error.what()) + " (p.jsonl)");
    }
  });
  CHECK(both);
}

}  // namespace

TEST_CASE("classes are written as labels, counted on over several files, and measured", "[glue]") {
  const Written written =
      predicted(DataSet::rte, {row(0, 0), row(1, 1), row(0, 0), row(1, -1)}, {2, 1, 0, 1, 1, 1, 0, 3});
  CHECK(written.file == "index\tprediction\n0\tentailment\n1\tnot_entailment\n2\tentailment\n3\tnot_entailment\n");
  CHECK(written.metrics.front() == std::pair<std::string, double>{"accuracy", 1});
  CHECK(written.metrics.back() == std::pair<std::string, double>{"examples", 3});
}

TEST_CASE("scores are written as they are", "[glue]") {
  const Written written =
      predicted(DataSet::stsb, {row(0, -1, 1.0f), row(1, -1, 2.0f), row(2, -1, 4.0f), row(3, -1)}, {-1, 0.5f, 7, 2});
  CHECK(written.file == "index\tprediction\n0\t-1\n1\t0.5\n2\t7\n3\t2\n");
  CHECK(written.metrics.front().first == "pearson");
  CHECK(written.metrics[1].second == Approx(1));
  CHECK(written.metrics[2].second == Approx((4 + 2.25 + 9) / 3));
}

TEST_CASE("rows without labels have no metrics", "[glue]") {
  CHECK(predicted(DataSet::cola, {row(0, -1)}, {1, 0}).metrics.empty());
}

TEST_CASE("the squared error's gradient is twice the difference, missing scores have none", "[glue]") {
  const std::vector<float> logits = {1, 4, 9};
  const std::vector<double> scores = {3, 4.5, 0};
  const std::vector<std::uint8_t> scored = {1, 1, 0};
  std::vector<float> gradient(3, 7);
  const auto losses = score_losses({logits.data(), scores, scored, 0.5, gradient.data()});
  CHECK(losses == std::vector<double>{4, 0.25, 0});
  CHECK(gradient == std::vector<float>{-2, -0.5f, 0});
}

TEST_CASE("the head pools the first token, and has its gradients and drops out while training alone", "[glue]") {
  register_cpu_backend();
  EtcConfig model = test::small_config({.vocabulary = 8, .hidden = 3});
  model.num_attention_heads = 1;
  model.hidden_dropout_prob = 0.5;
  ParameterSet parameters;
  const Head head(model, 2, parameters);
  parameters.initialize(1);
  CHECK(parameters.find("output_weights") != nullptr);
  const Tensor states = test::noise({5, 3}, 3);
  EncoderInput input;
  input.long_offsets = {0, 2, 5};
  const auto logits = [&](bool training) {
    Tape tape(training ? Recording::on : Recording::off);
    ForwardOptions options;
    options.training = training;
    return head.logits(tape, Var(states), input, options).value();
  };
  const Tensor z = logits(false);
  const float* w = parameters.at("bert/pooler/dense/kernel").value.data();  // [H, H]
  const float* o = parameters.at("output_weights").value.data();            // [2, H]
  double expected = 0;
  for (int j = 0; j < 3; ++j) {
    double pooled = 0;
    for (int i = 0; i < 3; ++i) pooled += states.data()[2 * 3 + i] * w[i * 3 + j];
    expected += std::tanh(pooled) * o[3 + j];
  }
  CHECK(z.data()[3] == Approx(expected).margin(1e-6));
  std::vector<Parameter*> all;
  for (const auto& parameter : parameters.all()) all.push_back(parameter.get());
  test::check_gradients(
      [&](Tape& tape, const std::vector<Var>& in) { return std::vector<Var>{head.logits(tape, in[0], input, {})}; },
      {states}, all);
  bool differs = false;
  const Tensor dropped = logits(true);
  for (int i = 0; i < 4; ++i) differs = differs || dropped.data()[i] != z.data()[i];
  CHECK(differs);
}

TEST_CASE("a submission file is scored by its name's data set", "[glue]") {
  const test::WrittenFiles files;
  const Json scores = score_files(files.write("RTE.tsv", kRtePredictions), {files.write("dev.tsv", kRte)});
  CHECK(scores.at("metrics").at("accuracy") == 0.5);
  CHECK(scores.at("rows") == 2);
  CHECK(data_set_of_file("x/MNLI-mm.tsv").set == DataSet::mnli);
  CHECK_THROWS_WITH(data_set_of_file("x/p.tsv"), Catch::Contains("x/p.tsv: expected a file named as in a submission"));
}

TEST_CASE("a row that is left out has a number, in predictions and gold files alike", "[glue]") {
  const Written written =
      predicted(DataSet::qqp, {row(0, 0), row(2, 1), row(0, 1), row(2, 0)}, {1, 0, 1, 0, 0, 1, 1, 0});
  CHECK(written.file == "index\tprediction\n0\t0\n2\t0\n3\t1\n5\t0\n");
  const test::WrittenFiles files;
  const std::string header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n";
  const auto one = files.write("one.tsv", header + "1\t2\t3\ta\tb\t0\n4\t5\t6\ta\n7\t8\t9\ta\tb\t1\n");
  const auto two = files.write("two.tsv", header + "1\t2\t3\ta\tb\t1\n\n7\t8\t9\ta\tb\t0\n");
  const Json scores = score_files(files.write("QQP.tsv", written.file), {one, two});
  CHECK(scores.at("metrics").at("accuracy") == 0.75);
  CHECK(scores.at("rows") == 4);
}

TEST_CASE("prediction files that do not fit their rows are refused", "[glue]") {
  const test::WrittenFiles files;
  const auto gold = files.write("dev.tsv", kRte);
  const auto refuse = [&](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(score_files(files.write("RTE.tsv", text), {gold}),
                      Catch::Contains("RTE.tsv") && Catch::Contains(message));
  };
  refuse("0\tentailment\n", "expected the header index<tab>prediction");
  refuse("index\tprediction\n0\tentailment\n", "row 1 has no prediction; the gold files have 2 rows");
  refuse(kRtePredictions + "2\tentailment\n", "row 2 has a prediction, but the gold files have 2 rows");
  refuse(kRtePredictions + "1\tentailment\n", "line 4: row 1 has two predictions");
  refuse("index\tprediction\n0\tyes\n1\tentailment\n", "row 0: expected one of entailment, not_entailment");
  refuse("index\tprediction\nx\tentailment\n", "line 2: expected an index and a prediction");
}

TEST_CASE("a whole submission is scored by gold files in the benchmark's folders", "[glue]") {
  const test::WrittenFiles files;
  const auto zip = files.write("sub.zip", "");
  convert::write_stored_zip(zip, {{"RTE.tsv", kRtePredictions}, {"MNLI-mm.tsv", "index\tprediction\n0\tneutral\n"}});
  std::filesystem::create_directories(zip.parent_path() / "RTE");
  std::filesystem::create_directories(zip.parent_path() / "MNLI");
  const auto rte = files.write("RTE/dev.tsv", kRte);
  const auto mnli =
      files.write("MNLI/dev_mismatched.tsv", "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n");
  const Json metrics = score_files(zip, {rte, mnli}).at("metrics");
  CHECK(metrics == Json{{"RTE.accuracy", 0.5}, {"MNLI-mm.accuracy", 1.0}});  // an overall score needs nine rows
  const auto matched =
      files.write("MNLI/dev_matched.tsv", "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n");
  CHECK_THROWS_WITH(score_files(zip, {matched}), Catch::Contains("has no file MNLI-m.tsv"));
  CHECK_THROWS_WITH(score_files(zip, {files.write("dev.tsv", kRte)}), Catch::Contains("such as CoLA/dev.tsv"));
}

TEST_CASE("damaged submission and gold files give an error or scores", "[glue]") {
  run_mutants(200);
}

TEST_CASE("many more damaged submission and gold files give an error or scores", "[glue][slow]") {
  run_mutants(5000);
}
