// The published model's numbers, computed by the CUDA backend under the emulator, for every golden file that is small
// enough.
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "tests/golden/golden_run.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

namespace {

// Multiplications of a forward pass in dense layers, which dominate the time of an emulated run.
double work_of(const GoldenCase& golden) {
  const EtcConfig& c = golden.config;
  const double tokens = static_cast<double>(golden.batch * (golden.length + golden.globals));
  return tokens *
         static_cast<double>(c.num_hidden_layers * c.hidden_size * (c.hidden_size * 4 + c.intermediate_size * 2));
}

void compare_files(double least, double most) {
  register_cuda_backend();
  const auto files = model_files("etc");
  if (files.empty()) return;
  GoldenReport report("golden etc, CUDA backend under the emulator: worst difference", GoldenDifference::columns());
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    const GoldenCase golden(path);
    if (work_of(golden) < least || work_of(golden) >= most) continue;
    GoldenDifference difference;
    difference.compare(golden, golden_run(golden, golden.config, false, std::nullopt, Device::cuda));
    if (golden.file.has("grads")) {
      const GoldenRun training = golden_run(golden, golden.config, true, std::nullopt, Device::cuda);
      difference.compare(golden, training);
      difference.compare_backward(golden, training);
    }
    report.row(path.filename().string(), difference.figures(golden));
    difference.check();
    CHECK(difference.outputs.value > 0);  // other sums than the CPU's show that the device's kernels computed this
  }
}

}  // namespace

TEST_CASE("emulated outputs, scores, loss and gradients are those of the published model", "[golden][cuda]") {
  compare_files(0, 3e5);
}

TEST_CASE("and so are those of the larger files", "[golden][cuda][slow]") {
  compare_files(3e5, 1e12);
}
