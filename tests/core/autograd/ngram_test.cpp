// Segments of rows and convolutions over rows: values from formulas, gradients by finite differences, equal bits.
#include "etc_core/autograd/ngram.h"

#include "etc_core/nn/backends.h"
#include "etc_core/nn/parameters.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/core/tensor_values.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using test::check_gradients;
using test::noise;

namespace {

constexpr Initializer kNgramInit{Initializer::Kind::truncated_normal, 0.5f};

SegmentOffsets offsets_of(std::vector<std::int64_t> offsets) {
  return std::make_shared<const std::vector<std::int64_t>>(std::move(offsets));
}

std::shared_ptr<const RaggedRows> pages(std::vector<std::int64_t> offsets) {
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets = std::move(offsets);
  rows->sample_ordinals.resize(rows->offsets.size() - 1);
  return rows;
}

// A convolution of k rows, 3 columns to 2.
struct Convolution {
  ParameterSet parameters;
  Parameter *kernel, *bias;

  explicit Convolution(std::int64_t k, std::int64_t in = 3, std::int64_t out = 2) {
    register_cpu_backend();
    kernel = &parameters.add("kernel", {k, in, out}, kNgramInit);
    bias = &parameters.add("bias", {out}, kNgramInit);
    parameters.initialize(9);
  }
};

// y_j of the header's formula, in double.
std::vector<double> convolved(const Tensor& x, const RaggedRows& rows, const Convolution& c) {
  const std::int64_t k = c.kernel->shape[0], in = c.kernel->shape[1], out = c.kernel->shape[2];
  std::vector<double> y(static_cast<std::size_t>(x.rows() * out), 0.0);
  for (std::size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    for (std::int64_t j = rows.offsets[b]; j + k <= rows.offsets[b + 1]; ++j) {
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = c.bias->value.data()[o];
        for (std::int64_t t = 0; t < k; ++t) {
          for (std::int64_t i = 0; i < in; ++i) {
            sum += static_cast<double>(x.data()[(j + t) * in + i]) * c.kernel->value.data()[(t * in + i) * out + o];
          }
        }
        y[static_cast<std::size_t>(j * out + o)] = sum;
      }
    }
  }
  return y;
}

}  // namespace

TEST_CASE("a sum over runs of rows leaves empty runs zero, spreading is its gradient", "[autograd]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const auto offsets = offsets_of({0, 2, 2, 3, 5, 5});
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2}, Purpose::activations);
  CHECK(test::values_of(sum_segments(tape, Var(x), offsets).value()) ==
        std::vector<float>{4, 6, 0, 0, 5, 6, 16, 18, 0, 0});
  const Tensor s = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2}, Purpose::activations);
  CHECK(test::values_of(spread_segments(tape, Var(s), offsets).value()) ==
        std::vector<float>{1, 2, 1, 2, 5, 6, 7, 8, 7, 8});
  // Twice, so that the second gradient is added to the first.
  const auto twice = [&](auto fn) {
    check_gradients(
        [&](Tape& on, const std::vector<Var>& in) {
          return std::vector<Var>{fn(on, in[0], offsets), fn(on, in[0], offsets)};
        },
        {noise({5, 2}, 4)}, {});
  };
  twice(sum_segments);
  twice(spread_segments);
}

TEST_CASE("runs that do not fit their rows are refused", "[autograd]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const Var x(noise({5, 2}, 1));
  CHECK_THROWS_WITH(sum_segments(tape, x, offsets_of({0, 2, 4})),
                    "sum_segments: expected the segments to own all M=5 rows, got 4");
  CHECK_THROWS_WITH(sum_segments(tape, x, offsets_of({0, 6, 5})),
                    "sum_segments: offsets: expected non-decreasing, got 5 after 6 at 2");
  CHECK_THROWS_WITH(sum_segments(tape, x, offsets_of({1, 5})),
                    "sum_segments: offsets: expected the first to be 0, got 1");
  CHECK_THROWS_WITH(spread_segments(tape, x, offsets_of({0, 2})), "spread_segments: expected 1 segments, got x [5, 2]");
}

TEST_CASE("an n-gram convolution stays within its example", "[autograd]") {
  for (const std::int64_t k : {1, 2, 3, 5}) {
    Convolution c(k);
    // Examples of 4, 1, 0 and 7 rows.
    const auto rows = pages({0, 4, 5, 5, 12});
    const Tensor x = noise({12, 3}, 7);
    Tape tape(Recording::off);
    const Tensor y = ngram_convolution(tape, Var(x), rows, *c.kernel, *c.bias).value();
    CAPTURE(k);
    CHECK(test::near_all("y", test::values_of(y), convolved(x, *rows, c), 2e-6));
    check_gradients(
        [&](Tape& on, const std::vector<Var>& in) {
          return std::vector<Var>{ngram_convolution(on, in[0], rows, *c.kernel, *c.bias),
                                  ngram_convolution(on, in[0], rows, *c.kernel, *c.bias)};
        },
        {x}, {c.kernel, c.bias});
  }
}

TEST_CASE("an n-gram convolution longer than everything gives zeros and no gradient", "[autograd]") {
  Convolution c(5);
  Tape tape(Recording::on);
  Var x(noise({3, 3}, 1), true);
  Var y = ngram_convolution(tape, x, pages({0, 3}), *c.kernel, *c.bias);
  CHECK(test::values_of(y.value()) == std::vector<float>(6, 0.0f));
  y.grad().data()[0] = 1;
  tape.backward();
  CHECK(test::values_of(x.grad()) == std::vector<float>(9, 0.0f));
  CHECK(test::values_of(c.kernel->grad) == std::vector<float>(30, 0.0f));
}

TEST_CASE("n-grams have the same bits alone, in a batch and for any thread count", "[autograd]") {
  constexpr std::int64_t kIn = 48, kOut = 200;
  Convolution c(3, kIn, kOut);
  const std::int64_t before = 71, own = 130, behind = 40;
  const Tensor x = noise({before + own + behind, kIn}, 3);
  const auto run = [&](const Tensor& input, const std::shared_ptr<const RaggedRows>& rows, bool gradient) {
    Tape tape(gradient ? Recording::on : Recording::off);
    Var leaf(input, gradient);
    c.parameters.drop_gradients();
    std::vector<Var> y = {ngram_convolution(tape, leaf, rows, *c.kernel, *c.bias)};
    if (!gradient) return test::values_of(y[0].value());
    test::seed_weighted_sum(y);
    tape.backward();
    std::vector<float> all = test::values_of(leaf.grad());
    for (const Parameter* p : {c.kernel, c.bias}) {
      const auto more = test::values_of(p->grad);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const auto batch = pages({0, before, before + own, before + own + behind});
  const std::vector<float> together = run(x, batch, false);
  const Tensor middle =
      Tensor::from({x.data() + before * kIn, x.data() + (before + own) * kIn}, {own, kIn}, Purpose::activations);
  const std::vector<float> alone = run(middle, pages({0, own}), false);
  CHECK(test::same_bits(alone, {together.begin() + before * kOut, together.begin() + (before + own) * kOut}));
  CHECK(test::same_bits_for_any_thread_count([&] { return run(x, batch, true); }));
  CHECK(test::same_bits_for_any_thread_count([&] {
    Tape tape(Recording::off);
    return test::values_of(sum_segments(tape, Var(x), offsets_of({0, before, before, before + own + behind})).value());
  }));
}
