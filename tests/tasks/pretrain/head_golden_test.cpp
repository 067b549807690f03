// Heads and losses of masked pieces and next sentences against dense_reference.h5, group `mlm_nsp`.
#include <cmath>
#include <cstdio>

#include "etc_core/nn/backends.h"
#include "tests/golden/golden_group.h"
#include "tests/support/numbers.h"
#include "tests/tasks/pretrain/examples.h"

namespace etc::test {
namespace {

// Tolerances from the file's README for float32: values and losses, gradients.
constexpr double kValue = 2e-5, kGradient = 1e-4;

struct Case {
  explicit Case(const GoldenFile& golden) : file(golden) {
    const auto hidden_shape = file.read<float>(group + "param/hidden").shape;
    const auto table_shape = file.read<float>(group + "param/table").shape;
    config = pretrain_dense();
    config.hidden_size = hidden_shape.at(1);
    config.num_attention_heads = 1;
    config.vocab_size = table_shape.at(0);
    task = pretrain_task({{"objective", "mlm_nsp"}}, config);
    parameters.add("bert/embeddings/word_embeddings", table_shape, {});
    task->add_parameters(parameters);
    for (const auto& parameter : parameters.all()) {
      const std::vector<float> values = file.read<float>(group + "param/" + names.at(parameter->name)).values;
      REQUIRE(std::ssize(values) == parameter->size());
      std::copy(values.begin(), values.end(), parameter->allocate().data());
    }
    make_example(hidden_shape.at(0));
  }

  // Only positions with a weight: the others contribute nothing.
  void make_example(std::int64_t length) {
    const auto positions = file.read<std::int64_t>(group + "positions").values;
    const auto labels = file.read<std::int64_t>(group + "labels").values;
    const auto weights = file.read<double>(group + "weights").values;
    std::vector<std::int64_t> ids(static_cast<std::size_t>(length)), masked, inputs;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (weights[i] == 0) continue;
      REQUIRE(weights[i] == 1);
      REQUIRE(ids[static_cast<std::size_t>(positions[i])] == 0);
      ids[static_cast<std::size_t>(positions[i])] = labels[i];
      masked.push_back(positions[i]);
      inputs.push_back(0);
      weighted.push_back(i);
    }
    std::sort(masked.begin(), masked.end());
    data::LoadedExample example = pair_example(0);
    example.features["long_token_ids"] = ids;
    example.features["piece_kinds"] = std::vector<std::int64_t>(ids.size(), 1);
    example.features["masked_positions"] = masked;
    example.features["masked_input_ids"] = inputs;
    example.features["next_sentence_label"] = file.read<std::int64_t>(group + "nsp_label").values.at(0);
    examples.push_back(std::move(example));
  }

  double number(const std::string& name) const { return file.read<double>(group + name).values.at(0); }

  const std::map<std::string, std::string> names = {
      {"bert/embeddings/word_embeddings", "table"},
      {"cls/predictions/transform/dense/kernel", "Wt"},
      {"cls/predictions/transform/dense/bias", "bt"},
      {"cls/predictions/transform/LayerNorm/gamma", "ln.gamma"},
      {"cls/predictions/transform/LayerNorm/beta", "ln.beta"},
      {"cls/predictions/output_bias", "output_bias"},
      {"bert/pooler/dense/kernel", "pool.W"},
      {"bert/pooler/dense/bias", "pool.b"},
      {"cls/seq_relationship/output_weights", "nsp.W"},
      {"cls/seq_relationship/output_bias", "nsp.b"},
  };
  const GoldenFile& file;
  const std::string group = "mlm_nsp/";
  DenseConfig config;
  ParameterSet parameters;
  std::unique_ptr<Task> task;
  std::vector<data::LoadedExample> examples;
  std::vector<std::size_t> weighted;  // numbers of the positions with a weight
};

double worst_of(const std::vector<double>& expected, const float* got, double tolerance) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(got[i] - expected[i]) / (tolerance * (1 + std::abs(expected[i])));
    if (!(off <= worst)) worst = std::isnan(off) ? HUGE_VAL : off;
  }
  return worst;
}

void compare(const GoldenFile& file) {
  open_device("cpu");
  Case c(file);
  const auto hidden = file.read<float>(c.group + "param/hidden");
  const Var x(Tensor::from(hidden.values, hidden.shape, Purpose::activations), true);
  std::vector<double> counts(2);
  c.task->count(c.examples[0], counts);

  Tape tape(Recording::on);
  HeadOutput outputs = c.task->head(tape, c.examples, {x, {}}, {}, {});
  const double loss = c.task->loss(tape, c.examples, {}, outputs, counts);
  const auto predictions = c.task->start_predictions({});
  predictions->add(c.examples, {}, outputs);
  tape.backward();

  CHECK(loss == Approx(c.number("total_loss")).epsilon(kValue).margin(kValue));
  const Metrics metrics = predictions->metrics();
  const auto losses = file.read<double>(c.group + "per_position_loss").values;
  double masked = 0;
  for (const std::size_t i : c.weighted) masked += losses[i] / static_cast<double>(c.weighted.size());
  CHECK(metrics.at(0).second == Approx(c.number("mlm_accuracy")).margin(1e-12));
  CHECK(metrics.at(1).second == Approx(masked).epsilon(kValue).margin(kValue));
  CHECK(metrics.at(3).second == Approx(c.number("nsp_loss")).epsilon(kValue).margin(kValue));
  const auto count = static_cast<double>(c.weighted.size());
  CHECK(metrics.at(1).second * count / (count + 1e-5) == Approx(c.number("mlm_loss")).epsilon(kValue).margin(kValue));

  double worst = worst_of(file.read<double>(c.group + "grad/hidden").values, x.gradient()->tensor().data(), kGradient);
  for (const auto& [name, stored] : c.names) {
    const double off = worst_of(file.read<double>(c.group + "grad/" + stored).values,
                                c.parameters.at(name).gradient().data(), kGradient);
    CAPTURE(name);
    CHECK(off <= 1);
    worst = std::max(worst, off);
  }
  CHECK(worst <= 1);
  std::printf("mlm_nsp: loss off by %.1e, gradients %.3f of what is tolerated\n",
              std::abs(loss - c.number("total_loss")), worst);
}

TEST_CASE("masked pieces and next sentences have the golden losses, accuracy and gradients", "[golden]") {
  for_each_file_with("mlm_nsp/param/hidden", compare);
}

}  // namespace
}  // namespace etc::test
