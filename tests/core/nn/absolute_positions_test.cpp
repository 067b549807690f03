// Fixed absolute positions of the dense encoder: rows of sines and cosines.
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/position_tables.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {
namespace {

using Catch::Matchers::Contains;
using Rows = DenseConfig::AbsolutePositions;

struct Layout {
  Rows rows;
  SinusoidLayout layout;
  std::int64_t first;  // position of the first token
};
const std::vector<Layout> kLayouts = {{Rows::interleaved, SinusoidLayout::interleaved, 0},
                                      {Rows::halves_t2t, SinusoidLayout::halves_t2t, 2},
                                      {Rows::halves_xl, SinusoidLayout::halves_xl, 0}};

DenseConfig with_rows(Rows rows) {
  DenseConfig config = small_dense();
  config.absolute_positions = rows;
  return config;
}

// Gives the encoder with learned rows the rows of the layout, and otherwise the values of `model`.
void become_learned(SmallDense& learned, SmallDense& model, const Layout& of) {
  for (const auto& parameter : learned.parameters.all()) {
    const Parameter* const same = model.parameters.find(parameter->name);
    if (same != nullptr) {
      parameter->value = same->value;
      continue;
    }
    REQUIRE(parameter->name == "bert/embeddings/position_embeddings");
    std::vector<std::int64_t> positions;
    for (std::int64_t p = 0; p < parameter->shape[0]; ++p) positions.push_back(of.first + p);
    parameter->value =
        Tensor::from(sinusoids(of.layout, positions, parameter->shape[1]), parameter->shape, Purpose::weights);
  }
}

TEST_CASE("sinusoids in place of learned positions are a table with these rows, which no checkpoint holds", "[nn]") {
  const EncoderInput input = sequences({17, 40, 3});
  for (const Layout& of : kLayouts) {
    CAPTURE(static_cast<int>(of.layout));
    SmallDense fixed(with_rows(of.rows)), learned(small_dense());
    CHECK(learned.parameters.count() - fixed.parameters.count() == 64 * 24);
    CHECK(fixed.parameters.find("bert/embeddings/position_embeddings") == nullptr);
    become_learned(learned, fixed, of);
    const Tensor a = fixed.states(input), b = learned.states(input);
    CHECK(std::equal(a.data(), a.data() + a.size(), b.data()));
    ForwardOptions training;
    training.training = true;
    const DenseGradients of_fixed = fixed.gradients(input, training), all = learned.gradients(input, training);
    CHECK(all.size() == of_fixed.size() + 1);
    for (const auto& [name, gradient] : of_fixed) {
      CAPTURE(name);
      CHECK(gradient == all.at(name));
    }
  }
}

TEST_CASE("positions of an input select rows of sinusoids, as many as there are", "[nn]") {
  SmallDense model(with_rows(Rows::interleaved));
  EncoderInput counted = sequences({5}), moved = sequences({5});
  counted.position_ids = {0, 1, 2, 3, 4};
  moved.position_ids = {0, 1, 2, 3, 63};
  const Tensor usual = model.states(sequences({5})), same = model.states(counted), other = model.states(moved);
  CHECK(std::equal(usual.data(), usual.data() + usual.size(), same.data()));
  CHECK_FALSE(std::equal(usual.data(), usual.data() + usual.size(), other.data()));
  moved.position_ids[4] = 64;
  CHECK_THROWS_WITH(model.states(moved), Contains("max_absolute_position_embeddings=64"));
  CHECK_THROWS_WITH(model.states(sequences({65})), Contains("at most max_absolute_position_embeddings=64, got 65"));
}

TEST_CASE("sinusoids that cannot be meant are refused, and odd widths warned of", "[nn]") {
  DenseConfig config = with_rows(Rows::halves_xl);
  config.max_absolute_position_embeddings = 0;
  CHECK_THROWS_WITH(config.validate(), Contains("absolute_positions: expected learned with "
                                                "max_absolute_position_embeddings 0, got halves_xl"));
  const test::TemporaryFolder folder;
  log::also_to_file(folder / "log.txt");
  for (const Layout& of : kLayouts) {
    DenseConfig odd = with_rows(of.rows);
    odd.hidden_size = 13;
    odd.att_size_per_head = 6;
    CHECK(SmallDense(odd).states(sequences({9})).size() == 9 * 13);
    const ModelConfig read = model_config_from_json(odd.to_json(), "test", UnknownKeys::refuse);
    CHECK(read->to_json() == odd.to_json());
  }
  CHECK_THAT(read_file(folder / "log.txt"),
             Contains("absolute_positions: a width of H=13 leaves a sine without cosine") &&
                 Contains("absolute_positions: a width of H=13 leaves a last column of zeros"));
}

}  // namespace
}  // namespace etc::test
