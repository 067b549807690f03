// Tensors on memory that they do not own.
#include "etc_core/tensor/tensor.h"

#include <cstdlib>
#include <memory>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/parameters.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

namespace etc {
namespace {

using Catch::Matchers::Contains;
using test::noise;

// A copy of the numbers, aligned to 64 bytes; `freed` is set when the memory is freed.
std::shared_ptr<float> aligned_copy(const Tensor& values, bool* freed) {
  const auto bytes = static_cast<std::size_t>((values.size() * 4 + 63) / 64 * 64);
  auto* memory = static_cast<float*>(std::aligned_alloc(64, bytes));
  std::copy_n(values.data(), values.size(), memory);
  return {memory, [freed](float* p) {
            std::free(p);
            *freed = true;
          }};
}

TEST_CASE("a tensor adopts memory of another owner without a copy and lets it go with its last handle", "[tensor]") {
  bool freed = false;
  {
    std::shared_ptr<float> memory = aligned_copy(noise({3, 5}, 1), &freed);
    const float* const address = memory.get();
    const std::int64_t before = memory_ledger::report().total;
    Tensor adopted = Tensor::adopt(std::move(memory), {3, 5}, Purpose::weights);
    CHECK(adopted.data() == address);
    CHECK(adopted.shape() == std::vector<std::int64_t>{3, 5});
    CHECK(memory_ledger::report().total == before);
    CHECK(adopted.is_only_handle());
    const Tensor same = adopted.reshaped({15});
    CHECK(same.shares_memory_with(adopted));
    CHECK(!adopted.clone().shares_memory_with(adopted));
    adopted = {};
    CHECK(!freed);
    CHECK(same.data()[14] == noise({3, 5}, 1).data()[14]);
  }
  CHECK(freed);
}

TEST_CASE("an operator gives the same bits on adopted weights as on its own", "[tensor]") {
  register_cpu_backend();
  ParameterSet parameters;
  Parameter& kernel = parameters.add("kernel", {20, 24}, {});
  Dense dense;
  dense.parts = {{&kernel, nullptr}};
  const Var x(noise({7, 20}, 2));
  Tape tape(Recording::off);
  kernel.value = noise({20, 24}, 3);
  const Tensor expected = linear(tape, x, dense).value();
  bool freed = false;
  kernel.value = Tensor::adopt(aligned_copy(kernel.value, &freed), {20, 24}, Purpose::weights);
  const Tensor got = linear(tape, x, dense).value();
  CHECK(std::equal(got.data(), got.data() + got.size(), expected.data()));
}

TEST_CASE("memory that begins inside of a 64-byte line, or none at all, is refused", "[tensor]") {
  bool freed = false;
  const std::shared_ptr<float> memory = aligned_copy(noise({40}, 4), &freed);
  const std::shared_ptr<float> inside(memory, memory.get() + 3);
  CHECK_THROWS_WITH(Tensor::adopt(inside, {8}, Purpose::weights), Contains("expected memory that begins on a 64-byte"));
  CHECK_THROWS_WITH(Tensor::adopt(nullptr, {8}, Purpose::weights), Contains("expected memory, got none"));
  CHECK_THROWS_AS(Tensor::adopt(memory, {-1}, Purpose::weights), Error);
}

}  // namespace
}  // namespace etc
