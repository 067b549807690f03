// The stages of gpu-check on the emulated device, the report they write, and the pack of golden numbers they read.
#include <cstdlib>

#include "etc_core/base/error.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/gpu_check/pack.h"
#include "tests/gpu_check/stages.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Catch::Matchers::Contains;
using test::TemporaryFolder;

namespace {

void register_backends() {
  register_cpu_backend();
  open_cuda_backend();
}

}  // namespace

TEST_CASE("smoke, operators and model hold on the emulated device", "[gpu_check][cuda]") {
  register_backends();
  const TemporaryFolder folder;
  gpu_check::Report report(folder / "report.json", "smoke", "emulated device");
  gpu_check::smoke(report);
  gpu_check::operators(report);
  gpu_check::model(report, {});
  CHECK(report.faults() == 0);
  CHECK(read_json_file(folder / "report.json").at("cases").size() == 55);
}

TEST_CASE("rates of both attention operators are measured, with running scores and without", "[gpu_check][cuda]") {
  register_backends();
  const TemporaryFolder folder;
  gpu_check::Report report(folder / "report.json", "bench", "emulated device");
  gpu_check::AttentionBench bench;
  bench.heads = 1;
  bench.lengths = {64};
  bench.radii = {11};
  bench.dense_lengths = {64};
  bench.repeats = 1;
  gpu_check::bench_attention(report, bench);
  CHECK(report.faults() == 0);
  const Json cases = read_json_file(folder / "report.json").at("cases");
  REQUIRE(cases.size() == 5);
  for (const Json& one : cases) {
    const Json& figures = one.at("figures");
    const bool dense = figures.contains("tflops");
    CHECK(figures.at(dense ? "tflops" : "forward_useful_tflops") > 0);
    if (!dense) CHECK(figures.at("forward_and_backward_useful_tflops") > 0);
    const bool scores = one.at("name").get<std::string>().ends_with("scores");
    CHECK(figures.contains("forward_scores_percent_of_bandwidth") == scores);
  }
}

TEST_CASE("kernels hold on the emulated device", "[gpu_check][cuda][slow]") {
  register_backends();
  const TemporaryFolder folder;
  gpu_check::Report report(folder / "report.json", "kernels", "emulated device");
  gpu_check::kernels(report);
  CHECK(report.faults() == 0);
  CHECK(read_json_file(folder / "report.json").at("cases").size() > 100);
}

TEST_CASE("a report is whole after every case and counts what does not hold", "[gpu_check]") {
  const TemporaryFolder folder;
  const auto file = folder / "report.json";
  gpu_check::Report report(file, "kernels", "none");
  CHECK(read_json_file(file).at("cases").empty());
  gpu_check::run_case(report, "fine", [](Json& figures) {
    figures["worst"] = 0.5;
    return "";
  });
  gpu_check::run_case(report, "thrown", [](Json&) -> std::string { fail("kernel", "lost"); });
  gpu_check::run_case(report, "said", [](Json&) { return "differs"; });
  const Json before = read_json_file(file);
  CHECK(before.at("finished") == false);
  CHECK(before.at("faults") == 2);
  CHECK(before.at("cases")[0] == Json{{"name", "fine"}, {"holds", true}, {"figures", {{"worst", 0.5}}}});
  CHECK(before.at("cases")[1] == Json{{"name", "thrown"}, {"holds", false}, {"fault", "kernel: lost"}});
  CHECK(before.at("cases")[2].at("fault") == "differs");
  report.finish();
  CHECK(read_json_file(file).at("finished") == true);
}

TEST_CASE("without a device the report says so, and the stage is not finished", "[gpu_check]") {
  Backend backend = cuda_backend();
  backend.open = []() -> std::string { fail("cuda", "no device found; use --device cpu"); };
  add_backend(backend);
  const TemporaryFolder folder;
  const auto file = folder / "report.json";
  CHECK_THROWS_WITH(gpu_check::open_or_report(file, "smoke"), Contains("no device found"));
  backend.open = nullptr;
  add_backend(backend);
  const Json report = read_json_file(file);
  CHECK(report.at("finished") == false);
  CHECK(report.at("faults") == 1);
  CHECK(report.at("device") == "none");
  CHECK(report.at("cases")[0] ==
        Json{{"name", "a device is there"}, {"holds", false}, {"fault", "cuda: no device found; use --device cpu"}});
}

// `./run gpu-pack` runs this with ETC_GPU_PACK set to the file to write.
TEST_CASE("the pack of golden numbers is small, and the emulated device computes them", "[golden][slow][pack][cuda]") {
  register_backends();
  const TemporaryFolder folder;
  const char* const wanted = std::getenv("ETC_GPU_PACK");
  const std::filesystem::path pack = wanted != nullptr ? wanted : folder / "goldens.safetensors";
  const std::int64_t cases = gpu_check::write_pack(pack);
  if (cases == 0) return;  // already reported
  CHECK(std::filesystem::file_size(pack) <= 30 << 20);
  if (wanted != nullptr) return;
  gpu_check::Report report(folder / "report.json", "model", "emulated device");
  gpu_check::model(report, pack);
  CHECK(report.faults() == 0);
  CHECK(read_json_file(folder / "report.json").at("cases").size() == static_cast<std::size_t>(4 + cases));
}
