#include "etc_core/tensor/tensor.h"

#include "etc_core/base/memory_ledger.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a tensor is charged to its purpose while a handle lives", "[core][tensor]") {
  const auto charged = [] { return memory_ledger::report().current[static_cast<std::size_t>(Purpose::gradients)]; };
  const auto before = charged();
  {
    const Tensor a = Tensor::zeros({4, 8}, Purpose::gradients);
    const Tensor same = a;
    REQUIRE(charged() - before == 4 * 8 * 4);
    REQUIRE(same.shares_memory_with(a));
    const Tensor copy = a.clone(Purpose::moments);
    REQUIRE(!copy.shares_memory_with(a));
    REQUIRE(copy.purpose() == Purpose::moments);
    REQUIRE(charged() - before == 4 * 8 * 4);
  }
  REQUIRE(charged() == before);
}

TEST_CASE("a tensor is a matrix of its last dimension", "[core][tensor]") {
  const Tensor t = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2, 3}, Purpose::activations);
  REQUIRE(t.rows() == 4);
  REQUIRE(t.cols() == 3);
  REQUIRE(t.rank() == 3);
  REQUIRE(t.size() == 12);
  REQUIRE(t.shape_text() == "[2, 2, 3]");
  const Tensor flat = t.reshaped({4, 3});
  REQUIRE(flat.shares_memory_with(t));
  REQUIRE(flat.columns(1)[flat.cols()] == 5);
  flat.zero();
  REQUIRE(t.data()[11] == 0);
  REQUIRE(!Tensor());
  REQUIRE(Tensor::empty({0, 3}, Purpose::activations));
  REQUIRE(Tensor::empty({0, 3}, Purpose::activations).rows() == 0);
}

TEST_CASE("impossible tensors are errors", "[core][tensor]") {
  REQUIRE_THROWS_WITH(Tensor::empty({2, -1}, Purpose::weights), "tensor: sizes must not be negative, got [2, -1]");
  REQUIRE_THROWS_WITH(Tensor::from({1, 2}, {3}, Purpose::weights), "tensor: expected 3 values for shape [3], got 2");
  REQUIRE_THROWS_WITH(Tensor::zeros({2, 3}, Purpose::weights).reshaped({4}),
                      "tensor: reshape: expected a shape of 6 elements for [2, 3], got [4]");
  REQUIRE_THROWS_WITH(Tensor::empty({1}, Purpose::weights, Device::cuda),
                      Catch::Matchers::Contains("memory: no cuda memory in this build"));
}
