// The largest numbers of runs of rows on an emulated device: its arrays, and the amount of data copied.
#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/register.h"
#include "etc_core/tensor/tensor.h"
#include "tests/core/ops/top_k_case.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("emulated top_k equals the CPU's", "[ops][cuda]") {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
  for (const std::int64_t cols : {1, 4}) {
    for (const std::int64_t k : {1, 50}) {
      CAPTURE(cols, k);
      const TopKCase given = top_k_case(cols, k, true);
      const auto run = [&](Device device) {
        const Tensor z = Tensor::from(given.z, {given.offsets.back(), cols}, Purpose::activations, device);
        std::vector<ops::Ranked> top(static_cast<std::size_t>(given.segments() * cols * k), {7, 7});
        ops::top_k(device, {given.segments(), cols, k, given.offsets.data(), z.data(), top.data()});
        return top;
      };
      CHECK(same_entries(run(Device::cpu), run(Device::cuda)));
    }
  }
  const std::vector<std::int64_t> none = {0, 0};
  std::vector<ops::Ranked> top(2, {7, 7});
  ops::top_k(Device::cuda, {1, 1, 2, none.data(), nullptr, top.data()});
  CHECK(same_entries(top, {{}, {}}));
}
