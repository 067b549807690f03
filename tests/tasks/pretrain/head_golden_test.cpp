// Heads and losses of masked pieces and next sentences against dense_reference.h5, group `mlm_nsp`.
#include <cmath>
#include <cstdio>

#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/dense.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"
#include "tests/tasks/pretrain/examples.h"

namespace etc::test {
namespace {

// Tolerances from the file's README for float32: values and losses, gradients.
constexpr double kValue = 2e-5, kGradient = 1e-4;
constexpr double kExact = 1e-10;  // of double precision

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

double gradient_off(const std::vector<double>& expected, const Tensor& got) {
  return worst_difference(expected, values_of(got), kGradient, kGradient);
}

// The logits [positions, V] of the formulas, in double: the file has them of positions without weight, too.
Reals reference_logits(const Case& c) {
  const auto numbers = [&](const std::string& name) { return c.file.read<double>(c.group + "param/" + name).values; };
  const Reals hidden = numbers("hidden"), table = numbers("table"), bias = numbers("output_bias");
  const std::int64_t H = c.config.hidden_size, V = c.config.vocab_size;
  Reals rows;
  for (const std::int64_t position : c.file.read<std::int64_t>(c.group + "positions").values) {
    rows.insert(rows.end(), hidden.begin() + position * H, hidden.begin() + (position + 1) * H);
  }
  const std::int64_t count = std::ssize(rows) / H;
  Reals x = matrix_product(rows, numbers("Wt"), count, H, H);
  const Reals of_transform = numbers("bt");
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = reference_activation("gelu", x[i] + of_transform[i % of_transform.size()]);
  }
  x = reference_layer_norm(x, numbers("ln.gamma"), numbers("ln.beta"), count, H);
  Reals logits = matrix_product(x, transposed(table, V, H), count, H, V);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] += bias[i % bias.size()];
  return logits;
}

// -log softmax of each label.
Reals reference_losses(const Reals& logits, const std::vector<std::int64_t>& labels) {
  Reals losses;
  const std::size_t V = logits.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Reals target(V);
    target.at(static_cast<std::size_t>(labels[i])) = 1;
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * V);
    losses.push_back(reference_cross_entropy({row, row + static_cast<std::ptrdiff_t>(V)}, target));
  }
  return losses;
}

void compare_positions(const Case& c) {
  const Reals logits = reference_logits(c);
  CHECK(worst_difference(c.file.read<double>(c.group + "logits").values, logits, kExact, kExact) <= 1);
  const Reals losses = reference_losses(logits, c.file.read<std::int64_t>(c.group + "labels").values);
  CHECK(worst_difference(c.file.read<double>(c.group + "per_position_loss").values, losses, kExact, kExact) <= 1);
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

  double worst = gradient_off(file.read<double>(c.group + "grad/hidden").values, x.gradient()->tensor());
  for (const auto& [name, stored] : c.names) {
    const double off =
        gradient_off(file.read<double>(c.group + "grad/" + stored).values, c.parameters.at(name).gradient());
    CAPTURE(name);
    CHECK(off <= 1);
    keep_worst(worst, off);
  }
  CHECK(worst <= 1);
  compare_positions(c);
  file.require_all_read("mlm_nsp");
  std::printf("mlm_nsp: loss off by %.1e, gradients %.3f of what is tolerated\n",
              std::abs(loss - c.number("total_loss")), worst);
}

TEST_CASE("masked pieces and next sentences have the golden losses, accuracy and gradients", "[golden]") {
  for_each_file_with("mlm_nsp/param/hidden", compare);
}

}  // namespace
}  // namespace etc::test
