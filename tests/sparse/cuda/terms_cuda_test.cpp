// Relative terms, labels by distance and scales on the emulated CUDA kernels, against the double-precision reference.
#include "sparse/cuda/register_cuda.h"
#include "sparse/labels/distance_maps.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

AttentionCase with_terms(AttentionCase c, const sparse::DistanceMap& map, const bench::RelativeParts& parts) {
  c.distances = map;
  c.relative_labels = static_cast<std::int64_t>(*std::max_element(map.rows.begin(), map.rows.end())) + 1;
  c.parts = parts;
  return c;
}

// Cases of the CPU's tests, and those that the kernels' own sizes ask for.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all;
  for (const AttentionCase& c : term_cases()) {
    if (c.lengths[0] < 300) all.push_back(c);
  }
  // More rows than a group's table may have: one byte is not enough for a label.
  all.push_back(with_terms({"R = 301", {64}, {3}, 70, 1, 4, 0, Labels::none}, sparse::clipped_distances(150),
                           {true, true, true}));
  // Keys of a query, and queries of a key, that several blocks share.
  all.push_back(with_terms({"splits", {560}, {5}, 2, 1, 2, 0, Labels::none}, sparse::clipped_distances(3),
                           {true, false, true, false, true, true}));
  AttentionCase scaled{"scaled", {40}, {8}, 10, 1, 16, 8, Labels::scattered};
  scaled.scale = 1.0f;
  all.push_back(scaled);
  return all;
}

}  // namespace

TEST_CASE("emulated terms of every kind, their labels and scales equal the reference", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  std::size_t n = 0;
  for (const AttentionCase& c : cases()) {
    CAPTURE(c.name, n);
    // With scores carried through two layers and without: logits come from C, or from s.
    const bool carries = n++ % 2 == 0;
    for (const Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, carries ? 2 : 1, {carries, carries, carries, carries}, false, false, Device::cuda};
      const StackResult result = run_stack(stack);
      CHECK(compare_with_reference(stack, result) == "");
      CHECK(result.layers[0]->dq.guards_intact());
    }
  }
}

TEST_CASE("emulated terms computed again from running scores have the same bits", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  AttentionCase c{"again", {40, 9}, {18, 5}, 9, 2, 6, 12, Labels::scattered, 1.0f, 0.1f};
  c.parts = {true, true, true, false, true, true};
  for (const Side side : {Side::long_side, Side::global_side}) {
    Stack stack{c, side, 3, {true, true, true, true}, true, false, Device::cuda};
    const StackResult once = run_stack(stack);
    stack.recompute = true;
    const StackResult again = run_stack(stack);
    CHECK(compare_with_reference(stack, again) == "");
    for (std::size_t l = 0; l < 3; ++l) CHECK(different_results(*once.layers[l], *again.layers[l]) == "");
    CHECK(once.gradient == again.gradient);
  }
}

TEST_CASE("emulated products of bf16 take shared tables and labels by distance, and stay exact beside other terms",
          "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  AttentionCase c = with_terms({"bf16", {40, 9}, {18, 5}, 9, 2, 16, 0, Labels::none}, sparse::clipped_distances(6),
                               {true, true, false, false, false, false, true});
  for (const bool joined : {false, true}) {
    c.parts.key_vectors = c.parts.value_vectors = joined;
    for (const Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, 2, {true, true, true, true}, false, false, Device::cuda, true};
      CHECK(compare_with_reference(stack, run_stack(stack)) == "");
    }
  }
}

TEST_CASE("emulated kernels refuse heads too large for terms pair by pair", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  AttentionCase wide{"D = 105", {20}, {3}, 4, 1, 105, 4, Labels::scattered};
  wide.parts.key_vectors = true;
  CHECK_THROWS_WITH(run_stack({wide, Side::long_side, 1, {}, false, false, Device::cuda}),
                    Contains("long_attention: cuda: expected a head size of at most D=104 in fp32 with terms pair "
                             "by pair, or a pattern of each head, got D=105"));
  wide.head_size = 104;
  const Stack stack{wide, Side::long_side, 1, {}, false, false, Device::cuda};
  CHECK(compare_with_reference(stack, run_stack(stack)) == "");
}
