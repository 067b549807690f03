// The attention kernels on a real device, against the double-precision reference: what the emulated tests run, where a
// GPU is. Built with ETC_CUDA only.
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/cuda/mirrored_device.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("attention kernels on the device equal the reference", "[gpu][cuda]") {
  register_mirrored_cuda_kernels();
  for (bool bf16 : {false, true}) {
    for (const AttentionCase& c : attention_cases()) {
      for (Side side : {Side::long_side, Side::global_side}) {
        for (std::int64_t layers : {1, 3}) {
          const bool scores = layers > 1;
          const Stack stack{c, side, layers, {scores, scores, scores, scores}, scores, scores, Device::cuda, bf16};
          CHECK(compare_with_reference(stack, run_stack(stack)) == "");
        }
      }
    }
  }
}

TEST_CASE("relative terms on the device equal the reference", "[gpu][cuda]") {
  register_mirrored_cuda_kernels();
  for (const AttentionCase& c : term_cases()) {
    for (Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, 2, {true, true, true, true}, false, true, Device::cuda};
      CHECK(compare_with_reference(stack, run_stack(stack)) == "");
    }
  }
}
