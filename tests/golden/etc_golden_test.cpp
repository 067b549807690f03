// The encoder against the published implementation: every golden file of kind `etc`, outputs of every stage, carried
// scores, loss and gradients. On the same files the encoder is compared with itself: activation checkpointing, threads,
// neighbours.
#include <cstring>
#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/golden_run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using test::golden_run;
using test::GoldenCase;
using test::GoldenDifference;
using test::GoldenReport;
using test::GoldenRun;
using test::LeftUnread;
using test::values_of;
using test::Worst;

namespace {

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

void require_equal_gradients(const GoldenRun& a, const GoldenRun& b) {
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [name, gradient] : a.gradients) {
    CAPTURE(name);
    REQUIRE(equal_bits(gradient, b.gradients.at(name)));
  }
}

}  // namespace

TEST_CASE("outputs, scores, loss and gradients are those of the published model", "[golden]") {
  const auto files = test::model_files("etc");
  if (files.empty()) return;
  GoldenReport report("golden etc: worst difference (outputs, scores: absolute; gradients: relative)",
                      GoldenDifference::columns());
  test::GradientDifference all;
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    GoldenDifference difference;
    // Inference first: packed weights, fused products, nothing saved.
    difference.compare(golden, golden_run(golden, golden.config, false));
    difference.compare_attention(golden, test::attention_states(golden));
    if (golden.file.has("grads")) {
      const GoldenRun training = golden_run(golden, golden.config, true);
      difference.compare(golden, training);
      difference.compare_backward(golden, training);
    }
    report.row(path.filename().string(), difference.figures(golden));
    difference.check();
    all.add(difference.gradients);
    LeftUnread left = test::kStatements;
    left["builder*"] = "tests/sparse/labels builds the masks and ids from it";
    golden.file.require_all_read("", left);
  }
  all.print();
}

TEST_CASE("golden gradients have the same bits for every checkpointing period", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    if (!golden.file.has("grads")) continue;
    const GoldenRun plain = golden_run(golden, golden.config, true);
    for (const std::int64_t period : {1, 2, 3}) {
      CAPTURE(period);
      EtcConfig config = golden.config;
      config.grad_checkpointing_period = period;
      const GoldenRun saving = golden_run(golden, config, true);
      REQUIRE(equal_bits(saving.long_states, plain.long_states));
      require_equal_gradients(plain, saving);
    }
  }
}

TEST_CASE("golden results have the same bits for 1, 2 and 4 threads", "[golden]") {
  const int before = thread_count();
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    const bool gradients = golden.file.has("grads");
    std::optional<GoldenRun> first;
    for (const int threads : {1, 2, 4}) {
      CAPTURE(threads);
      set_thread_count(threads);
      const GoldenRun result = golden_run(golden, golden.config, gradients);
      if (!first) first = result;
      REQUIRE(equal_bits(result.long_states, first->long_states));
      REQUIRE(equal_bits(result.global_states, first->global_states));
      require_equal_gradients(result, *first);
    }
  }
  set_thread_count(before);
}

TEST_CASE("a golden example has the same bits alone and in its batch", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    const GoldenRun together = golden_run(golden, golden.config, false);
    const std::int64_t width = golden.config.hidden_size;
    for (std::int64_t b = 0; b < golden.batch; ++b) {
      CAPTURE(b);
      const GoldenRun alone = golden_run(golden, golden.config, false, b);
      const auto same = [&](const Tensor& one, const Tensor& all, std::int64_t rows) {
        return std::memcmp(one.data(), all.data() + b * rows * width, static_cast<std::size_t>(rows * width) * 4) == 0;
      };
      REQUIRE(same(alone.long_states, together.long_states, golden.length));
      REQUIRE(same(alone.global_states, together.global_states, golden.globals));
    }
  }
}

TEST_CASE("one layer with residual scores gives the same numbers as without", "[golden]") {
  for (const auto& path : test::model_files("etc")) {
    const GoldenCase golden(path);
    if (!golden.config.use_residual_attention || golden.config.num_hidden_layers != 1) continue;
    CAPTURE(path.filename().string());
    EtcConfig config = golden.config;
    config.use_residual_attention = false;
    const GoldenRun with = golden_run(golden, golden.config, false), without = golden_run(golden, config, false);
    Worst worst;
    const auto compare = [&](const char* name, const Tensor& expected, const Tensor& actual) {
      worst.compare(name, {expected.data(), expected.data() + expected.size()}, values_of(actual));
    };
    compare("long", without.long_states, with.long_states);
    compare("global", without.global_states, with.global_states);
    CAPTURE(worst.where);
    REQUIRE(worst.value <= 1e-5);  // scores are rounded to multiples of 2^-20
  }
}

TEST_CASE("golden kinds that this program does not compare are named", "[golden]") {
  const std::set<std::string> compared = {"bert", "etc", "fused_attention", "relative_transformer", "train"};
  std::map<std::string, std::vector<std::string>> others;
  for (const auto& path : test::golden_files(".h5")) {
    const test::GoldenFile file(path);
    const std::string kind = file.has_attribute("", "kind") ? file.string_attribute("", "kind") : "none";
    if (compared.count(kind) == 0) others[kind].push_back(path.filename().string());
  }
  for (const auto& [kind, names] : others) {
    test::skip(fmt::format("golden kind {}: {} (not compared by this program)", kind, fmt::join(names, ", ")));
  }
}
