// Forward of linear attention. A block is a chunk of 512 rows of one head, processed 64 rows at a time:
//   1. TurnKernel          the projection, scaled and transposed
//   2. LargestKeyKernel    per key chunk the largest u
//   3. HeadMaximumKernel   per example and head the maximum over its chunks
//   4. KeySumKernel        per key chunk S and z with that maximum
//   5. HeadSumKernel       chunks added in order to the state; causal: the sums before each chunk
//   6. AttendKernel        per query chunk out and denominators
#pragma once

#include <cstdint>

#include "sparse/cuda/performer_blocks.h"

namespace etc::sparse::cuda {

inline constexpr std::int64_t kPerformerShared = RowNumbers::kBytes + LargestTiles::kBytes;

struct TurnKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer, projection"; }
  static std::int64_t blocks(const PerformerSizesView& sizes) {
    return ceil_div(std::int64_t{sizes.head_size} * sizes.features, kThreads);
  }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index(), m = p.sizes.features;
    if (i >= p.sizes.head_size * m) return;
    simt::store(p.turned, i, simt::load(p.projection, i % m * p.sizes.head_size + i / m) * p.sizes.scale);
  }
};

struct LargestKeyKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer, largest keys"; }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    const RowNumbers numbers = RowNumbers::take(arena);
    const LargestTiles tiles = LargestTiles::take(arena);
    const PerformerTask task = simt::load(p.key_tasks, simt::block_x());
    const PerformerWorkspace own = workspace_of_block(p);
    LargestFeature largest;
    for_each_row_block(task, false, [&](const RowBlock& block) {
      project_rows(p, p.k, block, own.keys, numbers);
      note_largest(p, block, own.keys, largest);
      simt::sync_block();
    });
    store_largest(p, task, largest, tiles);
  }
};

// The maximum over an example's keys, from its chunks; 0 without keys or without stabilisation.
ETC_DEVICE float largest_of_head(const PerformerParams& p, const PerformerHead& head) {
  if (!p.sizes.stabilised || head.key_chunks == 0) return 0.0f;
  float largest = -simt::infinity();
  for (int n = 0; n < head.key_chunks; ++n) {
    const float own = simt::load(p.largest, head.first_key_slot + n);
    largest = own > largest ? own : largest;
  }
  return largest;
}

// Block x is a head of an example.
struct HeadMaximumKernel : simt::BlockOf<32> {
  using Params = PerformerParams;
  static const char* name() { return "performer, maxima"; }

  static ETC_DEVICE void run(const Params& p) {
    if (simt::thread_index() != 0) return;
    const PerformerHead head = simt::load(p.heads, simt::block_x());
    simt::store(p.state, head.maximum, largest_of_head(p, head));
  }
};

struct KeySumKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer, sums over keys"; }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    const RowNumbers numbers = RowNumbers::take(arena);
    const PerformerTask task = simt::load(p.key_tasks, simt::block_x());
    const PerformerWorkspace own = workspace_of_block(p);
    const float maximum = simt::load(p.state, task.maximum);
    const SumPlace sum = sum_at(p.sizes, p.slots, simt::block_x() * p.sizes.sum_floats);
    clear_sum(p, sum);
    for_each_row_block(task, false, [&](const RowBlock& block) {
      project_rows(p, p.k, block, own.keys, numbers);
      key_features(p, block, maximum, own.keys, numbers);
      add_to_sum(
          p, block.count, own.keys, [&](int j, int c) { return value_element(p, block, j, c); }, sum);
    });
  }
};

// Block x is a head of an example; a thread accumulates elements of its sums over all chunks.
struct HeadSumKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer, sums of chunks"; }

  static ETC_DEVICE void run(const Params& p) {
    const PerformerHead head = simt::load(p.heads, simt::block_x());
    const int width = p.sizes.head_size + 1;
    for (int n = simt::thread_index(); n < p.sizes.features * width; n += kPerformerThreads) {
      const int r = n / width, c = n % width;
      float sum = 0.0f;
      for (int chunk = 0; chunk < head.key_chunks; ++chunk) {
        // Causal: a chunk uses the sums of the chunks before it.
        if (p.sizes.causal) sum_at(p.sizes, p.state, head.sum + chunk * p.sizes.sum_floats).store(r, c, sum);
        sum += sum_at(p.sizes, p.slots, (head.first_key_slot + chunk) * p.sizes.sum_floats).load(r, c);
      }
      if (!p.sizes.causal) sum_at(p.sizes, p.state, head.sum).store(r, c, sum);
    }
  }
};

struct AttendKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer, queries"; }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    const RowNumbers numbers = RowNumbers::take(arena);
    const PerformerTask task = simt::load(p.query_tasks, simt::block_x());
    const PerformerWorkspace own = workspace_of_block(p);
    SumPlace sum = sum_at(p.sizes, p.state, task.sum);
    if (p.sizes.causal) {
      // The sums of a causal chunk grow with its blocks, so they are kept in its own memory.
      const SumPlace running = sum_at(p.sizes, p.workspaces, own.sum);
      copy_sum(p, sum, running);
      sum = running;
    }
    for_each_row_block(task, false, [&](const RowBlock& block) {
      query_features(p, block, own.queries, numbers);
      block_product(
          {block.count, p.sizes.head_size + 1, p.sizes.features}, [&](int i, int r) { return own.queries.load(i, r); },
          [&](int r, int c) { return sum.load(r, c); }, [&](int i, int c, float x) { own.rows.store(i, c, x); });
      if (p.sizes.causal) add_own_block(p, task, block, own, numbers, sum);
      simt::sync_block();
      write_rows(p, block, own.rows);
      simt::sync_block();
    });
  }

 private:
  // Adds the block's own keys, up to each query's position, and their share of the sums.
  static ETC_DEVICE void add_own_block(const Params& p, const PerformerTask& task, const RowBlock& block,
                                       const PerformerWorkspace& own, const RowNumbers& numbers, const SumPlace& sum) {
    const auto value = [&](int j, int c) { return value_element(p, block, j, c); };
    simt::sync_block();
    project_rows(p, p.k, block, own.keys, numbers);
    key_features(p, block, simt::load(p.state, task.maximum), own.keys, numbers);
    causal_pairs(p, block.count, own);
    block_product(
        {block.count, p.sizes.head_size + 1, block.count}, [&](int i, int j) { return own.pairs.load(i, j); }, value,
        [&](int i, int c, float x) { own.rows.store(i, c, own.rows.load(i, c) + x); });
    add_to_sum(p, block.count, own.keys, value, sum);
  }

  // out = numerators / denominator. Without keys the denominator is zero, and so is out.
  static ETC_DEVICE void write_rows(const Params& p, const RowBlock& block, const Matrix& rows) {
    const int width = p.sizes.head_size + 1;
    for (int n = simt::thread_index(); n < block.count * width; n += kPerformerThreads) {
      const int i = n / width, c = n % width;
      const float denominator = rows.load(i, p.sizes.head_size);
      const float factor = denominator > 0.0f ? 1.0f / denominator : 0.0f;
      if (c < p.sizes.head_size) {
        simt::store(p.out.values, output_place(p.out, block, p.sizes.head_size, i, c), factor * rows.load(i, c));
      } else {
        simt::store(p.denominators, block.head * p.sizes.queries + block.first + i, denominator);
      }
    }
  }
};

}  // namespace etc::sparse::cuda
