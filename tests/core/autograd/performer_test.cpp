#include "etc_core/autograd/performer.h"

#include <cstring>

#include "etc_core/nn/backends.h"
#include "sparse/performer_projection.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Contains;
using test::check_gradients;
using test::noise;

namespace {

// Two heads of 4, 10 features.
Tensor projection() {
  Tensor drawn = Tensor::empty({10, 4}, Purpose::weights);
  sparse::draw_projection({10, 4, sparse::PerformerDraw::Norms::chi, 3}, drawn.data());
  return drawn;
}

std::shared_ptr<const PerformerBatch> batch_of(std::vector<std::int64_t> queries, std::vector<std::int64_t> keys,
                                               bool causal) {
  return std::make_shared<const PerformerBatch>(PerformerBatch{std::move(queries), std::move(keys), 2, 4, causal});
}

}  // namespace

TEST_CASE("gradients of linear attention on a tape are those of its values", "[autograd]") {
  register_cpu_backend();
  const Tensor directions = projection();
  for (const bool causal : {false, true}) {
    const auto batch = batch_of({0, 3, 8}, {0, 3, 8}, causal);
    check_gradients(
        [&](Tape& tape, const std::vector<Var>& x) {
          return std::vector<Var>{performer(tape, batch, directions, {{x[0], 0}, {x[1], 0}, {x[2], 0}})};
        },
        {noise({8, 8}, 1), noise({8, 8}, 2), noise({8, 8}, 3)}, {});
  }
  // Keys of another sequence; then one variable as q, k and v.
  const auto cross = batch_of({0, 2, 5}, {0, 4, 6}, false);
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& x) {
        return std::vector<Var>{performer(tape, cross, directions, {{x[0], 0}, {x[1], 0}, {x[2], 0}})};
      },
      {noise({5, 8}, 1), noise({6, 8}, 2), noise({6, 8}, 3)}, {});
  const auto self = batch_of({0, 5}, {0, 5}, true);
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& x) {
        return std::vector<Var>{performer(tape, self, directions, {{x[0], 0}, {x[0], 0}, {x[0], 0}})};
      },
      {noise({5, 8}, 1)}, {});
}

TEST_CASE("linear attention reads columns of one product, and refuses them while it records", "[autograd]") {
  register_cpu_backend();
  const Tensor directions = projection(), joined = noise({5, 24}, 4);
  const auto batch = batch_of({0, 5}, {0, 5}, false);
  const auto part = [&](std::int64_t first) {
    Tensor columns = Tensor::empty({5, 8}, Purpose::activations);
    for (std::int64_t i = 0; i < 40; ++i) columns.data()[i] = joined.data()[i / 8 * 24 + first + i % 8];
    return Var(columns);
  };
  Tape silent(Recording::off), recording(Recording::on);
  const Var together = performer(silent, batch, directions, {{Var(joined), 0}, {Var(joined), 8}, {Var(joined), 16}});
  const Var apart = performer(silent, batch, directions, {{part(0), 0}, {part(8), 0}, {part(16), 0}});
  CHECK(std::memcmp(together.value().data(), apart.value().data(), 40 * sizeof(float)) == 0);
  CHECK_THROWS_WITH(performer(recording, batch, directions, {{Var(joined), 0}, {Var(joined), 8}, {Var(joined), 16}}),
                    Contains("performer: expected inputs of N·D=8 columns, got [5, 24] from column 0"));
  CHECK_THROWS_WITH(performer(silent, batch, noise({10, 5}, 1), {{part(0), 0}, {part(8), 0}, {part(16), 0}}),
                    Contains("projection: expected [m, D=4], got [10, 5]"));
}
