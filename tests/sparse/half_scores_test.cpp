// Running scores in 16 bits (score_element.h, HalfScore): their error against the exact scores, and invalid uses.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "etc_core/base/parallel.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;
using Catch::Contains;

namespace {

constexpr std::int64_t kLayers = 4;

// Inference through layers of one operator; both types carry scores.
struct Inference {
  std::vector<std::unique_ptr<AttentionProblem>> layers;
  std::vector<std::array<std::vector<float>, 2>> running;  // C after each layer, external form
  std::int64_t bytes = 0;                                  // of C
};

Inference infer(const AttentionCase& c, Side side, bool mean, ScoreType type) {
  const auto structure = std::make_shared<const Structure>(c);
  Inference result;
  sparse::ScoreOptions options;
  options.layers = kLayers;
  options.heads = c.heads;
  options.types = {true, true, true, true};
  options.running_mean = mean;
  options.keep_last = true;
  options.type = type;
  sparse::ScoreState state(options, structure->operators());
  result.bytes = state.bytes();
  for (std::int64_t l = 0; l < kLayers; ++l) {
    AttentionProblem& problem = *result.layers.emplace_back(
        std::make_unique<AttentionProblem>(c, structure, side, static_cast<std::uint32_t>(l)));
    const auto scores = state.forward(l, side == Side::long_side ? sparse::kLongAttention : sparse::kGlobalAttention);
    problem.forward(scores[0], scores[1]);
    auto& running = result.running.emplace_back();
    for (std::size_t t = 0; t < 2; ++t) {
      const auto attention_type = problem.type(static_cast<int>(t));
      running[t].resize(
          static_cast<std::size_t>(sparse::external_score_elements(structure->tiles(attention_type), c.heads)));
      state.export_running(attention_type, running[t].data());
    }
  }
  return result;
}

// A batch of texts of different lengths with masks, and one whose last group is not full.
std::vector<AttentionCase> half_cases() {
  return {{"ragged", {150, 3, 70}, {23, 2, 17}, 12, 2, 16, 12, Labels::document},
          {"long", {700}, {40}, 84, 3, 24, 32, Labels::document}};
}

}  // namespace

TEST_CASE("16-bit scores stay within the sum of their roundings of the exact ones, in half the memory",
          "[sparse][processor]") {
  sparse::register_cpu_kernels();
  for (const AttentionCase& c : half_cases()) {
    for (const Side side : {Side::long_side, Side::global_side}) {
      for (const bool mean : {false, true}) {
        INFO(describe(c, side) << (mean ? ", mean" : ", sum"));
        const Inference exact = infer(c, side, mean, ScoreType::int32), half = infer(c, side, mean, ScoreType::fp16);
        CHECK(2 * half.bytes == exact.bytes);
        for (std::size_t t = 0; t < 2; ++t) {
          const std::size_t size = exact.running[0][t].size();
          std::vector<double> bound(size, 0);  // of the roundings so far, and of int32's
          double worst = 0, most = 0;
          for (std::size_t l = 0; l < kLayers; ++l) {
            for (std::size_t i = 0; i < size; ++i) {
              const double kept = half.running[l][t][i], error = std::abs(kept - exact.running[l][t][i]);
              bound[i] += std::abs(kept) * 0x1p-11 + 0x1p-25 + 0x1p-20;
              test::keep_worst(worst, error / bound[i]);
              most = std::max(most, error);
            }
          }
          CHECK(worst <= 1);
          CHECK(most > 0x1p-15);  // shows that scores were rounded to 16 bits
        }
        // A layer's logits use the unrounded s, so logits of the first layer differ by int32's rounding only.
        const auto& one = *half.layers[0];
        const auto& other = *exact.layers[0];
        for (std::int64_t i = 0; i < one.lse.size(); ++i) {
          if (std::isfinite(other.lse[i])) REQUIRE(std::abs(one.lse[i] - other.lse[i]) < 1e-5f);
        }
        // A logit of the last layer has the error of the sums before it; the error of log-sum-exp is not larger.
        for (std::int64_t i = 0; i < half.layers.back()->lse.size(); ++i) {
          if (std::isfinite(exact.layers.back()->lse[i]))
            REQUIRE(std::abs(half.layers.back()->lse[i] - exact.layers.back()->lse[i]) < 0.02f);
        }
      }
    }
  }
}

TEST_CASE("16-bit scores give the same bits on 1 and 4 threads", "[sparse]") {
  sparse::register_cpu_kernels();
  const int before = thread_count();
  for (const Side side : {Side::long_side, Side::global_side}) {
    std::vector<Inference> runs;
    for (const int threads : {1, 4}) {
      set_thread_count(threads);
      runs.push_back(infer(half_cases()[0], side, false, ScoreType::fp16));
    }
    for (std::size_t l = 0; l < kLayers; ++l) {
      CHECK(runs[0].running[l] == runs[1].running[l]);
      CHECK(same_bits(runs[0].layers[l]->lse, runs[1].layers[l]->lse));
      CHECK(runs[0].layers[l]->out.values.size() == runs[1].layers[l]->out.values.size());
      CHECK(std::equal(runs[0].layers[l]->out.values.begin(), runs[0].layers[l]->out.values.end(),
                       runs[1].layers[l]->out.values.begin()));
    }
  }
  set_thread_count(before);
}

TEST_CASE("16-bit scores out of range are an error, as exact ones are", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c = half_cases()[0];
  c.magnitude = 60;
  REQUIRE_THROWS_WITH(infer(c, Side::long_side, false, ScoreType::fp16), Contains("at most 1024 in magnitude"));
}

TEST_CASE("16-bit scores are refused where exact sums are needed", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c = half_cases()[0];
  const auto structure = std::make_shared<const Structure>(c);
  sparse::ScoreOptions options;
  options.layers = 2;
  options.heads = c.heads;
  options.types = {true, true, true, true};
  options.type = ScoreType::fp16;
  sparse::ScoreState state(options, structure->operators());
  options.training = true;
  REQUIRE_THROWS_WITH(sparse::ScoreState(options, structure->operators()), Contains("fp16: offered for inference"));
  options.training = false;
  options.device = Device::cuda;
  REQUIRE_THROWS_WITH(sparse::ScoreState(options, structure->operators()), Contains("on the CPU"));
  AttentionProblem problem(c, structure, Side::long_side);
  auto scores = state.forward(0, sparse::kLongAttention);
  scores[0].mode = sparse::ScoreMode::read;
  REQUIRE_THROWS_WITH(problem.forward(scores[0], scores[1]), Contains("no recomputation"));
}
