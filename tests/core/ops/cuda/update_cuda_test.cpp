// The optimisers' updates on the emulator against the CPU's.
#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/register.h"
#include "etc_core/ops/update.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

struct Result {
  std::vector<float> numbers;  // m, v, w
  std::vector<double> sums;
};

// Two steps on three parameters of awkward sizes, one of which is adapted.
Result run(Device device) {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
  const std::int64_t sizes[] = {1, 300, 1000};
  std::vector<Guarded> m, v, w;
  std::vector<std::vector<float>> g;
  std::vector<ops::UpdateBlock> blocks;
  for (const std::int64_t size : sizes) {
    m.emplace_back(size);
    v.emplace_back(size);
    w.emplace_back(random_floats(size, 11));
    g.push_back(random_floats(size, 12));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    blocks.push_back(
        {g[i].data(), m[i].data(), v[i].data(), w[i].data(), sizes[i], i == 1 ? 0.01f : 0.0f, 0.1f, i == 2});
  }
  const ops::UpdateConstants constants{0.9f, 0.999f, 0.1f, 0.001f, 1e-6f, 0.7f};
  Result result;
  for (int step = 0; step < 2; ++step) {
    for (const double sum : ops::gradient_squares(device, blocks)) result.sums.push_back(sum);
    for (const ops::UpdateNorms& norms : ops::update_moments(device, constants, blocks)) {
      result.sums.push_back(norms.weights);
      result.sums.push_back(norms.update);
    }
    ops::update_weights(device, constants, std::span(blocks).subspan(2));
  }
  for (auto* arrays : {&m, &v, &w}) {
    for (const Guarded& array : *arrays) {
      CHECK(array.guards_intact());
      const auto values = array.values();
      result.numbers.insert(result.numbers.end(), values.begin(), values.end());
    }
  }
  return result;
}

}  // namespace

TEST_CASE("emulated updates leave the CPU's bits in moments and weights", "[ops][cuda]") {
  const Result cpu = run(Device::cpu), cuda = run(Device::cuda);
  CHECK(same_bits(cpu.numbers, cuda.numbers));
  REQUIRE(cpu.sums.size() == cuda.sums.size());
  for (std::size_t i = 0; i < cpu.sums.size(); ++i) {
    CHECK(cuda.sums[i] == Approx(cpu.sums[i]).epsilon(1e-13));  // sums in double, in another order
  }
}
