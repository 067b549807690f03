#include "etc_core/nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Contains;

namespace {

constexpr Initializer kNormal{Initializer::Kind::truncated_normal, 0.5f};

std::vector<float> values(const Parameter& parameter) {
  return {parameter.value.data(), parameter.value.data() + parameter.size()};
}

std::int64_t encoder_count(EtcConfig config) {
  ParameterSet parameters;
  const EtcEncoder encoder(config, parameters);
  return parameters.count();
}

}  // namespace

TEST_CASE("a parameter's start depends on seed, name and element alone", "[nn]") {
  ParameterSet a, b;
  a.add("x", {100, 3}, kNormal);
  a.add("y", {7}, kNormal);
  b.add("z", {5}, kNormal);
  b.add("x", {300, 2}, kNormal);  // more elements: the common ones are equal
  a.initialize(3);
  b.initialize(3);
  const std::vector<float> x = values(a.at("x")), longer = values(b.at("x"));
  REQUIRE(std::equal(x.begin(), x.end(), longer.begin()));
  REQUIRE(values(a.at("y")) != values(b.at("z")));
  ParameterSet c;
  c.add("x", {100, 3}, kNormal);
  c.initialize(4);
  REQUIRE(values(c.at("x")) != x);
}

TEST_CASE("initial values are the same for any thread count", "[nn]") {
  const int before = thread_count();
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    ParameterSet set;
    set.add("x", {300, 1001}, kNormal);
    set.initialize(1);
    if (first.empty()) first = values(set.at("x"));
    REQUIRE(values(set.at("x")) == first);
  }
  set_thread_count(before);
}

TEST_CASE("initial values follow their distributions", "[nn]") {
  ParameterSet set;
  set.add("normal", {1000, 400}, kNormal);
  set.add("glorot", {300, 100}, {Initializer::Kind::glorot_uniform, 0});
  set.add("zeros", {4}, {Initializer::Kind::zeros, 0});
  set.add("ones", {4}, {Initializer::Kind::ones, 0});
  set.initialize(11);
  double sum = 0, squares = 0, largest = 0;
  std::int64_t inside = 0;
  for (const float x : values(set.at("normal"))) {
    sum += x;
    squares += static_cast<double>(x) * x;
    largest = std::max(largest, std::abs(static_cast<double>(x)));
    inside += std::abs(x) < 0.5f ? 1 : 0;
  }
  // Standard normal truncated at ±2: variance 1 - 4 phi(2)/(2 Phi(2) - 1) = 0.77374, within one: 0.6827/0.9545 =
  // 0.71524.
  // The bounds are five standard errors of 400,000 samples.
  const double n = 400000;
  REQUIRE(std::abs(sum / n) < 5 * 0.5 * 0.88 / std::sqrt(n));
  REQUIRE(squares / n == Approx(0.25 * 0.773741).epsilon(0.01));
  REQUIRE(static_cast<double>(inside) / n == Approx(0.715240).epsilon(0.005));
  REQUIRE(largest <= 1.0);
  REQUIRE(largest > 0.999);
  const double limit = std::sqrt(6.0 / 400);
  const std::vector<float> glorot = values(set.at("glorot"));
  REQUIRE(*std::max_element(glorot.begin(), glorot.end()) <= limit);
  REQUIRE(*std::max_element(glorot.begin(), glorot.end()) > 0.99 * limit);
  REQUIRE(*std::min_element(glorot.begin(), glorot.end()) < -0.99 * limit);
  REQUIRE(values(set.at("zeros")) == std::vector<float>(4, 0));
  REQUIRE(values(set.at("ones")) == std::vector<float>(4, 1));
}

TEST_CASE("parameters are found by name, with a suggestion when not", "[nn]") {
  ParameterSet set;
  set.add("layer/kernel", {2, 2}, kNormal);
  REQUIRE(set.find("layer/kernel") == &set.at("layer/kernel"));
  REQUIRE(set.find("layer") == nullptr);
  REQUIRE_THROWS_WITH(set.at("layer/kernl"), Contains("no parameter layer/kernl (did you mean layer/kernel?)"));
  REQUIRE_THROWS_WITH(set.add("layer/kernel", {1}, kNormal), Contains("layer/kernel is added twice"));
}

TEST_CASE("parameter counts are those published, without allocating the weights", "[nn]") {
  const std::int64_t before = memory_ledger::report().current[static_cast<int>(Purpose::weights)];
  EtcConfig base;  // the class defaults: shared queries, keys and values
  base.vocab_size = 30522;
  REQUIRE(encoder_count(base) == 116215296);
  base.share_att_output_projection = true;
  REQUIRE(encoder_count(base) == 109128192);
  base.share_att_output_projection = false;
  base.share_qkv_projections = false;
  REQUIRE(encoder_count(base) == 165825024);
  base.share_kv_projections = true;
  REQUIRE(encoder_count(base) == 137476608);
  EtcConfig large = etc_config_preset("large");
  large.vocab_size = 30522;
  REQUIRE(encoder_count(large) == 538351616);
  REQUIRE(memory_ledger::report().current[static_cast<int>(Purpose::weights)] == before);
}

TEST_CASE("the base encoder has the 462 variables of the released checkpoint", "[nn]") {
  EtcConfig base = etc_config_preset("base");
  base.vocab_size = 30522;
  ParameterSet parameters;
  const EtcEncoder encoder(base, parameters);
  REQUIRE(parameters.all().size() == 462);
  REQUIRE(parameters.find("etc_document_bert/global_local_transformer_layers/feed_forward_layer_11/layer_norm/beta"));
  const std::string att = "etc_document_bert/global_local_transformer_layers/fused_att_layer_3/fused_global_local_att/";
  REQUIRE(parameters.at(att + "g2l_value_projection/linear/kernel").shape == std::vector<std::int64_t>{768, 768});
  REQUIRE(parameters.at(att + "global_output_projection/bias").shape == std::vector<std::int64_t>{768});
  REQUIRE(parameters.at(att + "long_qkv_attention/qkv_relative_attention/relative_emb_table").shape ==
          std::vector<std::int64_t>{32, 12, 64});
  REQUIRE(parameters.at(att + "global_qkv_attention/relative_bias_table").shape == std::vector<std::int64_t>{32, 12});
}
