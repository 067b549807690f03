// Backward of linear attention (sparse/cpu/performer_backward-inl.h has the formulas). With dn_i = dout_i / den_i and
// de_i = -dout_i·out_i / den_i a query's row of D + 1 numbers is (dn_i, de_i), and with (S, z) and (dS, dz) as matrices
// of D + 1 columns
//   df(q_i) = (S, z) (dn_i, de_i)      (dS, dz) = sum_i f(q_i) (dn_i, de_i)T
//   df(k_j) = (dS, dz) (v_j, 1)        dv_j = dST f(k_j)
//   1. QueryGradientsKernel    per query chunk: dq; its share of (dS, dz) to a slot
//   2. SlotSumKernel           slots added in order; causal: to each slot the slots after it
//   3. KeyGradientsKernel      per key chunk: dk, dv; the sum of g and the position of its largest u
//   4. LargestGradientKernel   dk of the key that has the example's maximum
#pragma once

#include <cstdint>

#include "sparse/cuda/performer_forward.h"

namespace etc::sparse::cuda {

// (dn, de) of a block's queries.   to [count, D + 1]
ETC_DEVICE void load_query_gradients(const PerformerParams& p, const RowBlock& block, const Matrix& to) {
  const int i = row_of_thread(), head_size = p.sizes.head_size;
  const bool has = i < block.count;
  const float dot = sum_of_row(has ? head_size : 0, [&](int c) {
    return row_element(p.out_rows, block, i, c) * row_element(p.dout, block, i, c);
  });
  if (has) {
    const float denominator = simt::load(p.denominators, block.head * p.sizes.queries + block.first + i);
    const float factor = denominator > 0.0f ? 1.0f / denominator : 0.0f;
    for (int c = simt::thread_index() % 4; c < head_size; c += 4) {
      to.store(i, c, factor * row_element(p.dout, block, i, c));
    }
    if (first_of_row()) to.store(i, head_size, -factor * dot);
  }
  simt::sync_block();
}

// pair_slopes[i][j] = v_j·dn_i + de_i for j <= i, else 0.
ETC_DEVICE void causal_slopes(const PerformerParams& p, const RowBlock& block, const PerformerWorkspace& own) {
  block_product(
      {block.count, block.count, p.sizes.head_size + 1}, [&](int i, int c) { return own.rows.load(i, c); },
      [&](int c, int j) { return value_element(p, block, j, c); },
      [&](int i, int j, float x) { own.pair_slopes.store(i, j, j <= i ? x : 0.0f); });
  simt::sync_block();
}

// Replaces df by g = df e with e = f - 1e-6; also computes the sum of each row's g.
ETC_DEVICE void feature_slopes(const PerformerParams& p, int count, const Matrix& f, const Matrix& df,
                               const RowNumbers& numbers) {
  const float extra = p.sizes.stabilised ? kPerformerStabiliser : 0.0f;
  const int i = row_of_thread();
  const float sum = sum_of_row(i < count ? p.sizes.features : 0, [&](int r) {
    const float e = f.load(i, r) - extra, g = df.load(i, r) * (e > 0.0f ? e : 0.0f);
    df.store(i, r, g);
    return g;
  });
  if (first_of_row()) numbers.sums.store(i, sum);
  simt::sync_block();
}

// Writes dx = du·w sqrt(s) - sum(g) x s of a block.
ETC_DEVICE void write_gradients(const PerformerParams& p, const RowBlock& block, const Operand<float>& x,
                                const Matrix& du, const RowNumbers& numbers, const Output& to) {
  const int head_size = p.sizes.head_size;
  block_product(
      {block.count, head_size, p.sizes.features}, [&](int i, int r) { return du.load(i, r); },
      [&](int r, int c) { return simt::load(p.projection, std::int64_t{r} * head_size + c); },
      [&](int i, int c, float own) {
        const float norm = numbers.sums.load(i) * p.sizes.row_scale * row_element(x, block, i, c);
        simt::store(to.values, output_place(to, block, head_size, i, c), own * p.sizes.scale - norm);
      });
  simt::sync_block();
}

struct QueryGradientsKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer backward, queries"; }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    const RowNumbers numbers = RowNumbers::take(arena);
    const PerformerTask task = simt::load(p.query_tasks, simt::block_x());
    const PerformerWorkspace own = workspace_of_block(p);
    const SumPlace gradient = sum_at(p.sizes, p.slots, simt::block_x() * p.sizes.sum_floats);
    clear_sum(p, gradient);
    SumPlace sum = sum_at(p.sizes, p.state, task.sum);
    if (p.sizes.causal) {
      const SumPlace running = sum_at(p.sizes, p.workspaces, own.sum);
      copy_sum(p, sum, running);
      sum = running;
    }
    for_each_row_block(task, false, [&](const RowBlock& block) {
      query_features(p, block, own.queries, numbers);
      load_query_gradients(p, block, own.rows);
      block_product(
          {block.count, p.sizes.features, p.sizes.head_size + 1}, [&](int i, int c) { return own.rows.load(i, c); },
          [&](int c, int r) { return sum.load(r, c); }, [&](int i, int r, float x) { own.slopes.store(i, r, x); });
      simt::sync_block();
      if (p.sizes.causal) add_own_block(p, task, block, own, numbers, sum);
      feature_slopes(p, block.count, own.queries, own.slopes, numbers);
      const int i = row_of_thread();
      if (p.sizes.stabilised && first_of_row() && i < block.count) {
        const int best = numbers.best.load(i);
        own.slopes.store(i, best, own.slopes.load(i, best) - numbers.sums.load(i));
      }
      simt::sync_block();
      write_gradients(p, block, p.q, own.slopes, numbers, p.dq);
      add_to_sum(
          p, block.count, own.queries, [&](int row, int c) { return own.rows.load(row, c); }, gradient);
    });
  }

 private:
  // Adds the contribution of the block's own keys to df, and their share of the sums. `half` of the queries is
  // overwritten.
  static ETC_DEVICE void add_own_block(const Params& p, const PerformerTask& task, const RowBlock& block,
                                       const PerformerWorkspace& own, const RowNumbers& numbers, const SumPlace& sum) {
    project_rows(p, p.k, block, own.keys, numbers);
    key_features(p, block, simt::load(p.state, task.maximum), own.keys, numbers);
    causal_slopes(p, block, own);
    block_product(
        {block.count, p.sizes.features, block.count}, [&](int i, int j) { return own.pair_slopes.load(i, j); },
        [&](int j, int r) { return own.keys.load(j, r); },
        [&](int i, int r, float x) { own.slopes.store(i, r, own.slopes.load(i, r) + x); });
    add_to_sum(
        p, block.count, own.keys, [&](int j, int c) { return value_element(p, block, j, c); }, sum);
  }
};

// Block x is a head of an example. The first slot gets the sum of all slots; causal: each gets the sum of those after
// it.
struct SlotSumKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer backward, sums of chunks"; }

  static ETC_DEVICE void run(const Params& p) {
    const PerformerHead head = simt::load(p.heads, simt::block_x());
    const int width = p.sizes.head_size + 1;
    const auto slot = [&](int n) { return sum_at(p.sizes, p.slots, (head.first_query_slot + n) * p.sizes.sum_floats); };
    for (int n = simt::thread_index(); n < p.sizes.features * width; n += kPerformerThreads) {
      const int r = n / width, c = n % width;
      float sum = 0.0f;
      if (!p.sizes.causal) {
        for (int chunk = 0; chunk < head.query_chunks; ++chunk) sum += slot(chunk).load(r, c);
        if (head.query_chunks > 0) slot(0).store(r, c, sum);
        continue;
      }
      for (int chunk = head.query_chunks - 1; chunk >= 0; --chunk) {
        const float own = slot(chunk).load(r, c);
        slot(chunk).store(r, c, sum);
        sum += own;
      }
    }
  }
};

struct KeyGradientsKernel : simt::BlockOf<kPerformerThreads> {
  using Params = PerformerParams;
  static const char* name() { return "performer backward, keys"; }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    const RowNumbers numbers = RowNumbers::take(arena);
    const LargestTiles tiles = LargestTiles::take(arena);
    const PerformerTask task = simt::load(p.key_tasks, simt::block_x());
    const PerformerWorkspace own = workspace_of_block(p);
    const SumPlace gradient = sum_at(p.sizes, p.slots, task.gradient * p.sizes.sum_floats);
    LargestFeature largest;
    float slope = 0.0f;  // of the first thread
    // Causal: from the last block backwards, because the sums accumulate over the later queries.
    for_each_row_block(task, p.sizes.causal, [&](const RowBlock& block) {
      project_rows(p, p.k, block, own.keys, numbers);
      note_largest(p, block, own.keys, largest);
      simt::sync_block();
      key_features(p, block, simt::load(p.state, task.maximum), own.keys, numbers);
      products_with_sums(p, block, own, gradient);
      if (p.sizes.causal) add_own_block(p, block, own, numbers);
      feature_slopes(p, block.count, own.keys, own.slopes, numbers);
      for (int j = 0; j < block.count && simt::thread_index() == 0; ++j) slope += numbers.sums.load(j);
      write_gradients(p, block, p.k, own.slopes, numbers, p.dk);
      if (p.sizes.causal) {
        add_to_sum(
            p, block.count, own.queries, [&](int i, int c) { return own.rows.load(i, c); }, gradient);
      }
    });
    if (simt::thread_index() == 0) simt::store(p.slopes, simt::block_x(), slope);
    store_largest(p, task, largest, tiles);
  }

 private:
  // df = (dS, dz) (v, 1) and dv = dST f for the queries outside the block.
  static ETC_DEVICE void products_with_sums(const Params& p, const RowBlock& block, const PerformerWorkspace& own,
                                            const SumPlace& gradient) {
    const int head_size = p.sizes.head_size, features = p.sizes.features;
    block_product(
        {block.count, features, head_size + 1}, [&](int j, int c) { return value_element(p, block, j, c); },
        [&](int c, int r) { return gradient.load(r, c); }, [&](int j, int r, float x) { own.slopes.store(j, r, x); });
    block_product(
        {block.count, head_size, features}, [&](int j, int r) { return own.keys.load(j, r); },
        [&](int r, int c) { return gradient.load(r, c); },
        [&](int j, int c, float x) { simt::store(p.dv.values, output_place(p.dv, block, head_size, j, c), x); });
    simt::sync_block();
  }

  // The block's own queries; the pair matrices are read by columns.
  static ETC_DEVICE void add_own_block(const Params& p, const RowBlock& block, const PerformerWorkspace& own,
                                       const RowNumbers& numbers) {
    const int head_size = p.sizes.head_size, features = p.sizes.features;
    query_features(p, block, own.queries, numbers);
    load_query_gradients(p, block, own.rows);
    causal_pairs(p, block.count, own);
    causal_slopes(p, block, own);
    block_product(
        {block.count, features, block.count}, [&](int j, int i) { return own.pair_slopes.load(i, j); },
        [&](int i, int r) { return own.queries.load(i, r); },
        [&](int j, int r, float x) { own.slopes.store(j, r, own.slopes.load(j, r) + x); });
    block_product(
        {block.count, head_size, block.count}, [&](int j, int i) { return own.pairs.load(i, j); },
        [&](int i, int c) { return own.rows.load(i, c); },
        [&](int j, int c, float x) {
          const std::int64_t place = output_place(p.dv, block, head_size, j, c);
          simt::store(p.dv.values, place, simt::load(p.dv.values, place) + x);
        });
    simt::sync_block();
  }
};

// Block x is a head of an example. The maximum is subtracted from every key's u, so its gradient is minus the sum of
// all g.
struct LargestGradientKernel : simt::BlockOf<32> {
  using Params = PerformerParams;
  static const char* name() { return "performer backward, largest keys"; }

  static ETC_DEVICE void run(const Params& p) {
    const PerformerHead head = simt::load(p.heads, simt::block_x());
    if (head.key_chunks == 0) return;
    LargestFeature largest;
    float slope = 0.0f;
    for (std::int64_t n = head.first_key_slot; n < head.first_key_slot + head.key_chunks; ++n) {
      largest.take(simt::load(p.largest, n), simt::load(p.largest_row, n), simt::load(p.largest_feature, n));
      slope += simt::load(p.slopes, n);
    }
    const RowBlock row{head.head, largest.row, 1};
    for (int c = simt::thread_index(); c < p.sizes.head_size; c += kThreads) {
      const float direction =
          simt::load(p.projection, std::int64_t{largest.feature} * p.sizes.head_size + c) * p.sizes.scale;
      const std::int64_t place = output_place(p.dk, row, p.sizes.head_size, 0, c);
      simt::store(p.dk.values, place, simt::load(p.dk.values, place) - slope * direction);
    }
  }
};

}  // namespace etc::sparse::cuda
