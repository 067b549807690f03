// Equal bits for any number of threads and for an example alone or in a batch; nearly equal results on all instruction
// sets.
#include "etc_core/base/parallel.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

namespace {

bool same_rows(const bench::RowBuffer& a, std::int64_t first_a, const bench::RowBuffer& b, std::int64_t first_b,
               std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < a.width; ++c) {
      if (a.at(first_a + r, c) != b.at(first_b + r, c)) return false;
    }
  }
  return true;
}

void copy_rows(const bench::RowBuffer& from, std::int64_t first, bench::RowBuffer& to) {
  for (std::int64_t r = 0; r < to.count; ++r) {
    for (std::int64_t c = 0; c < to.width; ++c) to.values[r * to.stride + c] = from.at(first + r, c);
  }
}

}  // namespace

// All tables, shared by heads, and labels by distance.
AttentionCase with_terms(AttentionCase c) {
  c.relative_labels = 23;
  c.distances = sparse::clipped_distances(11);
  c.parts = {true, true, true, true, false, true, true};
  return c;
}

// The tables that are supported in bf16.
AttentionCase with_few_terms(AttentionCase c) {
  c = with_terms(c);
  c.parts = {true, true, false, true};
  return c;
}

TEST_CASE("results have the same bits on 1, 2 and 4 threads", "[sparse]") {
  sparse::register_cpu_kernels();
  const int before = thread_count();
  const AttentionCase ragged{"ragged", {1100, 3, 200}, {40, 2, 17}, 30, 2, 8, 12, Labels::scattered, 1.0f, 0.1f};
  const bool bf16 = GENERATE(false, true);
  for (const AttentionCase& c : {ragged, bf16 ? with_few_terms(ragged) : with_terms(ragged)}) {
    for (Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, 2, {true, true, true, true}, false, false, Device::cpu, bf16};
      set_thread_count(1);
      const StackResult one = run_stack(stack);
      for (int threads : {2, 4}) {
        set_thread_count(threads);
        const StackResult more = run_stack(stack);
        for (std::size_t l = 0; l < 2; ++l) {
          CHECK(different_results(*one.layers[l], *more.layers[l]) == "");
        }
        CHECK(one.running == more.running);
        CHECK(one.gradient == more.gradient);
      }
    }
  }
  set_thread_count(before);
}

TEST_CASE("an example has the same bits alone and in a batch", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase document{"batch", {70, 1000, 5}, {20, 33, 4}, 9, 2, 8, 12, Labels::document, 1.0f, 0.2f};
  const bool terms = GENERATE(false, true), bf16 = GENERATE(false, true);
  AttentionCase batch = terms ? (bf16 ? with_few_terms(document) : with_terms(document)) : document;
  if (bf16) batch.compute = ComputeType::bf16;
  for (Side side : {Side::long_side, Side::global_side}) {
    const auto structure = std::make_shared<const Structure>(batch);
    AttentionProblem all(batch, structure, side);
    all.forward();
    all.backward();
    for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
      AttentionCase alone = batch;
      alone.lengths = {batch.lengths[b]};
      alone.globals = {batch.globals[b]};
      AttentionProblem one(alone, std::make_shared<const Structure>(alone), side);
      one.ordinals = {all.ordinals[b]};
      const bool is_long = side == Side::long_side;
      const std::int64_t query = is_long ? structure->long_offsets[b] : structure->global_offsets[b];
      const std::int64_t key[2] = {query, is_long ? structure->global_offsets[b] : structure->long_offsets[b]};
      copy_rows(all.q, query, one.q);
      copy_rows(all.dout, query, one.dout);
      for (int t = 0; t < 2; ++t) {
        copy_rows(all.k[t], key[t], one.k[t]);
        copy_rows(all.v[t], key[t], one.v[t]);
      }
      std::copy(all.rel.begin(), all.rel.end(), one.rel.begin());
      std::copy(all.rel_bias.begin(), all.rel_bias.end(), one.rel_bias.begin());
      one.forward();
      one.backward();
      CHECK(same_rows(all.out, query, one.out, 0, one.out.count));
      CHECK(same_rows(all.dq, query, one.dq, 0, one.dq.count));
      for (int t = 0; t < 2; ++t) {
        CHECK(same_rows(all.dk[t], key[t], one.dk[t], 0, one.dk[t].count));
        CHECK(same_rows(all.dv[t], key[t], one.dv[t], 0, one.dv[t].count));
      }
    }
  }
}

// test_sparse.avx2 runs this test again with ETC_MAX_CPU=avx2.
TEST_CASE("the kernels of every instruction set equal the reference", "[sparse][processor]") {
  sparse::register_cpu_kernels();
  for (std::int64_t head_size : {6, 16, 64}) {
    const AttentionCase listed{"processor", {40, 9}, {18, 5}, 9, 2, head_size, 12, Labels::scattered, 1.0f, 0.1f, 3};
    for (const AttentionCase& c : {listed, with_terms(listed)}) {
      for (Side side : {Side::long_side, Side::global_side}) {
        const Stack stack{c, side, 3, {true, true, true, true}, true, false};
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  }
}
