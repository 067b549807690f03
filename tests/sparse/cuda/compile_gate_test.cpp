// Kernels must compile for the devices we name, and fit them: no registers spilled to memory, a block's registers
// within a multiprocessor's. Needs nvcc, no device.
#include <filesystem>

#include "etc_core/base/error.h"
#include "sparse/cuda/attention_params.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/simt/ptxas.h"

using namespace etc;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> kArchitectures = {"80", "90"};
constexpr int kRegistersPerMultiprocessor = 65536;

void require_fit(const std::vector<test::KernelReport>& reports) {
  for (const test::KernelReport& r : reports) {
    if (r.name.find("etc4simt5entry") == std::string::npos) continue;  // a library's own
    CAPTURE(r.name, r.architecture, r.registers, r.spill_stores);
    CHECK(r.spill_stores == 0);
    CHECK(r.spill_loads == 0);
    CHECK(r.registers * sparse::cuda::kBlockThreads <= kRegistersPerMultiprocessor / 2);  // two blocks at a time
    CHECK(r.shared_bytes <= 48 * 1024);  // what is asked for at launch, the emulator checks
    std::printf("%-6s %3d registers %4d bytes of stack  %s\n", r.architecture.c_str(), r.registers, r.stack_bytes,
                r.name.c_str());
  }
}

}  // namespace

TEST_CASE("what ptxas says is read", "[gate]") {
  const std::string text =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1a' for 'sm_80'\n"
      "ptxas info    : Function properties for _Z1a\n"
      "    168 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 202 registers, used 1 barriers, 168 bytes cumulative stack size, 4096 bytes smem\n"
      "ptxas info    : Compiling entry function '_Z1b' for 'sm_90'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 61 registers, used 0 barriers\n";
  const auto reports = test::parse_ptxas(text);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].name == "_Z1a");
  CHECK(reports[0].architecture == "sm_80");
  CHECK(reports[0].registers == 202);
  CHECK(reports[0].stack_bytes == 168);
  CHECK(reports[0].spill_stores == 12);
  CHECK(reports[0].spill_loads == 8);
  CHECK(reports[0].shared_bytes == 4096);
  CHECK(reports[1].registers == 61);
  CHECK_THROWS_WITH(test::parse_ptxas(text.substr(0, 120)), Contains("_Z1a: expected registers, got the end"));
}

TEST_CASE("the attention kernels of the usual head size compile and fit", "[gate]") {
  if (test::nvcc_path().empty()) return test::skip("nvcc is not installed");
  // For one device, which takes half the time; the slow set compiles for all.
  const auto reports = test::compile_with_nvcc("tests/sparse/cuda/usual_kernels.cu", {kArchitectures.front()});
  CHECK(reports.size() == 3);
  require_fit(reports);
}

TEST_CASE("all device code compiles, and the attention kernels fit", "[gate][slow]") {
  if (test::nvcc_path().empty()) return test::skip("nvcc is not installed");
  const std::filesystem::path root = test::source_folder();
  int sources = 0;
  for (const char* folder : {"etc_core", "sparse"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cu") continue;
      ++sources;
      require_fit(
          test::compile_with_nvcc(std::filesystem::relative(entry.path(), root).generic_string(), kArchitectures));
    }
  }
  CHECK(sources > 0);
}
