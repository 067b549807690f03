// The CUDA kernels on the emulator, against the double-precision reference: the cases of the CPU's tests, in both
// precisions.
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/cuda/mirrored_device.h"
#include "tests/support/catch.h"
#include "tests/support/simt/emulator.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

// Calls run(bf16) for products in fp32 and in bf16.
template <typename Run>
void in_both_precisions(const Run& run) {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  for (bool bf16 : {false, true}) run(bf16);
}

// The last example of a batch, in a batch of its own: outputs and gradients have the same bits.
void check_last_alone(const AttentionCase& batch) {
  AttentionCase alone = batch;
  alone.lengths = {batch.lengths.back()};
  alone.globals = {batch.globals.back()};
  for (Side side : {Side::long_side, Side::global_side}) {
    AttentionProblem all(batch, std::make_shared<const Structure>(batch), side);
    AttentionProblem one(alone, std::make_shared<const Structure>(alone), side);
    all.device = one.device = Device::cuda;
    one.ordinals = {all.ordinals[1]};
    const auto take_over = [](const bench::RowBuffer& from, bench::RowBuffer& to) {
      std::copy_n(from.values.data() + (from.count - to.count) * from.stride, to.count * to.stride, to.values.data());
    };
    take_over(all.q, one.q);
    take_over(all.dout, one.dout);
    for (int t = 0; t < 2; ++t) {
      take_over(all.k[t], one.k[t]);
      take_over(all.v[t], one.v[t]);
    }
    for (AttentionProblem* p : {&all, &one}) {
      p->forward();
      p->backward();
    }
    const auto same_end = [](const bench::RowBuffer& a, const bench::RowBuffer& b) {
      const float* end = a.values.data() + (a.count - b.count) * a.stride;
      return std::equal(end, end + b.count * b.stride, b.values.data());
    };
    CHECK(same_end(all.out, one.out));
    CHECK(same_end(all.dq, one.dq));
    for (int t = 0; t < 2; ++t) {
      CHECK(same_end(all.dk[t], one.dk[t]));
      CHECK(same_end(all.dv[t], one.dv[t]));
    }
  }
}

}  // namespace

namespace {

void compare_one_layer(const AttentionCase& c, bool bf16) {
  for (Side side : {Side::long_side, Side::global_side}) {
    CAPTURE(bf16);
    const Stack stack{c, side, 1, {}, false, false, Device::cuda, bf16};
    const std::int64_t before = simt::emulator_counts().launches;
    const StackResult result = run_stack(stack);
    const AttentionProblem& p = *result.layers[0];
    CHECK(compare_with_reference(stack, result) == "");
    CHECK((p.q.count == 0 || simt::emulator_counts().launches > before));
    for (const bench::RowBuffer* rows : {&p.out, &p.dq, &p.dk[0], &p.dk[1], &p.dv[0], &p.dv[1]}) {
      CHECK(rows->guards_intact());
    }
  }
}

// A case of a million pairs, whose products in fp32 take as long as all other cases.
bool is_wide(const AttentionCase& c) {
  return c.radius > 100;
}

}  // namespace

TEST_CASE("emulated attention kernels equal the reference", "[sparse][cuda]") {
  in_both_precisions([](bool bf16) {
    for (const AttentionCase& c : attention_cases()) {
      if (bf16 || !is_wide(c)) compare_one_layer(c, bf16);
    }
  });
}

TEST_CASE("emulated attention kernels equal the reference in wide windows in fp32", "[sparse][cuda][slow]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : attention_cases()) {
    if (is_wide(c)) compare_one_layer(c, false);
  }
}

TEST_CASE("emulated kernels carry running scores through several layers", "[sparse][cuda]") {
  in_both_precisions([](bool bf16) {
    for (const AttentionCase& c : attention_cases()) {
      if (c.lengths[0] > 50) continue;
      for (Side side : {Side::long_side, Side::global_side}) {
        for (bool mean : {false, true}) {
          const Stack stack{c, side, 3, {true, true, true, true}, mean, false, Device::cuda, bf16};
          CHECK(compare_with_reference(stack, run_stack(stack)) == "");
        }
      }
    }
  });
}

TEST_CASE("emulated kernels manage heads whose tiles fit once only", "[sparse][cuda]") {
  in_both_precisions([](bool bf16) {
    for (std::int64_t labels : {0, 40}) {
      const std::int64_t head_size = bf16 ? 128 : 112;
      const AttentionCase c{
          "widest head", {90}, {17}, 20, 1, head_size, labels, labels > 0 ? Labels::scattered : Labels::none};
      for (Side side : {Side::long_side, Side::global_side}) {
        const Stack stack{c, side, 1, {}, false, false, Device::cuda, bf16};
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  });
}

TEST_CASE("an emulated layer recomputed from its running scores has the same bits", "[sparse][cuda]") {
  in_both_precisions([](bool bf16) {
    const AttentionCase c{"scattered", {75, 33}, {17, 40}, 11, 2, 16, 12, Labels::scattered, 1.0f, 0.1f};
    for (Side side : {Side::long_side, Side::global_side}) {
      Stack stack{c, side, 3, {true, true, true, true}, true, false, Device::cuda, bf16};
      const StackResult once = run_stack(stack);
      stack.recompute = true;
      const StackResult again = run_stack(stack);
      for (std::size_t l = 0; l < 3; ++l) {
        CHECK(different_results(*once.layers[l], *again.layers[l]) == "");
      }
      CHECK(once.gradient == again.gradient);
    }
  });
}

TEST_CASE("an emulated example has the same bits alone and in a batch", "[sparse][cuda]") {
  in_both_precisions([](bool bf16) {
    // 600 long tokens are more than one split of a global query's keys.
    AttentionCase batch{"batch", {9, 600}, {30, 20}, 9, 1, 8, 12, Labels::document, 1.0f, 0.2f};
    batch.compute = bf16 ? ComputeType::bf16 : ComputeType::fp32;
    check_last_alone(batch);
  });
  // Terms of every kind, labels listed and by distance.
  AttentionCase terms{"terms", {9, 70}, {30, 20}, 9, 1, 8, 12, Labels::document, 1.0f, 0.2f};
  terms.parts = {true, true, true, true, false, true};
  check_last_alone(terms);
  terms.labels = Labels::none;
  terms.distances = {-6, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  check_last_alone(terms);
}

TEST_CASE("emulated kernels report scores out of range and heads too large", "[sparse][cuda]") {
  register_mirrored_cuda_kernels();  // which read what the kernels leave: until then nobody looks for scores
  const AttentionCase c{"large scores", {20}, {3}, 4, 1, 16, 0, Labels::none, 100.0f};
  CHECK_THROWS_WITH(run_stack({c, Side::long_side, 1, {true, true, true, true}, false, false, Device::cuda}),
                    Contains("scores.l2l: layer 0: expected scores and running sums of at most 1024"));
  const AttentionCase wide{"D = 113", {20}, {3}, 4, 1, 113, 0, Labels::none};
  CHECK_THROWS_WITH(run_stack({wide, Side::global_side, 1, {}, false, false, Device::cuda}),
                    Contains("global_attention: cuda: expected a head size of at most D=112 in fp32, got D=113"));
}

TEST_CASE("copies to an emulated device and back change nothing", "[sparse][cuda]") {
  const OneThread one_thread;
  register_mirrored_cuda_kernels();
  const AttentionCase c{"scattered", {40, 9}, {18, 5}, 9, 2, 6, 12, Labels::scattered, 1.0f, 0.1f, 3};
  for (Side side : {Side::long_side, Side::global_side}) {
    const Stack stack{c, side, 2, {true, true, true, true}, true, true, Device::cuda, true};
    const StackResult result = run_stack(stack);
    CHECK(compare_with_reference(stack, result) == "");
    CHECK(result.layers[0]->out.guards_intact());
    CHECK(result.layers[0]->dk[1].guards_intact());
  }
}
