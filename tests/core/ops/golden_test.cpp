// Activations and layer normalisation against the published implementation (files of kind `functions`).
#include <algorithm>
#include <cmath>
#include <set>

#include "etc_core/ops/activation.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

// Tolerance from the description of the golden files: 1e-5 absolute for values, 1e-5 relative to the largest for
// gradients.
constexpr double kTolerance = 1e-5;

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::fabs(v));
  return most;
}

// Both precisions of the file.
constexpr const char* kPrecisions[] = {"", "64"};

void check_activations(const GoldenFile& file) {
  const auto x = file.read<float>("activation/x").values;
  const auto size = static_cast<std::int64_t>(x.size());
  const std::vector<float> ones(x.size(), 1.0f);
  std::set<std::string> names;
  for (std::string name : file.data_sets("activation")) {
    if (name.ends_with("64")) name.resize(name.size() - 2);
    if (name.ends_with("_grad")) name.resize(name.size() - 5);
    if (name != "x") names.insert(name);
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto activation = ops::activation_from_name(name);
    std::vector<float> y(x.size()), dx(x.size());
    ops::activation_forward(Device::cpu, activation, x.data(), y.data(), size);
    ops::activation_backward(Device::cpu, activation, x.data(), ones.data(), dx.data(), size);
    for (const std::string precision : kPrecisions) {
      const auto expected = [&](const char* of) {
        return file.read<double>("activation/" + name + of + precision).values;
      };
      // The reference's own float32 loses more in 1 + tanh(…), which cancels for negative x.
      const bool single = precision.empty();
      REQUIRE(near_all(name, y, expected(""), single ? 1e-6 : 1e-7, 1e-6));
      REQUIRE(near_all(name + "_grad", dx, expected("_grad"), single ? kTolerance : 1e-6));
    }
  }
}

void check_layer_norm(const GoldenFile& file, const std::string& group) {
  const auto x = file.read<float>(group + "/x");
  const auto gamma = file.read<float>(group + "/gamma").values;
  const auto beta = file.read<float>(group + "/beta").values;
  const auto dy = file.read<float>(group + "/dy").values;
  const std::int64_t cols = x.shape.back();
  const std::int64_t rows = static_cast<std::int64_t>(x.values.size()) / cols;
  REQUIRE(std::ssize(gamma) == cols);
  REQUIRE(std::ssize(beta) == cols);
  REQUIRE(dy.size() == x.values.size());
  std::vector<float> y(x.values.size()), dx(x.values.size()), dgamma(gamma.size()), dbeta(beta.size());
  std::vector<float> mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  ops::LayerNormForward f{.rows = rows,
                          .cols = cols,
                          .x = x.values.data(),
                          .gamma = gamma.data(),
                          .beta = beta.data(),
                          .y = y.data(),
                          .mean = mean.data(),
                          .rstd = rstd.data(),
                          .statistics = {.epsilon = static_cast<float>(file.real_attribute(group, "epsilon"))}};
  ops::layer_norm(Device::cpu, f);
  ops::LayerNormBackward b{.rows = rows,
                           .cols = cols,
                           .dy = dy.data(),
                           .sum = x.values.data(),
                           .mean = mean.data(),
                           .rstd = rstd.data(),
                           .gamma = gamma.data(),
                           .dx = dx.data(),
                           .dgamma = dgamma.data(),
                           .dbeta = dbeta.data()};
  ops::layer_norm_backward(Device::cpu, b);
  const auto check = [&](const std::string& name, const std::vector<float>& got) {
    for (const std::string precision : kPrecisions) {
      const auto expected = file.read<double>(group + "/" + name + precision).values;
      // The reference's float32 y is up to 1.1e-5 off where a row's variance is small beside its mean.
      const double unit = name != "y" ? largest(expected) : precision.empty() ? std::max(1.0, largest(expected)) : 1;
      REQUIRE(near_all(name + precision, got, expected, kTolerance * unit));
    }
  };
  check("y", y);
  check("dx", dx);
  check("dgamma", dgamma);
  check("dbeta", dbeta);
}

}  // namespace

TEST_CASE("activations and layer normalisation agree with the published implementation", "[core][ops][golden]") {
  ops::register_cpu_ops();
  const auto files = golden_files_of_kind("functions");
  if (files.empty()) return skip("no golden file of kind functions");
  for (const auto& path : files) {
    CAPTURE(path.string());
    const GoldenFile file(path);
    check_activations(file);
    for (const std::string& group : file.groups()) {
      CAPTURE(group);
      if (group.starts_with("layer_norm")) check_layer_norm(file, group);
    }
    file.require_all_read();
  }
}
