// gpu_check STAGE OUTPUT.json [PACK]: runs one stage on the device. Exit codes: 0 all cases pass, 1 some fail, 2 usage.
#include <cstdio>
#include <string>

#include "etc_core/base/log.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "tests/gpu_check/stages.h"

namespace {

int run(const std::string& stage, const std::string& output, const std::string& pack) {
  using namespace etc;
  add_backend(cuda_backend());
  const OpenedDevice device = gpu_check::open_or_report(output, stage);
  gpu_check::Report report(output, stage, device.description);
  if (stage == "smoke") gpu_check::smoke(report);
  if (stage == "kernels") gpu_check::kernels(report);
  if (stage == "model") gpu_check::model(report, pack);
  if (stage == "bench") gpu_check::bench(report);
  report.finish();
  std::printf("%s: %d faults; %s\n", stage.c_str(), report.faults(), output.c_str());
  return report.faults() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  etc::log::to_stderr();
  const std::string stage = argc > 2 ? argv[1] : "";
  if (stage != "smoke" && stage != "kernels" && stage != "model" && stage != "bench") {
    std::fprintf(stderr, "usage: gpu_check smoke|kernels|model|bench OUTPUT.json [PACK]\n");
    return 2;
  }
  try {
    return run(stage, argv[2], argc > 3 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu-check: %s\n", error.what());
    return 1;
  }
}
