// Rows of bf16 on the emulated GPU (bf16_rows.h).
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/bf16_rows.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

TEST_CASE("emulated attention on rows of bf16 has the bits of rows of fp32, rounded", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  // 600 long tokens: keys of global queries are split, and so are the queries that see a global key.
  AttentionCase cases[] = {
      {"split", {9, 600}, {30, 20}, 9, 2, 16, 12, Labels::document, 1.0f, 0.2f},
      {"scattered", {75, 33}, {17, 40}, 11, 3, 32, 12, Labels::scattered, 1.0f, 0.0f, 8},
      {"no labels", {40}, {5}, 7, 1, 128, 0, Labels::none, 1.0f, 0.1f},
      {"biases", {40, 0, 3}, {5, 1, 0}, 7, 2, 32, 12, Labels::document},
  };
  cases[3].parts.vectors = false;
  for (AttentionCase& c : cases) {
    c.compute = ComputeType::bf16;
    for (Side side : {Side::long_side, Side::global_side}) {
      CAPTURE(c.name, side == Side::long_side);
      CHECK(different_in_bf16_rows(c, side, Device::cuda) == "");
    }
  }
}

TEST_CASE("rows of bf16 are for devices and tables whose kernels read them", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  AttentionCase c{"one", {20}, {3}, 4, 1, 16, 12, Labels::document};
  c.compute = ComputeType::bf16;
  const auto problem_of = [](const AttentionCase& of) {
    return AttentionProblem(of, std::make_shared<const Structure>(of), Side::long_side);
  };
  CHECK(sparse::row_type(Device::cuda, problem_of(c).inputs()) == ElementType::bf16);
  CHECK(sparse::row_type(Device::cpu, problem_of(c).inputs()) == ElementType::bf16);
  AttentionCase fp32 = c;
  fp32.compute = ComputeType::fp32;
  CHECK(sparse::row_type(Device::cuda, problem_of(fp32).inputs()) == ElementType::fp32);
  CHECK(sparse::row_type(Device::cpu, problem_of(fp32).inputs()) == ElementType::fp32);
  AttentionCase odd = c;
  odd.head_size = 24;  // between two widths
  CHECK(sparse::row_type(Device::cuda, problem_of(odd).inputs()) == ElementType::fp32);
  CHECK(sparse::row_type(Device::cpu, problem_of(odd).inputs()) == ElementType::fp32);
  odd.head_size = 48;  // three whole groups
  CHECK(sparse::row_type(Device::cuda, problem_of(odd).inputs()) == ElementType::fp32);
  CHECK(sparse::row_type(Device::cpu, problem_of(odd).inputs()) == ElementType::bf16);
  AttentionCase values = c;
  values.parts.value_vectors = true;
  CHECK(sparse::row_type(Device::cuda, problem_of(values).inputs()) == ElementType::fp32);

  const auto forward = [&](const AttentionCase& of, Device device) {
    AttentionProblem p = problem_of(of);
    sparse::AttentionInputs in = p.inputs();
    in.type = ElementType::bf16;
    sparse::attention_forward(device, {in, {}, p.out.mutable_rows(), p.lse.data(), nullptr});
  };
  CHECK_THROWS_WITH(forward(fp32, Device::cpu), Contains("expected q, k and v in fp32 on cpu"));
  for (const Device device : {Device::cpu, Device::cuda}) {
    CHECK_THROWS_WITH(forward(c, device),
                      Contains("q: expected numbers in bf16 like those of the call, got the other type"));
  }
}
