// Losses of spans and classes: the worked numbers of the specifications, gradients, bits.
#include "tasks/span/loss.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;
using Numbers = std::vector<std::int64_t>;

namespace {

// Losses and gradient of three examples of very different length, two choices each.
struct Ragged {
  Numbers offsets = {0, 1, 8, 300};
  Numbers labels = {0, 0, 6, 2, 17, 500};  // the last lies outside: no loss
  Tensor logits = test::noise({300, 2}, 4);

  span::PositionLoss args() const { return {offsets, logits.data(), 2, labels, 0.25, nullptr}; }
};

}  // namespace

TEST_CASE("span and type losses give the worked numbers of HotpotQA", "[tasks][span]") {
  register_cpu_backend();
  const Numbers offsets = {0, 4}, labels = {2, 3}, type = {0};
  const std::vector<float> logits = {0, 0, 1, 0, 2, 0, 3, 2};  // [4, 2]
  const auto losses = span::position_losses({offsets, logits.data(), 2, labels, 1, nullptr});
  CHECK(losses[0] == Approx(1.4401897).margin(1e-7));
  CHECK(losses[1] == Approx(0.3407530).margin(1e-7));
  const std::vector<float> types = {1, 0, -1};
  CHECK(span::class_losses({types.data(), 3, type, 1, nullptr})[0] == Approx(0.4076060).margin(1e-7));
}

TEST_CASE("four positions and five classes give the worked numbers of Natural Questions", "[tasks][span]") {
  register_cpu_backend();
  const Numbers offsets = {0, 4}, labels = {0, 1, 3, 1}, type = {4};
  const std::vector<float> logits = {1, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0};  // [4, 4]
  const auto losses = span::position_losses({offsets, logits.data(), 4, labels, 1, nullptr});
  const double expected[] = {0.743668, 1.743668, 1.386294, 0.340753};
  double sum = 0;
  for (std::size_t c = 0; c < 4; ++c) {
    CHECK(losses[c] == Approx(expected[c]).margin(1e-6));
    sum += losses[c];
  }
  const std::vector<float> types = {0, 0, 0, 0, 1};
  sum += span::class_losses({types.data(), 5, type, 1, nullptr})[0];
  CHECK(sum / 5 == Approx(1.023843).margin(1e-6));
}

TEST_CASE("a label outside its example has no loss and no gradient", "[tasks][span]") {
  register_cpu_backend();
  const Numbers offsets = {0, 2, 5}, labels = {2, span::kNoLabel};
  const std::vector<float> logits = {1, 2, 3, 4, 5};
  std::vector<float> gradient(5, 7);
  const auto losses = span::position_losses({offsets, logits.data(), 1, labels, 1, gradient.data()});
  CHECK(losses == std::vector<double>{0, 0});
  CHECK(gradient == std::vector<float>(5, 0));
  const Numbers types = {span::kNoLabel};
  CHECK(span::class_losses({logits.data(), 3, types, 1, gradient.data()})[0] == 0);
  const Numbers wrong = {3};
  CHECK_THROWS_AS(span::class_losses({logits.data(), 3, wrong, 1, nullptr}), Error);
}

TEST_CASE("gradients of span losses equal central differences", "[tasks][span]") {
  register_cpu_backend();
  const Ragged ragged;
  std::vector<float> gradient(600);
  span::PositionLoss args = ragged.args();
  args.dlogits = gradient.data();
  span::position_losses(args);
  const auto total = [&] {
    double sum = 0;
    for (const double loss : span::position_losses(ragged.args())) sum += loss * 0.25;
    return sum;
  };
  for (std::int64_t i = 0; i < 600; ++i) {
    const double numeric = test::numeric_derivative(total, ragged.logits.data()[i], 1e-2f);
    REQUIRE(std::abs(numeric - gradient[static_cast<std::size_t>(i)]) < 1e-5);
  }
}

TEST_CASE("span losses have the same bits for any thread count and any neighbours", "[tasks][span]") {
  register_cpu_backend();
  const Ragged ragged;
  const int threads = thread_count();
  set_thread_count(1);
  const auto expected = span::position_losses(ragged.args());
  set_thread_count(4);
  CHECK(span::position_losses(ragged.args()) == expected);
  set_thread_count(threads);
  const Numbers alone = {0, 292}, labels = {17, 500};
  const auto last = span::position_losses({alone, ragged.logits.data() + 16, 2, labels, 1, nullptr});
  CHECK(last[0] == expected[4]);
}
