// Tables of relative positions resized to another clipping distance: results of models with them, and cases that cannot
// be resized.
#include "etc_core/nn/resize_positions.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using Method = PositionConfig::Method;
using Sharing = PositionConfig::Sharing;
using test::sequences;
using test::SmallDense;

DenseConfig clipped(Method method, std::int64_t clip, Sharing sharing = Sharing::layer_head) {
  DenseConfig config = test::small_dense();
  config.max_absolute_position_embeddings = 0;
  config.relative_positions = method;
  config.relative_clip = clip;
  config.relative_sharing = sharing;
  config.relative_init = PositionConfig::TableInit::normal;
  return config;
}

// States with the weights of another configuration's model, whose tables are resized.
Tensor resized_states(const DenseConfig& from, const DenseConfig& to, const EncoderInput& input) {
  const test::TemporaryFolder folder;
  SmallDense source(from);
  save_model(folder / "model", {{"model", from.to_json()}}, source.parameters);
  SmallDense model(to);
  load_parameters(folder / "model/model.safetensors", model.parameters, Match::exact, [&](const Parameter& parameter) {
    return is_position_table(parameter.name) ? resized_rows(from, to) : std::vector<std::int64_t>();
  });
  return model.states(input);
}

// Not compared bit by bit, because sums over rows of a table may run in another order.
double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double off = std::fabs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
    if (!(off <= largest)) largest = off;
  }
  return largest;
}

TEST_CASE("extended tables compute what the clipped ones did, and cut ones do for near tokens", "[nn]") {
  const EncoderInput far = sequences({20, 7}), near = sequences({4, 3});
  for (const Method method : {Method::shaw, Method::shaw_values, Method::huang1, Method::huang2, Method::huang3,
                              Method::huang4, Method::etc}) {
    for (const Sharing sharing : {Sharing::layer_head, Sharing::model}) {
      CAPTURE(static_cast<int>(method), static_cast<int>(sharing));
      const DenseConfig own = clipped(method, 6, sharing);
      SmallDense model(own);
      CHECK(largest_difference(resized_states(own, clipped(method, 19, sharing), far), model.states(far)) < 1e-4);
      CHECK(largest_difference(resized_states(own, clipped(method, 3, sharing), near), model.states(near)) < 1e-4);
      CHECK(largest_difference(resized_states(own, clipped(method, 3, sharing), far), model.states(far)) > 1e-2);
    }
  }
  // Sinusoids are computed for any clip.
  const DenseConfig own = clipped(Method::nezha_index, 6);
  CHECK(resized_states(own, clipped(Method::nezha_index, 9), far).size() > 0);
}

TEST_CASE("the hint at a table of another shape is that of its method", "[nn]") {
  const test::TemporaryFolder folder;
  const auto message = [&](const DenseConfig& from, const DenseConfig& to, const RowChoice& rows = {}) {
    SmallDense source(from), other(to);
    save_model(folder / "model", {{"model", from.to_json()}}, source.parameters);
    try {
      load_parameters(folder / "model/model.safetensors", other.parameters, Match::exact, rows);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  DenseConfig few = clipped(Method::t5, 6), many = few;
  few.relative_buckets = 16;
  many.relative_buckets = 32;
  CHECK_THAT(message(few, many), Contains("relative_buckets") && Contains("16, which cannot be cut or extended") &&
                                     !Contains("resize_relative"));
  const DenseConfig shaw = clipped(Method::shaw, 6);
  CHECK_THAT(message(shaw, clipped(Method::shaw, 9, PositionConfig::Sharing::layer)),
             Contains("expected [19, 12], got [13, 2, 12] (the checkpoint has relative_positions shaw, "
                      "relative_sharing layer+head") &&
                 !Contains("resize_relative"));
  // Resizing was requested but rows do not fit: the message must not advise to request it.
  const RowChoice beyond = [](const Parameter&) { return std::vector<std::int64_t>(19, 13); };
  CHECK_THAT(message(shaw, clipped(Method::shaw, 9), beyond),
             Contains("got [13, 2, 12] (not the rows of relative_clip 6") && !Contains("resize_relative"));
}

TEST_CASE("tables of another clip are refused unless they are to be resized, both sizes being said", "[nn]") {
  const test::TemporaryFolder folder;
  const DenseConfig own = clipped(Method::shaw, 6);
  SmallDense source(own), other(clipped(Method::shaw, 9));
  save_model(folder / "model", {{"model", own.to_json()}}, source.parameters);
  CHECK_THROWS_WITH(load_parameters(folder / "model/model.safetensors", other.parameters),
                    Contains("relative_table expected [19, 2, 12], got [13, 2, 12] (of another relative_clip"));
  CHECK_THROWS_WITH(resized_rows(own, clipped(Method::huang4, 6)),
                    Contains("expected a checkpoint with the model's relative_positions huang4, got shaw"));
  CHECK_THROWS_WITH(resized_rows(clipped(Method::t5, 6), clipped(Method::t5, 9)),
                    Contains("expected clipped distances, got buckets of t5, which cannot be cut or extended"));
}

}  // namespace
}  // namespace etc
