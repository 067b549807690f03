// The vocabulary product and its loss, computed slice by slice.
#include "etc_core/autograd/vocabulary.h"

#include <cmath>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "etc_core/ops/vocabulary_softmax.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

// A table [V, E] and a bias [V] with numbers.
struct Layer {
  Layer(std::int64_t vocabulary, std::int64_t width) {
    ops::register_cpu_ops();
    table.name = "table";
    table.shape = {vocabulary, width};
    table.value = noise(table.shape, 1);
    bias.name = "bias";
    bias.shape = {vocabulary};
    bias.value = noise(bias.shape, 2);
  }
  VocabularyLayer layer() { return {&table, &bias}; }
  Parameter table, bias;
};

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.size()};
}

// The same without slices: all logits, their softmax, the gradients.
struct Whole {
  Whole(const Tensor& x, Layer& of, const std::vector<std::int32_t>& labels, double scale)
      : losses(labels.size()), dx(Tensor::empty(x.shape(), Purpose::activations)) {
    const std::int64_t vocabulary = of.table.shape[0], width = x.cols();
    std::vector<float> z(static_cast<std::size_t>(x.rows() * vocabulary));
    ops::linear(Device::cpu, {.rows = x.rows(),
                              .in = width,
                              .out = vocabulary,
                              .x = x.data(),
                              .x_stride = width,
                              .weight = of.table.value.data(),
                              .layout = ops::WeightLayout::out_in,
                              .bias = of.bias.value.data(),
                              .y = z.data(),
                              .y_stride = vocabulary});
    ops::vocabulary_softmax(Device::cpu, {.rows = x.rows(),
                                          .vocabulary = vocabulary,
                                          .z = z.data(),
                                          .labels = labels.data(),
                                          .gradient = true,
                                          .scale = scale,
                                          .losses = losses.data()});
    dtable = Tensor::zeros(of.table.shape, Purpose::gradients);
    dbias = Tensor::zeros(of.bias.shape, Purpose::gradients);
    ops::linear_backward(Device::cpu, {.rows = x.rows(),
                                       .in = width,
                                       .out = vocabulary,
                                       .dz = z.data(),
                                       .dz_stride = vocabulary,
                                       .x = x.data(),
                                       .x_stride = width,
                                       .weight = of.table.value.data(),
                                       .layout = ops::WeightLayout::out_in,
                                       .dx = dx.data(),
                                       .dx_stride = width,
                                       .dweight = dtable.data(),
                                       .dbias = dbias.data()});
  }
  std::vector<double> losses;
  Tensor dx, dtable, dbias;
};

}  // namespace

TEST_CASE("a vocabulary in slices has the bits of one at once", "[core][autograd]") {
  for (const std::int64_t rows : {1, 63, 512, 1024, 1025, 1700}) {
    CAPTURE(rows);
    Layer of(301, 24);
    const Tensor x = noise({rows, 24}, 5);
    const auto labels = random_ids(rows, 301, 6);
    const VocabularyResult got = vocabulary_loss_with_gradients(x, of.layer(), labels, 0.5);
    const Whole whole(x, of, labels, 0.5);
    CHECK(got.losses == whole.losses);
    CHECK(same_bits(values(got.dx), values(whole.dx)));
    CHECK(same_bits(values(of.table.grad), values(whole.dtable)));
    CHECK(same_bits(values(of.bias.grad), values(whole.dbias)));
    CHECK(vocabulary_loss(x, of.layer(), labels).losses == got.losses);
  }
}

TEST_CASE("the gradients of a vocabulary are those of central differences", "[core][autograd]") {
  Layer of(13, 6);
  const Tensor x = noise({5, 6}, 7);
  const std::vector<std::int32_t> labels = {0, 12, 3, 3, 7};
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& inputs) {
        // As a function on a tape: the sum of the losses, whose gradient is the scale.
        const VocabularyResult result = vocabulary_loss(inputs[0].value(), of.layer(), labels);
        double sum = 0;
        for (const double loss : result.losses) sum += loss;
        Var y(Tensor::from({static_cast<float>(sum)}, {1, 1}, Purpose::activations), tape.recording());
        if (tape.recording()) {
          tape.record([&of, labels, in = inputs[0], slot = y.gradient()] {
            const double scale = slot->tensor().data()[0];
            in.gradient()->add(vocabulary_loss_with_gradients(in.value(), of.layer(), labels, scale).dx);
          });
        }
        return std::vector<Var>{y};
      },
      {x}, {&of.table, &of.bias});
}

TEST_CASE("a tied table keeps what it has and gets the output layer's gradient on top", "[core][autograd]") {
  Layer of(40, 8);
  const Tensor x = noise({9, 8}, 3);
  const auto labels = random_ids(9, 40, 1);
  vocabulary_loss_with_gradients(x, of.layer(), labels, 1);
  const auto once = values(of.table.grad);
  vocabulary_loss_with_gradients(x, of.layer(), labels, 1);
  std::vector<double> twice;
  for (const float number : once) twice.push_back(2.0 * number);
  CHECK(near_all("dE", values(of.table.grad), twice, 1e-6, 1e-6));
}

TEST_CASE("no more than a slice of the logits of a vocabulary is ever held", "[core][autograd]") {
  CHECK(vocabulary_slice(30522) == 1024);
  CHECK(vocabulary_slice(13) == 1024);
  CHECK(vocabulary_slice(50265) == 512);
  CHECK(vocabulary_slice(250000) == 128);
  CHECK(vocabulary_slice(10000000) == 64);
  constexpr std::int64_t kRows = 4096, kVocabulary = 2000;
  Layer of(kVocabulary, 8);
  const Tensor x = noise({kRows, 8}, 3);
  const auto labels = random_ids(kRows, kVocabulary, 1);
  of.table.gradient();
  of.bias.gradient();
  vocabulary_loss_with_gradients(x, of.layer(), labels, 1);  // allocates the threads' working memory
  memory_ledger::reset_peak();
  const std::int64_t before = memory_ledger::report().total;
  vocabulary_loss_with_gradients(x, of.layer(), labels, 1);
  const std::int64_t slice = vocabulary_slice(kVocabulary) * kVocabulary * 4;
  CHECK(memory_ledger::report().peak - before <= slice + 2 * x.size() * 4 + 4096);
}

TEST_CASE("the choices of a vocabulary are its most probable entries in order", "[core][autograd]") {
  Layer of(50, 6);
  const Tensor x = noise({3, 6}, 9);
  const auto choices = vocabulary_choices(x, of.layer(), 50);
  REQUIRE(choices.size() == 3);
  const std::vector<std::int32_t> labels(3, 11);
  const VocabularyResult result = vocabulary_loss(x, of.layer(), labels);
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0, of_label = 0;
    for (std::size_t j = 0; j < choices[i].size(); ++j) {
      sum += choices[i][j].probability;
      if (choices[i][j].id == 11) of_label = choices[i][j].probability;
      if (j > 0) CHECK(choices[i][j].probability <= choices[i][j - 1].probability);
    }
    CHECK(sum == Approx(1).margin(1e-5));
    CHECK(-std::log(of_label) == Approx(result.losses[i]).margin(1e-5));
    CHECK(choices[i][0].id == result.best[i]);
  }
}

TEST_CASE("rows, labels and bias that do not fit a vocabulary are refused", "[core][autograd]") {
  Layer of(10, 4);
  const std::vector<std::int32_t> labels = {1, 2};
  CHECK_THROWS_WITH(vocabulary_loss(noise({2, 5}, 1), of.layer(), labels),
                    "vocabulary_loss: x: expected [P, 4] like table, got [2, 5]");
  CHECK_THROWS_WITH(vocabulary_loss(noise({3, 4}, 1), of.layer(), labels),
                    "vocabulary_loss: labels: expected 3, one for each row, got 2");
  CHECK_THROWS_WITH(vocabulary_choices(noise({3, 4}, 1), of.layer(), 11),
                    "vocabulary_loss: k: expected 1 to 10, got 11");
  of.bias.shape = {9};
  CHECK_THROWS_WITH(vocabulary_loss(noise({2, 4}, 1), of.layer(), labels),
                    "vocabulary_loss: bias: expected [10], got [9]");
}
