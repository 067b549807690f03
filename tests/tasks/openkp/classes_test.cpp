// Classes of a page and their loss: the worked values, the golden losses and gradients, maxima over occurrences.
#include "tasks/openkp/classes.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/numbers.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kAllClasses = 1 << 20;  // counts every entry

double loss(const PhraseClasses& classes, const Numbers& starts, const Numbers& lengths, const LossOptions& options) {
  ops::register_cpu_ops();
  return phrase_loss(classes, {starts, lengths}, options, 1, {});
}

const std::vector<float> kScores = {1, 0, 2, -10000, 3, 0.5f, -10000, -10000};  // K = 2, L = 4

}  // namespace

TEST_CASE("the loss has the worked values", "[tasks][openkp]") {
  const PhraseClasses all = counted_classes(kScores, 4, kAllClasses), real = counted_classes(kScores, 4, 3);
  const Numbers starts = {0, 2}, lengths = {2, 1};
  CHECK(real.entries == Numbers{0, 1, 2, 4, 5});
  CHECK(loss(all, starts, lengths, {1e-4, 0}) == Approx(1.366827).epsilon(1e-6));
  CHECK(loss(all, starts, lengths, {0, 0}) == Approx(0.995448).epsilon(1e-6));
  CHECK(loss(all, starts, lengths, {1e-6, 0}) == Approx(0.995448).epsilon(1e-6));
  CHECK(loss(real, starts, lengths, {1e-4, 0}) == Approx(0.991816).epsilon(1e-6));
  CHECK(loss(real, starts, lengths, {1e-4, 2 * 4}) == Approx(1.366827).epsilon(1e-6));
}

TEST_CASE("labels that are no class add nothing, and without any the target is uniform", "[tasks][openkp]") {
  const std::vector<float> scores(8, 1.0f);
  const PhraseClasses all = counted_classes(scores, 4, kAllClasses);
  CHECK(loss(all, {0}, {7}, {1e-4, 0}) == Approx(std::log(8.0)).epsilon(1e-6));
  CHECK(loss(all, {-1, 5}, {-1, 1}, {1e-4, 0}) == Approx(std::log(8.0)).epsilon(1e-6));
}

TEST_CASE("the gradient of the loss is that of central differences", "[tasks][openkp]") {
  for (const LossOptions& options : {LossOptions{1e-4, 0}, LossOptions{0.3, 0}, LossOptions{0.3, 60}}) {
    std::vector<float> scores = test::random_floats(15, 3, 2);  // K = 3, P = 5
    const Numbers starts = {0, 1, 1}, lengths = {1, 2, 2};
    ops::register_cpu_ops();
    std::vector<float> gradient(counted_classes(scores, 5, 4).entries.size());
    phrase_loss(counted_classes(scores, 5, 4), {starts, lengths}, options, 0.5, gradient);
    const PhraseClasses classes = counted_classes(scores, 5, 4);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto at = [&](float step) {
        PhraseClasses moved = classes;
        moved.scores[i] += step;
        return loss(moved, starts, lengths, options);
      };
      constexpr float kStep = 1.0f / 64;
      CHECK(gradient[i] == Approx(0.5 * (at(kStep) - at(-kStep)) / (2 * kStep)).margin(2e-5));
    }
  }
}

TEST_CASE("with maxima a phrase has one class, scored by its best occurrence", "[tasks][openkp]") {
  // Words a b a b in two elements of two words each: "a", "b" and "a b" occur twice; "b a" crosses an element border.
  const std::vector<float> scores = {1, 5, 3, 2, 7, 4, 7, 0};  // K = 2
  const PhraseClasses best = first_occurrence_classes(counted_classes(scores, 4, 4), Numbers{0, 1, 0, 1, 0, 1, 0, 3});
  CHECK(best.entries == Numbers{0, 1, 4, 5});
  CHECK(best.scores == std::vector<float>{3, 5, 7, 4});
  CHECK(best.scored_by == Numbers{2, 1, 4, 5});  // of equal scores the first
}

TEST_CASE("losses and gradients equal the reference's in every golden case", "[tasks][openkp][golden]") {
  const auto files = test::golden_named("openkp_decode", ".h5");
  if (files.empty()) return test::skip("no golden file openkp_decode*.h5");
  ops::register_cpu_ops();
  double worst_loss = 0, worst_gradient = 0;
  std::int64_t cases = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    if (!file.has("loss")) continue;
    for (const std::string& name : file.groups("loss")) {
      const std::string group = "loss/" + name;
      CAPTURE(path.filename().string(), name);
      const auto z = file.read<float>(group + "/ngram_logits");  // [B, K, L]
      const auto expected = file.read<double>(group + "/per_example_loss").values;
      const auto gradients = file.read<float>(group + "/grad_ngram_logits").values;
      const auto starts = file.read<std::int64_t>(group + "/label_start_idx");
      const auto lengths = file.read<std::int64_t>(group + "/label_phrase_len");
      const LossOptions options{file.real_attribute(group, "additive_smoothing_mass"), 0};
      const std::int64_t pages = z.shape[0], classes = z.shape[1] * z.shape[2], labels = starts.shape[1];
      for (std::int64_t b = 0; b < pages; ++b) {
        CAPTURE(b);
        const std::span<const float> scores(z.values.data() + b * classes, static_cast<std::size_t>(classes));
        const auto row = [&](const test::GoldenArray<std::int64_t>& all) {
          return std::span<const std::int64_t>(all.values)
              .subspan(static_cast<std::size_t>(b * labels), static_cast<std::size_t>(labels));
        };
        std::vector<float> gradient(static_cast<std::size_t>(classes));
        const double got = phrase_loss(counted_classes(scores, z.shape[2], kAllClasses), {row(starts), row(lengths)},
                                       options, 1 / static_cast<double>(pages), gradient);
        const double wanted = expected[static_cast<std::size_t>(b)];
        REQUIRE(got == Approx(wanted).epsilon(1e-5).margin(1e-6));
        worst_loss = std::max(worst_loss, std::abs(got - wanted) / wanted);
        for (std::int64_t i = 0; i < classes; ++i) {
          const double g = gradients[static_cast<std::size_t>(b * classes + i)];
          REQUIRE(gradient[static_cast<std::size_t>(i)] == Approx(g).epsilon(1e-5).margin(1e-6));
          worst_gradient = std::max(worst_gradient, std::abs(gradient[static_cast<std::size_t>(i)] - g));
        }
        ++cases;
      }
    }
  }
  fmt::print("openkp loss: {} pages, worst loss {:.2g} relative, worst gradient {:.2g} absolute\n", cases, worst_loss,
             worst_gradient);
}
