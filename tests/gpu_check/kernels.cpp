// Every operator on the device: attention compared with the double-precision reference on the irregular shapes of the
// CPU tests, the dense operators compared with the CPU's.
#include "sparse/cuda/register_cuda.h"
#include "tests/gpu_check/stages.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/cuda/mirrored_device.h"

namespace etc::gpu_check {

namespace {

void attention(Report& report) {
  test::register_mirrored_cuda_kernels();
  for (const bool bf16 : {false, true}) {
    for (const test::AttentionCase& c : test::attention_cases()) {
      for (const test::Side side : {test::Side::long_side, test::Side::global_side}) {
        for (const std::int64_t layers : {1, 3}) {
          const bool scores = layers > 1;
          const test::Stack stack{c,      side,   layers,       {scores, scores, scores, scores},
                                  scores, scores, Device::cuda, bf16};
          const std::string name =
              "attention " + test::describe(c, side) + (scores ? ", scores" : "") + (bf16 ? ", bf16" : "");
          run_case(report, name, [&](Json&) { return test::compare_with_reference(stack, test::run_stack(stack)); });
        }
      }
    }
  }
  sparse::register_cuda_kernels();  // the kernels that use device memory
}

}  // namespace

void kernels(Report& report) {
  operators(report);
  attention(report);
}

}  // namespace etc::gpu_check
