// Contrastive predictive coding.
#include "tasks/pretrain/loss.h"

#include <cmath>
#include <cstdio>
#include <numeric>

#include "etc_core/ops/register.h"
#include "tests/golden/golden_group.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using pretrain::CpcSimilarity;

namespace {

struct Run {
  pretrain::CpcResult result;
  std::vector<float> dc, dt;
  double mean() const {
    return std::accumulate(result.losses.begin(), result.losses.end(), 0.0) / static_cast<double>(result.losses.size());
  }
};

// Losses and the gradient of their mean.
Run run(const std::vector<float>& c, const std::vector<float>& t, std::int64_t width, CpcSimilarity similarity,
        double temperature = 1) {
  ops::register_cpu_ops();
  Run run;
  run.dc.assign(c.size(), 7);
  run.dt.assign(t.size(), 7);
  const std::int64_t m = std::ssize(c) / width;
  run.result = pretrain::cpc_loss({.sentences = m,
                                   .width = width,
                                   .predicted = c.data(),
                                   .target = t.data(),
                                   .similarity = similarity,
                                   .temperature = temperature,
                                   .scale = 1 / static_cast<double>(m),
                                   .dpredicted = run.dc.data(),
                                   .dtarget = run.dt.data()});
  return run;
}

const std::vector<float> kC = {1, 0, 0.6f, 0.8f, -0.5f, 0.5f};
const std::vector<float> kT = {0.8f, 0.2f, 0.2f, 0.9f, -1, 0.3f};

}  // namespace

TEST_CASE("contrastive coding gives the worked numbers of the specification", "[tasks][pretrain]") {
  const Run dot = run(kC, kT, 2, CpcSimilarity::dot);
  CHECK(near_all("logits", dot.result.logits, {0.8, 0.2, -1, 0.64, 0.84, -0.36, -0.3, 0.35, 0.65}, 1e-6));
  CHECK(dot.result.losses[0] == Approx(0.538894).margin(1e-6));
  CHECK(dot.result.losses[1] == Approx(0.751381).margin(1e-6));
  CHECK(dot.result.losses[2] == Approx(0.754975).margin(1e-6));
  CHECK(dot.mean() == Approx(0.681750).margin(1e-6));
  CHECK(dot.result.own_is_best == std::vector<bool>{true, true, true});
  CHECK(run(kC, kT, 2, CpcSimilarity::cosine, 0.1).mean() == Approx(0.087582).margin(1e-6));
  // scaled_dot equals dot with the square root of the size as temperature.
  CHECK(run(kC, kT, 2, CpcSimilarity::scaled_dot).mean() ==
        Approx(run(kC, kT, 2, CpcSimilarity::dot, std::sqrt(2.0)).mean()).margin(1e-6));
}

TEST_CASE("gradients of contrastive coding are those of central differences", "[tasks][pretrain]") {
  const std::int64_t m = 5, width = 7;
  for (const CpcSimilarity similarity : {CpcSimilarity::dot, CpcSimilarity::scaled_dot, CpcSimilarity::cosine}) {
    std::vector<float> c = random_floats(m * width, 1), t = random_floats(m * width, 2);
    const Run at = run(c, t, width, similarity, 0.5);
    for (auto* of : {&c, &t}) {
      const std::vector<float>& gradient = of == &c ? at.dc : at.dt;
      for (std::size_t i = 0; i < of->size(); ++i) {
        const float old = (*of)[i];
        (*of)[i] = old + 1e-2f;
        const double above = run(c, t, width, similarity, 0.5).mean();
        (*of)[i] = old - 1e-2f;
        const double below = run(c, t, width, similarity, 0.5).mean();
        (*of)[i] = old;
        CHECK(gradient[i] == Approx((above - below) / 2e-2).margin(1e-3));
      }
    }
  }
}

TEST_CASE("other orders of the hidden sentences permute the logits and keep the loss", "[tasks][pretrain]") {
  const std::int64_t m = 6, width = 8;
  const std::vector<std::size_t> order = {3, 0, 5, 1, 4, 2};
  const auto c = random_floats(m * width, 3), t = random_floats(m * width, 4);
  std::vector<float> moved_c, moved_t;
  for (const std::size_t from : order) {
    moved_c.insert(moved_c.end(), &c[from * width], &c[from * width] + width);
    moved_t.insert(moved_t.end(), &t[from * width], &t[from * width] + width);
  }
  for (const CpcSimilarity similarity : {CpcSimilarity::scaled_dot, CpcSimilarity::cosine}) {
    const Run plain = run(c, t, width, similarity), moved = run(moved_c, moved_t, width, similarity);
    CHECK(moved.mean() == Approx(plain.mean()).margin(1e-6));
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < order.size(); ++j) {
        CHECK(moved.result.logits[i * 6 + j] == plain.result.logits[order[i] * 6 + order[j]]);
      }
    }
  }
}

TEST_CASE("predictions that are the sentences themselves have no loss at a low temperature", "[tasks][pretrain]") {
  const auto c = random_floats(6 * 16, 5);
  const Run same = run(c, c, 16, CpcSimilarity::cosine, 1e-3);
  CHECK(same.mean() < 1e-6);
  for (const bool best : same.result.own_is_best) CHECK(best);
}

TEST_CASE("equal states leave the logarithm of the choices, one sentence nothing", "[tasks][pretrain]") {
  const std::vector<float> equal(10 * 4, 0.5f);
  const Run ten = run(equal, equal, 4, CpcSimilarity::scaled_dot);
  CHECK(ten.mean() == Approx(std::log(10.0)).margin(1e-6));
  CHECK(ten.result.own_is_best.front());  // of equal similarities the first
  CHECK(!ten.result.own_is_best.back());
  CHECK(run({1, 2}, {3, 4}, 2, CpcSimilarity::dot).mean() == 0);
  CHECK(run({0, 0, 1, 1}, {1, 2, 3, 4}, 2, CpcSimilarity::cosine).result.logits[0] == 0);
}

TEST_CASE("contrastive coding gives the golden logits, losses and gradients", "[golden]") {
  for_each_file_with("cpc/param/predicted", [](const GoldenFile& file) {
    const auto numbers = [&](const std::string& name) { return file.read<double>("cpc/" + name).values; };
    const auto c = file.read<float>("cpc/param/predicted"), t = file.read<float>("cpc/param/target");
    int compared = 0;
    for (const std::string& name : file.groups("cpc")) {
      if (name == "param") continue;
      CAPTURE(name);
      const std::size_t end = name.find("_t");  // a temperature follows
      const std::string kind = name.substr(0, end);
      REQUIRE((kind == "dot" || kind == "cosine"));
      const CpcSimilarity similarity = kind == "dot" ? CpcSimilarity::dot : CpcSimilarity::cosine;
      const double temperature = end == std::string::npos ? 1 : std::stod(name.substr(end + 2));
      const Run got = run(c.values, t.values, c.shape.at(1), similarity, temperature);
      const std::string group = name + "/";
      CHECK(near_all("logits", got.result.logits, numbers(group + "logits"), 2e-5, 2e-5));
      CHECK(got.mean() == Approx(numbers(group + "loss").at(0)).epsilon(2e-5).margin(2e-5));
      CHECK(near_all("dc", got.dc, numbers(group + "grad/predicted"), 1e-4, 1e-4));
      CHECK(near_all("dt", got.dt, numbers(group + "grad/target"), 1e-4, 1e-4));
      std::printf("cpc/%s: loss off by %.1e\n", name.c_str(), std::abs(got.mean() - numbers(group + "loss").at(0)));
      ++compared;
    }
    CHECK(compared > 0);
    file.require_all_read("cpc");
  });
}
