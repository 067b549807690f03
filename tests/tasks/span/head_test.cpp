// Output layers on a tape.
#include "tasks/span/head.h"
#include "etc_core/nn/backends.h"

#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("an output layer has its logits and gradients, alone and on first rows", "[tasks][span]") {
  register_cpu_backend();
  ParameterSet parameters;
  const span::OutputLayer spans(parameters, "answer_span_", 2, 5), types(parameters, "answer_type_", 3, 5);
  parameters.initialize(3);
  REQUIRE(parameters.at("answer_span_output_weights").shape == std::vector<std::int64_t>{2, 5});
  REQUIRE(parameters.at("answer_type_output_bias").shape == std::vector<std::int64_t>{3});
  // Larger weights and a bias, so that differences are visible.
  for (const auto& parameter : parameters.all()) {
    for (std::int64_t i = 0; i < parameter->value.size(); ++i) {
      parameter->value.data()[i] = 0.3f * static_cast<float>(i % 3) - 0.2f;
    }
  }
  const std::vector<std::int64_t> offsets = {0, 2, 3, 7};
  const Tensor x = test::noise({7, 5}, 2);
  Tape silent(Recording::off);
  const Tensor z = spans.logits(silent, Var(x)).value();
  const Tensor t = types.logits(silent, span::first_rows(silent, Var(x), offsets)).value();
  REQUIRE(z.shape() == std::vector<std::int64_t>{7, 2});
  REQUIRE(t.shape() == std::vector<std::int64_t>{3, 3});
  const auto expected = [&](const char* name, std::int64_t row, std::int64_t column) {
    double sum = parameters.at(std::string(name) + "_output_bias").value.data()[column];
    const Tensor& w = parameters.at(std::string(name) + "_output_weights").value;
    for (std::int64_t k = 0; k < 5; ++k) {
      sum += static_cast<double>(x.data()[row * 5 + k]) * w.data()[column * 5 + k];
    }
    return sum;
  };
  CHECK(z.data()[4 * 2 + 1] == Approx(expected("answer_span", 4, 1)).margin(1e-6));
  CHECK(t.data()[2 * 3 + 0] == Approx(expected("answer_type", 3, 0)).margin(1e-6));

  std::vector<Parameter*> all;
  for (const auto& parameter : parameters.all()) all.push_back(parameter.get());
  test::check_gradients(
      [&](Tape& tape, const std::vector<Var>& in) {
        return std::vector<Var>{spans.logits(tape, in[0]), types.logits(tape, span::first_rows(tape, in[0], offsets))};
      },
      {x}, all);
}
