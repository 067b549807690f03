// Classes of a page and their loss: the worked values, the golden losses and gradients, maxima over occurrences.
#include "tasks/openkp/classes.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/golden_pages.h"

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

constexpr double kOfLoss = 2e-7;  // relative: scores and their exponentials are float32

// A golden loss: n-gram logits and labels of some pages, the label distribution, losses and gradients.
class GoldenLoss {
 public:
  GoldenLoss(const test::GoldenFile& file, std::string group)
      : file_(file),
        group_(std::move(group)),
        logits_(file.read<float>(group_ + "/ngram_logits")),
        starts_(file.read<std::int64_t>(group_ + "/label_start_idx")),
        lengths_(file.read<std::int64_t>(group_ + "/label_phrase_len")),
        smoothing_(file.real_attribute(group_, "additive_smoothing_mass")) {}

  std::int64_t pages() const { return logits_.shape.at(0); }

  void require_equal(double& worst_gradient) const {
    const auto expected = file_.read<double>(group_ + "/per_example_loss").values;
    const auto gradients = file_.read<float>(group_ + "/grad_ngram_logits").values;
    const auto labels = file_.read<float>(group_ + "/labels").values;
    REQUIRE(std::ssize(expected) == pages());
    REQUIRE(gradients.size() == logits_.values.size());
    REQUIRE(labels.size() == logits_.values.size());
    double sum = 0;
    for (std::int64_t b = 0; b < pages(); ++b) {
      CAPTURE(b);
      const auto begin = static_cast<std::size_t>(b * classes());
      std::vector<float> gradient(static_cast<std::size_t>(classes()));
      const double loss =
          phrase_loss(counted_classes({logits_.values.data() + begin, gradient.size()}, logits_.shape[2], kAllClasses),
                      {row(starts_, b), row(lengths_, b)}, {smoothing_, 0}, 1 / static_cast<double>(pages()), gradient);
      const double wanted = expected[static_cast<std::size_t>(b)];
      REQUIRE(loss == Approx(wanted).epsilon(kOfLoss));
      sum += wanted;
      const auto distribution = labels_of(b);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double g = gradients[begin + i];
        REQUIRE(gradient[i] == Approx(g).epsilon(1e-5).margin(1e-6));
        test::keep_worst(worst_gradient, std::abs(gradient[i] - g));
        REQUIRE(distribution[i] == Approx(labels[begin + i]).epsilon(1e-6));
      }
    }
    const double mean = sum / static_cast<double>(pages());
    CHECK(mean == Approx(file_.real_attribute(group_, "loss")).epsilon(1e-12));
    CHECK(mean == Approx(file_.real_attribute(group_, "loss_float32")).epsilon(3e-6));
  }

  // The labels are those of the records that the case names.
  void require_labels_of_records(const std::string& config) const {
    const test::GoldenFile features(test::openkp_features_beside(file_.path()));
    const auto starts = features.read_ragged<std::int64_t>(config + "/label_start_idx");
    const auto lengths = features.read_ragged<std::int64_t>(config + "/label_phrase_len");
    Numbers all_starts, all_lengths;
    for (const double record : file_.real_attributes(group_, "record_row")) {
      for (const std::int64_t start : starts.at(static_cast<std::size_t>(record))) all_starts.push_back(start);
      for (const std::int64_t length : lengths.at(static_cast<std::size_t>(record))) all_lengths.push_back(length);
    }
    CHECK(all_starts == starts_.values);
    CHECK(all_lengths == lengths_.values);
  }

 private:
  std::int64_t classes() const { return logits_.shape[1] * logits_.shape[2]; }

  static std::span<const std::int64_t> row(const test::GoldenArray<std::int64_t>& all, std::int64_t b) {
    const auto labels = static_cast<std::size_t>(all.shape[1]);
    return std::span<const std::int64_t>(all.values).subspan(static_cast<std::size_t>(b) * labels, labels);
  }

  // The label distribution of task-openkp 4.3, which the engine only has within loss and gradient.
  std::vector<double> labels_of(std::int64_t b) const {
    const std::int64_t K = logits_.shape[1], L = logits_.shape[2];
    std::vector<double> labels(static_cast<std::size_t>(classes()), 0);
    double count = 0;
    for (std::size_t i = 0; i < row(starts_, b).size(); ++i) {
      const std::int64_t start = row(starts_, b)[i], length = row(lengths_, b)[i];
      if (length < 1 || length > K || start < 0 || start >= L) continue;
      labels[static_cast<std::size_t>((length - 1) * L + start)] += 1;
      count += 1;
    }
    double sum = 0;
    for (double& label : labels) {
      label = label / (count + 1e-6) + std::max(smoothing_, 1e-6) / static_cast<double>(classes());
      sum += label;
    }
    for (double& label : labels) label /= sum;
    return labels;
  }

  const test::GoldenFile& file_;
  std::string group_;
  test::GoldenArray<float> logits_;                   // [B, K, L]
  test::GoldenArray<std::int64_t> starts_, lengths_;  // [B, labels]
  double smoothing_;
};

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
  double worst_gradient = 0;
  std::int64_t pages = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    REQUIRE_FALSE(file.groups("loss").empty());
    for (const std::string& name : file.groups("loss")) {
      CAPTURE(path.filename().string(), name);
      const GoldenLoss golden(file, "loss/" + name);
      golden.require_equal(worst_gradient);
      if (file.has_attribute("loss/" + name, "record_row")) golden.require_labels_of_records(name);
      pages += golden.pages();
    }
    file.require_all_read("loss");
  }
  fmt::print("openkp loss: {} pages, worst gradient {:.2g} absolute\n", pages, worst_gradient);
}
