#include "etc_core/autograd/tape.h"

#include <cmath>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Contains;

namespace {

std::int64_t activation_bytes() {
  return memory_ledger::report().current[static_cast<int>(Purpose::activations)];
}

}  // namespace

TEST_CASE("closures run last first and are destroyed right after they ran", "[autograd]") {
  Tape tape(Recording::on);
  std::vector<int> order;
  std::vector<long> alive;
  const auto saved = std::make_shared<int>(0);
  for (int i = 0; i < 3; ++i) {
    tape.record([&, i, saved] {
      order.push_back(i);
      alive.push_back(saved.use_count());
    });
  }
  tape.backward();
  REQUIRE(order == std::vector<int>{2, 1, 0});
  REQUIRE(alive == std::vector<long>{4, 3, 2});  // the test's own handle and one per remaining closure
  REQUIRE(saved.use_count() == 1);
}

TEST_CASE("a second backward, a silent tape and late recording are errors", "[autograd]") {
  Tape tape(Recording::on);
  tape.record([] {});
  tape.backward();
  REQUIRE_THROWS_WITH(tape.backward(), Contains("autograd: backward: called twice"));
  REQUIRE_THROWS_WITH(tape.record([] {}), Contains("backward() of this tape has run"));
  Tape silent(Recording::off);
  REQUIRE_THROWS_WITH(silent.backward(), Contains("this tape does not record"));
  REQUIRE_THROWS_WITH(silent.record([] {}), Contains("this tape does not record"));
}

TEST_CASE("copies of a variable are the same variable", "[autograd]") {
  const Var a(Tensor::zeros({2}, Purpose::activations), true);
  Var b = a;
  b.grad().data()[1] = 5;
  REQUIRE(a.has_grad());
  REQUIRE(Var(a).grad().data()[1] == 5);
  REQUIRE(a.gradient()->defined());
  b.drop_grad();
  REQUIRE(!a.has_grad());
}

TEST_CASE("gradients are added in place and handed over without copies", "[autograd]") {
  register_cpu_backend();
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}, Purpose::activations);
  Gradient gradient(x, true, ElementType::fp32);
  gradient.add(x);
  REQUIRE(gradient.tensor().shares_memory_with(x));
  gradient.add(Tensor::from({10, 20, 30, 40}, {2, 2}, Purpose::activations));
  REQUIRE(gradient.tensor().data()[3] == 44);
  REQUIRE_THROWS_WITH(gradient.add(Tensor::zeros({4}, Purpose::activations)),
                      Contains("gradient: expected shape [2, 2], got [4]"));
  REQUIRE(gradient.take().shares_memory_with(x));
  REQUIRE(!gradient.defined());
}

TEST_CASE("values that no gradient depends on are freed in the forward pass", "[autograd]") {
  register_cpu_backend();
  const std::int64_t before = activation_bytes();
  Tape tape(Recording::on);
  Var y;
  {
    const Var a(Tensor::zeros({64, 64}, Purpose::activations), true);
    const Var b(Tensor::zeros({64, 64}, Purpose::activations), true);
    y = residual(tape, residual(tape, a, b, Dropout()), b, Dropout());
  }
  REQUIRE(activation_bytes() - before == 64 * 64 * 4);  // only y: a, b and their sum are freed
}

TEST_CASE("what operators saved is freed as backward walks", "[autograd]") {
  register_cpu_backend();
  ParameterSet parameters;
  Parameter& gamma = parameters.add("gamma", {64}, {Initializer::Kind::ones, 0});
  Parameter& beta = parameters.add("beta", {64}, {Initializer::Kind::zeros, 0});
  parameters.initialize(1);
  const std::int64_t before = activation_bytes();
  Tape tape(Recording::on);
  {
    Var y(test::noise({64, 64}, 1), true);
    for (int i = 0; i < 8; ++i) y = layer_norm(tape, y, gamma, beta);
    y.grad();
  }
  REQUIRE(activation_bytes() - before > 8 * 64 * 64 * 4);
  std::int64_t peak_above = 0;
  memory_ledger::reset_peak();
  const std::int64_t start = memory_ledger::report().total;
  tape.backward();
  peak_above = memory_ledger::report().peak - start;
  // Besides what forward saved, at most one or two gradients and those of the parameters.
  REQUIRE(peak_above < 3 * 64 * 64 * 4);
  REQUIRE(activation_bytes() == before);
}

TEST_CASE("a checked tape names the first bad operator", "[autograd]") {
  register_cpu_backend();
  ParameterSet parameters;
  Parameter& kernel = parameters.add("layer/kernel", {2, 3}, {Initializer::Kind::ones, 0});
  parameters.initialize(1);
  Dense dense;
  dense.parts = {{&kernel, nullptr}};
  Tape tape(Recording::on, FiniteChecks::on);
  const Var x(Tensor::from({1, 2, 3, INFINITY}, {2, 2}, Purpose::activations), true);
  REQUIRE_THROWS_WITH(
      linear(tape, x, dense),
      Contains("autograd: first bad operator: linear layer/kernel: output [2, 3] has 3 nan or inf (first "
               "at row 1, column 0)"));
  const Var good(Tensor::from({1, 2, 3, 4}, {2, 2}, Purpose::activations), true);
  Var y = linear(tape, good, dense);
  y.grad().data()[1] = NAN;
  REQUIRE_THROWS_WITH(tape.backward(), Contains("linear layer/kernel: gradient of output [2, 3] has 1 nan or inf"));
}

TEST_CASE("a gradient is announced as final when the first function that uses its parameter has run", "[autograd]") {
  register_cpu_backend();
  ParameterSet parameters;
  Parameter& shared = parameters.add("shared", {2, 2}, {Initializer::Kind::ones});
  Parameter& late = parameters.add("late", {2, 2}, {Initializer::Kind::ones});
  Parameter& within = parameters.add("within", {2, 2}, {Initializer::Kind::ones});
  Parameter& never = parameters.add("never", {2, 2}, {Initializer::Kind::ones});
  parameters.initialize(1);
  const auto dense = [](Parameter& kernel) { return Dense{.parts = {{&kernel}}}; };
  std::vector<std::string> announced;
  std::vector<float> value_then;
  Tape tape(Recording::on);
  tape.announce_final([&](Parameter& parameter) {
    announced.push_back(parameter.name);
    value_then.push_back(parameter.grad.data()[0]);
  });
  const Var x(Tensor::from({1, 2, 3, 4}, {2, 2}, Purpose::activations), true);
  const Section section = [&](Tape& on, const std::vector<Var>& inputs) {
    return std::vector<Var>{linear(on, linear(on, inputs[0], dense(within)), dense(shared))};
  };
  Var y = linear(tape, x, dense(shared));
  y = checkpoint(tape, {y}, section, section)[0];
  y = linear(tape, linear(tape, y, dense(late)), dense(shared));
  y.grad().data()[0] = 1;
  tape.backward();
  CHECK(announced == std::vector<std::string>{"late", "within", "shared"});
  CHECK_FALSE(never.grad);
  for (std::size_t i = 0; i < announced.size(); ++i) {
    CHECK(value_then[i] == parameters.at(announced[i]).grad.data()[0]);
  }
}
