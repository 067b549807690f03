#include "etc_core/autograd/functions.h"

#include <algorithm>
#include <cstring>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/ops/elementwise.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Contains;
using test::check_gradients;
using test::noise;

namespace {

constexpr Initializer kNormal{Initializer::Kind::truncated_normal, 0.5f};

// Parameters of one dense layer of two parts, and of a layer norm; two examples of 3 and 2 rows.
struct Fixture {
  ParameterSet parameters;
  Dense dense;
  Parameter *gamma, *beta;
  std::shared_ptr<RaggedRows> rows = std::make_shared<RaggedRows>();

  Fixture() {
    register_cpu_backend();
    dense.parts = {{&parameters.add("a/kernel", {4, 3}, kNormal), &parameters.add("a/bias", {3}, kNormal)},
                   {&parameters.add("b/kernel", {4, 2}, kNormal), nullptr}};
    gamma = &parameters.add("gamma", {4}, kNormal);
    beta = &parameters.add("beta", {4}, kNormal);
    parameters.initialize(5);
    rows->offsets = {0, 3, 5};
    rows->sample_ordinals = {8, 3};
  }
  Dropout dropout(DropoutSite site) const { return {0.4f, 77, 2, site, rows}; }
  std::vector<Parameter*> dense_parameters() const {
    return {dense.parts[0].kernel, dense.parts[0].bias, dense.parts[1].kernel};
  }
};

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

}  // namespace

TEST_CASE("linear puts its parts side by side and has their gradients", "[autograd]") {
  Fixture f;
  Tape tape(Recording::off);
  const Var x(noise({5, 4}, 1));
  const Tensor y = linear(tape, x, f.dense).value();
  REQUIRE(y.shape() == std::vector<std::int64_t>{5, 5});
  for (std::int64_t column = 0; column < 5; ++column) {
    double expected = column < 3 ? f.dense.parts[0].bias->value.data()[column] : 0;
    for (std::int64_t k = 0; k < 4; ++k) {
      expected += static_cast<double>(x.value().data()[2 * 4 + k]) *
                  (column < 3 ? f.dense.parts[0].kernel->value.data()[k * 3 + column]
                              : f.dense.parts[1].kernel->value.data()[k * 2 + column - 3]);
    }
    REQUIRE(y.data()[2 * 5 + column] == Approx(expected).margin(1e-6));
  }
  check_gradients([&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{linear(on, in[0], f.dense)}; },
                  {noise({5, 4}, 1)}, f.dense_parameters());
}

TEST_CASE("gathered rows have their gradients, also rows that are chosen twice or not at all", "[autograd]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const Tensor x = noise({5, 3}, 1);
  const Tensor y = gather_rows(tape, Var(x), {4, 0, 4}).value();
  REQUIRE(y.shape() == std::vector<std::int64_t>{3, 3});
  for (std::int64_t c = 0; c < 3; ++c) {
    REQUIRE(y.data()[c] == x.data()[12 + c]);
    REQUIRE(y.data()[3 + c] == x.data()[c]);
  }
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) {
        return std::vector<Var>{gather_rows(on, in[0], {4, 0, 4}), gather_rows(on, in[0], {1, 2})};
      },
      {x}, {});
  REQUIRE_THROWS_WITH(gather_rows(tape, Var(x), {5}), "gather_rows: expected rows 0 … 4, got 5");
  REQUIRE_THROWS_WITH(gather_rows(tape, Var(x), {-1}), "gather_rows: expected rows 0 … 4, got -1");
}

TEST_CASE("joined rows are those of both, and each gets its part of the gradient", "[autograd]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const Tensor x_0 = noise({2, 3}, 1), x_1 = noise({4, 3}, 2);
  const Tensor y = join_rows(tape, Var(x_0), Var(x_1)).value();
  REQUIRE(y.shape() == std::vector<std::int64_t>{6, 3});
  REQUIRE(std::equal(x_0.data(), x_0.data() + x_0.size(), y.data()));
  REQUIRE(std::equal(x_1.data(), x_1.data() + x_1.size(), y.data() + x_0.size()));
  check_gradients([&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{join_rows(on, in[0], in[1])}; },
                  {x_0, x_1}, {});
  REQUIRE_THROWS_WITH(join_rows(tape, Var(x_0), Var(noise({4, 2}, 3))), "join_rows: x: expected [M, 3], got [4, 2]");
}

TEST_CASE("a range of rows has its gradient, and two ranges that overlap add theirs", "[autograd]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const Tensor x = noise({5, 3}, 1);
  const Tensor y = row_range(tape, Var(x), 1, 3).value();
  REQUIRE(y.shape() == std::vector<std::int64_t>{3, 3});
  REQUIRE(std::equal(y.data(), y.data() + y.size(), x.data() + 3));
  REQUIRE(row_range(tape, Var(x), 5, 0).value().size() == 0);
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) {
        return std::vector<Var>{row_range(on, in[0], 0, 3), row_range(on, in[0], 2, 2)};
      },
      {x}, {});
  REQUIRE_THROWS_WITH(row_range(tape, Var(x), 3, 3), "row_range: expected rows of x [5, 3], got 3 from row 3 on");
  REQUIRE_THROWS_WITH(row_range(tape, Var(x), -1, 2), "row_range: expected rows of x [5, 3], got 2 from row -1 on");
}

TEST_CASE("rows of variables in bf16 are joined and cut apart again, forward and backward", "[autograd]") {
  register_cpu_backend();
  const auto in_bf16 = [](const Tensor& x) {
    const Tensor y = Tensor::empty(x.shape(), Purpose::activations, Device::cpu, ElementType::bf16);
    ops::round_to_bf16(Device::cpu, x.data(), y.bf16(), x.size());
    return y;
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && std::memcmp(a.bf16(), b.bf16(), static_cast<std::size_t>(a.size()) * 2) == 0;
  };
  const Tensor upper = in_bf16(noise({2, 8}, 1)), lower = in_bf16(noise({3, 8}, 2)), dy = in_bf16(noise({3, 8}, 3));
  Tape tape(Recording::on);
  Var x_0(upper, true), x_1(lower, true);
  {
    const Var joined = join_rows(tape, x_0, x_1);
    CHECK(same(row_range(tape, joined, 0, 2).value(), upper));
    const Var below = row_range(tape, joined, 2, 3);
    CHECK(same(below.value(), lower));
    below.gradient()->add(dy);
  }
  tape.backward();
  CHECK(same(x_1.grad(), dy));
  CHECK(std::all_of(x_0.grad().bf16(), x_0.grad().bf16() + 16, [](Bf16 number) { return number.bits == 0; }));
  REQUIRE_THROWS_WITH(join_rows(tape, Var(upper), Var(noise({1, 8}, 4))),
                      "join_rows: expected rows of one number type, got bf16 and fp32");
}

TEST_CASE("linear with rows as classes has its gradients", "[autograd]") {
  Fixture f;
  ParameterSet more;
  Dense head;
  head.layout = ops::WeightLayout::out_in;
  head.parts = {{&more.add("w", {2, 4}, kNormal), &more.add("b", {2}, kNormal)}};
  more.initialize(3);
  REQUIRE(head.in() == 4);
  REQUIRE(head.out() == 2);
  check_gradients([&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{linear(on, in[0], head)}; },
                  {noise({5, 4}, 1)}, {head.parts[0].kernel, head.parts[0].bias});
}

TEST_CASE("activations have their gradients", "[autograd]") {
  Fixture f;
  for (const auto act : {ops::Activation::linear, ops::Activation::tanh, ops::Activation::gelu}) {
    check_gradients([&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{activation(on, in[0], act)}; },
                    {noise({5, 4}, 2)}, {});
  }
}

TEST_CASE("feed_forward equals linear, activation, linear, values and gradients", "[autograd]") {
  Fixture f;
  ParameterSet more;
  Dense inner, outer;
  inner.parts = {{&more.add("i/k", {4, 6}, kNormal), &more.add("i/b", {6}, kNormal)}};
  outer.parts = {{&more.add("o/k", {6, 4}, kNormal), &more.add("o/b", {4}, kNormal)}};
  more.initialize(6);
  const auto gradients = [&](bool fused) {
    Tape tape(Recording::on);
    Var x(noise({5, 4}, 3), true);
    more.drop_gradients();
    std::vector<Var> y = {fused ? feed_forward(tape, x, inner, ops::Activation::gelu, outer)
                                : linear(tape, activation(tape, linear(tape, x, inner), ops::Activation::gelu), outer)};
    std::vector<Tensor> all = {y[0].value()};
    test::seed_weighted_sum(y);
    tape.backward();
    all.push_back(x.grad());
    for (const auto& parameter : more.all()) all.push_back(parameter->grad.clone());
    return all;
  };
  const auto fused = gradients(true), composed = gradients(false);
  for (std::size_t i = 0; i < fused.size(); ++i) REQUIRE(equal_bits(fused[i], composed[i]));
  // Inference computes blocks of rows, with the activation fused into the product: same bits.
  Tape silent(Recording::off);
  REQUIRE(
      equal_bits(feed_forward(silent, Var(noise({5, 4}, 3)), inner, ops::Activation::gelu, outer).value(), fused[0]));
}

TEST_CASE("layer norms and residual sums have their gradients, with dropout", "[autograd]") {
  Fixture f;
  const std::vector<Parameter*> norm = {f.gamma, f.beta};
  const Tensor x = noise({5, 4}, 4), branch = noise({5, 4}, 5);
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{layer_norm(on, in[0], *f.gamma, *f.beta)}; },
      {x}, norm);
  for (const Dropout& dropped : {Dropout(), f.dropout(DropoutSite::long_feed_forward)}) {
    check_gradients(
        [&](Tape& on, const std::vector<Var>& in) {
          return std::vector<Var>{residual_layer_norm(on, in[0], in[1], *f.gamma, *f.beta, dropped)};
        },
        {x, branch}, norm);
    check_gradients(
        [&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{residual(on, in[0], in[1], dropped)}; },
        {x, branch}, {});
  }
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) {
        return std::vector<Var>{dropout(on, in[0], f.dropout(DropoutSite::head))};
      },
      {x}, {});
}

TEST_CASE("scaled residual sums have their gradients, that of the scale also at 0", "[autograd]") {
  Fixture f;
  ParameterSet more;
  Parameter& alpha = more.add("rezero_alpha", {1}, {});
  more.initialize(1);
  for (const float value : {0.0f, -0.7f}) {
    alpha.value.data()[0] = value;
    check_gradients(
        [&](Tape& on, const std::vector<Var>& in) {
          return std::vector<Var>{scaled_residual(on, in[0], in[1], alpha)};
        },
        {noise({5, 4}, 4), noise({5, 4}, 5)}, {&alpha});
    CHECK(alpha.grad.data()[0] != 0);
  }
  Tape tape(Recording::off);
  CHECK_THROWS_WITH(scaled_residual(tape, Var(noise({5, 4}, 4)), Var(noise({5, 3}, 4)), alpha),
                    "scaled_residual: x and branch must have equal shapes: x [5, 4], branch [5, 3]");
}

TEST_CASE("residual sums scaled column by column, or by a fixed number, have their gradients", "[autograd]") {
  Fixture f;
  ParameterSet more;
  Parameter& omega = more.add("admin_omega", {4}, {});
  omega.value = noise({4}, 6);
  const std::vector<Tensor> inputs = {noise({5, 4}, 4), noise({5, 4}, 5)};
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{scaled_residual(on, in[0], in[1], omega)}; },
      inputs, {&omega});
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{scaled_residual(on, in[0], in[1], -1.3f)}; },
      inputs, {});
  // One variable as both inputs: it gets the sum of both gradients.
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) { return std::vector<Var>{scaled_residual(on, in[0], in[0], 2.5f)}; },
      {inputs[0]}, {});
  Parameter& wide = more.add("wide", {3}, {});
  wide.value = noise({3}, 7);
  Tape tape(Recording::off);
  CHECK_THROWS_WITH(scaled_residual(tape, Var(inputs[0]), Var(inputs[1]), wide),
                    "scaled_residual: wide: expected one number or 4, one for each column, got 3");
}

TEST_CASE("a fused residual layer norm equals the sum and the norm, values and gradients", "[autograd]") {
  Fixture f;
  const Dropout dropped = f.dropout(DropoutSite::global_feed_forward);
  const auto run = [&](bool fused) {
    Tape tape(Recording::on);
    Var x(noise({5, 4}, 4), true), branch(noise({5, 4}, 5), true);
    f.parameters.drop_gradients();
    std::vector<Var> y = {fused ? residual_layer_norm(tape, x, branch, *f.gamma, *f.beta, dropped)
                                : layer_norm(tape, residual(tape, x, branch, dropped), *f.gamma, *f.beta)};
    std::vector<Tensor> all = {y[0].value()};
    test::seed_weighted_sum(y);
    tape.backward();
    for (const Tensor& gradient : {x.grad(), branch.grad(), f.gamma->grad, f.beta->grad}) all.push_back(gradient);
    return all;
  };
  const auto fused = run(true), composed = run(false);
  for (std::size_t i = 0; i < fused.size(); ++i) REQUIRE(equal_bits(fused[i], composed[i]));
}

TEST_CASE("a variable used twice gets the sum of both gradients", "[autograd]") {
  Fixture f;
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) {
        const Var y = layer_norm(on, in[0], *f.gamma, *f.beta);
        const Var z = linear(on, in[0], f.dense);
        return std::vector<Var>{residual(on, y, in[0], Dropout()), z, residual(on, y, y, Dropout())};
      },
      {noise({5, 4}, 6)}, {f.gamma, f.beta, f.dense.parts[0].kernel});
}

TEST_CASE("embeddings have the gradients of their tables", "[autograd]") {
  Fixture f;
  ParameterSet more;
  const auto ids = [](std::vector<std::int32_t> list) {
    return std::make_shared<const std::vector<std::int32_t>>(std::move(list));
  };
  const Lookup tokens{&more.add("tokens", {6, 4}, kNormal), ids({5, 0, 5, 2, 5}), "token_ids"};
  const Lookup segments{&more.add("segments", {2, 4}, kNormal), ids({0, 1, 7, 1, 0}), "segment_ids"};
  const Lookup positions{&more.add("positions", {3, 4}, kNormal), ids({0, 1, 2, 0, 1}), "position_ids"};
  more.initialize(9);
  check_gradients(
      [&](Tape& on, const std::vector<Var>& in) {
        return std::vector<Var>{embedding(on, {.rows = f.rows,
                                               .width = 4,
                                               .base = in[0],
                                               .tokens = tokens,
                                               .segments = segments,
                                               .positions = positions,
                                               .adder = in[1]})};
      },
      {noise({5, 4}, 7), noise({5, 4}, 8)}, {tokens.table, segments.table, positions.table});
}

TEST_CASE("a parameter that no gradient reaches keeps none", "[autograd]") {
  Fixture f;
  Tape tape(Recording::on);
  Var x(noise({5, 4}, 1), true);
  const Var unused = linear(tape, x, f.dense);
  Var used = layer_norm(tape, x, *f.gamma, *f.beta);
  used.grad();
  tape.backward();
  REQUIRE(f.gamma->grad);
  REQUIRE(!f.dense.parts[0].kernel->grad);
  REQUIRE(!f.dense.parts[0].bias->grad);
}

TEST_CASE("checkpointing gives the same bits with less memory", "[autograd]") {
  Fixture f;
  const auto section = [&](Tape& on, const std::vector<Var>& in) {
    Var x = in[0];
    for (int i = 0; i < 6; ++i) {
      x = residual_layer_norm(on, x, x, *f.gamma, *f.beta, f.dropout(DropoutSite::long_feed_forward));
    }
    return std::vector<Var>{x, linear(on, x, f.dense)};
  };
  struct Result {
    Tensor value, dx, dgamma, dkernel;
    std::int64_t saved;
  };
  const auto run = [&](bool checkpointed) {
    f.parameters.drop_gradients();
    const std::int64_t before = memory_ledger::report().total;
    Tape tape(Recording::on);
    Var x(noise({5, 4}, 1), true);
    std::vector<Var> y = checkpointed ? checkpoint(tape, {x}, section, section) : section(tape, {x});
    Result result;
    result.saved = memory_ledger::report().total - before;
    result.value = y[1].value();
    test::seed_weighted_sum(y);
    y.clear();
    tape.backward();
    result.dx = x.grad();
    result.dgamma = f.gamma->grad;
    result.dkernel = f.dense.parts[0].kernel->grad;
    return result;
  };
  const Result plain = run(false), saving = run(true);
  REQUIRE(equal_bits(plain.value, saving.value));
  REQUIRE(equal_bits(plain.dx, saving.dx));
  REQUIRE(equal_bits(plain.dgamma, saving.dgamma));
  REQUIRE(equal_bits(plain.dkernel, saving.dkernel));
  REQUIRE(saving.saved < plain.saved);
}

TEST_CASE("checkpointing leaves unused results and inputs without gradients", "[autograd]") {
  Fixture f;
  Tape tape(Recording::on);
  Var x(noise({5, 4}, 1), true), y(noise({5, 4}, 2), true);
  const auto section = [&](Tape& on, const std::vector<Var>& in) {
    return std::vector<Var>{layer_norm(on, in[0], *f.gamma, *f.beta), linear(on, in[1], f.dense)};
  };
  std::vector<Var> out = checkpoint(tape, {x, y}, section, section);
  out[0].grad().data()[0] = 1;
  tape.backward();
  REQUIRE(x.has_grad());
  REQUIRE(!y.has_grad());
  REQUIRE(f.gamma->grad);
  REQUIRE(!f.dense.parts[0].kernel->grad);
}

TEST_CASE("shapes that do not fit are errors naming them", "[autograd]") {
  Fixture f;
  Tape tape(Recording::off);
  const Var x(noise({5, 3}, 1));
  REQUIRE_THROWS_WITH(linear(tape, x, f.dense), Contains("linear: x: expected [M, 4], got [5, 3]"));
  REQUIRE_THROWS_WITH(residual(tape, x, Var(noise({5, 4}, 1)), Dropout()),
                      Contains("x and branch must have equal shapes: x [5, 3], branch [5, 4]"));
  Dense unset;
  ParameterSet more;
  unset.parts = {{&more.add("late/kernel", {3, 2}, kNormal), nullptr}};
  REQUIRE_THROWS_WITH(linear(tape, x, unset), Contains("late/kernel has no value yet"));
}
