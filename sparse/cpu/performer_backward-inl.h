// Backward of linear attention. With S = sum_j f(k_j) v_jT, z = sum_j f(k_j) and, of a query,
//   dn_i = dout_i / den_i      of the numerator f(q_i)·S
//   de_i = -dout_i·out_i / den_i      of the denominator f(q_i)·z
// the gradients are those of two products, twice:
//   df(q_i) = S dn_i + z de_i             dS = sum_i f(q_i) dn_iT,  dz = sum_i f(q_i) de_i
//   df(k_j) = dS v_j + dz                 dv_j = dST f(k_j)
// Causal: S over the keys up to i, dS over the queries from j on; within a block the 64 x 64 pairs are computed.
// Features: with e = f - 1e-6 and g = df e:  du = g, dh = -sum_r g. The sum of all g is subtracted from the du of the
// maximal u (of the query; of all keys of the example).
//
//   1. query chunks     dq; f(q)T dn is stored in the chunk's slot
//   2. heads            slots are added in order; causal: from the last chunk on, each then holds the sum of later ones
//   3. key chunks       dk, dv; the sum of g and the position of the chunk's largest u are stored (LargestKey)
//   4. heads            correction of dk of the key that has the example's maximum
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_PERFORMER_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_PERFORMER_BACKWARD_INL_H_
#undef SPARSE_CPU_PERFORMER_BACKWARD_INL_H_
#else
#define SPARSE_CPU_PERFORMER_BACKWARD_INL_H_
#endif

#include "sparse/cpu/performer_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One thread's memory, in addition to that of forward.
struct PerformerGradientScratch : PerformerScratch {
  float* dout = nullptr;        // dn [kBlockRows, stride]
  float* slopes = nullptr;      // df, then g [kBlockRows, padded]
  float* turned_sum = nullptr;  // S or dS as [stride, padded]
  // Causal only.
  float* turned_values = nullptr;  // [stride, kBlockRows]
  float* pair_slopes = nullptr;    // [kBlockRows, kBlockRows]: v_j·dn_i + de_i for j <= i
  float denominators[kBlockRows];  // de
  std::int64_t best[kBlockRows];   // the feature that has a query's maximum

  PerformerGradientScratch(Arena& arena, const PerformerSizes& sizes, bool causal)
      : PerformerScratch(arena, sizes, causal) {
    dout = arena.take<float>(kBlockRows * sizes.stride);
    slopes = arena.take<float>(kBlockRows * sizes.padded);
    turned_sum = arena.take<float>(sizes.stride * sizes.padded);
    if (!causal) return;
    turned_values = arena.take<float>(sizes.stride * kBlockRows);
    pair_slopes = arena.take<float>(kBlockRows * kBlockRows);
  }
};

// The largest u of a chunk, from pass 3.
struct LargestKey {
  float value = -std::numeric_limits<float>::infinity();
  float slope = 0.0f;  // sum of g over the chunk
  std::int64_t row = 0, feature = 0;
};

struct PerformerBackwardMemory {
  PerformerShared shared;
  ChunkList keys, queries;
  float* slots;  // dS, dz of every query chunk
  LargestKey* largest;
  std::byte* threads;
  std::int64_t thread_bytes;

  PerformerBackwardMemory(Arena& arena, const PerformerInputs& in)
      : shared(PerformerShared::take(arena, in)),
        keys(in.key_offsets, in.examples, in.heads),
        queries(in.query_offsets, in.examples, in.heads) {
    // One additional, zero slot for examples that have keys but no queries.
    slots = arena.take<float>((queries.tasks() + 1) * shared.sizes.sum_floats());
    largest = arena.take<LargestKey>(keys.tasks());
    Arena counter(nullptr);
    const PerformerGradientScratch one(counter, shared.sizes, in.causal);
    thread_bytes = counter.used();
    threads = arena.take<std::byte>(thread_count() * thread_bytes);
  }

  float* slot(std::int64_t number) const { return slots + number * shared.sizes.sum_floats(); }
  float* no_queries() const { return slot(queries.tasks()); }
};

// Loads a block's queries and computes their features, dn and de.
HWY_INLINE void load_query_gradients(const PerformerBackward& args, const PerformerShared& shared,
                                     const RowBlock& block, PerformerGradientScratch& scratch) {
  const PerformerSizes& sizes = shared.sizes;
  const std::int64_t count = block.count;
  load_rows(args.inputs.q, sizes, block, scratch.queries.rows);
  query_features(shared, count, scratch.queries, scratch.best);
  std::fill_n(scratch.queries.values + count * sizes.padded, (kBlockRows - count) * sizes.padded, 0.0f);
  load_rows(args.dout, sizes, block, scratch.dout);
  std::fill_n(scratch.denominators, kBlockRows, 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const float denominator = args.denominators[block.head * args.inputs.q.rows + block.first + i];
    const float factor = denominator > 0.0f ? 1.0f / denominator : 0.0f;
    const float* const out = head_row(args.out, block.first + i, block.head, sizes.head_size);  // [D]
    float* const dout = scratch.dout + i * sizes.stride;                                        // [stride]
    float dot = 0.0f;
    for (std::int64_t c = 0; c < sizes.head_size; ++c) dot += out[c] * dout[c];
    scratch.denominators[i] = -factor * dot;
    for (std::int64_t c = 0; c < sizes.head_size; ++c) dout[c] *= factor;
  }
}

// pair_slopes[i][j] = v_j·dn_i + de_i for j <= i, else 0.
HWY_INLINE void causal_slopes(const PerformerSizes& sizes, PerformerGradientScratch& scratch) {
  transpose(scratch.values, kBlockRows, sizes.stride, scratch.turned_values);
  block_product<Sum::fresh>({scratch.dout, sizes.stride, 1}, {scratch.turned_values, kBlockRows},
                            {scratch.pair_slopes, kBlockRows}, {kBlockRows, kBlockRows, sizes.stride});
  for (std::int64_t i = 0; i < kBlockRows; ++i) {
    float* const row = scratch.pair_slopes + i * kBlockRows;  // [kBlockRows]
    for (std::int64_t j = 0; j <= i; ++j) row[j] += scratch.denominators[i];
    std::fill(row + i + 1, row + kBlockRows, 0.0f);
  }
}

// Replaces df by g = df e for one row; returns the sum of g.
HWY_INLINE float feature_slopes(const PerformerShared& shared, const float* f, float* df) {
  const FloatTag d;
  const FloatVec extra = hn::Set(d, shared.stabilised ? kStabiliser : 0.0f);
  FloatVec sum = hn::Zero(d);
  // Beyond m f and df are 0; the maximum with 0 prevents e = -1e-6 there.
  for (std::int64_t r = 0; r < shared.sizes.padded; r += kLanes) {
    const FloatVec e = hn::Max(hn::Sub(hn::LoadU(d, f + r), extra), hn::Zero(d));
    const FloatVec g = hn::Mul(hn::LoadU(d, df + r), e);
    sum = hn::Add(sum, g);
    hn::StoreU(g, d, df + r);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// dx = du·w sqrt(s) - sum(g) x s of a block.   du [count, padded]; result in `to` [.., stride]
HWY_INLINE void rows_gradient(const PerformerShared& shared, const float* du, const float* sums,
                              const FeatureBlock& block, std::int64_t count, float* to) {
  const PerformerSizes& sizes = shared.sizes;
  block_product<Sum::fresh>({du, sizes.padded, 1}, {shared.projection, sizes.stride}, {to, sizes.stride},
                            {round_up(count, kTileRows), sizes.stride, sizes.padded});
  for (std::int64_t i = 0; i < count; ++i) {
    add_row(-sums[i] * shared.row_scale, block.rows + i * sizes.stride, sizes.stride, to + i * sizes.stride);
  }
}

HWY_INLINE void write_rows(const float* from, const PerformerSizes& sizes, const MutableRows& to,
                           const RowBlock& block) {
  for (std::int64_t i = 0; i < block.count; ++i) {
    std::copy_n(from + i * sizes.stride, sizes.head_size, head_row(to, block.first + i, block.head, sizes.head_size));
  }
}

// Pass 1.
HWY_INLINE void backward_queries(const PerformerBackward& args, const PerformerShared& shared,
                                 const PerformerState& state, const Chunk& chunk, PerformerGradientScratch& scratch,
                                 float* slot) {
  const PerformerInputs& in = args.inputs;
  const PerformerSizes& sizes = shared.sizes;
  const float* before = args.state + state.sum(chunk.example, chunk.head, chunk.index);
  const float maximum = args.state[state.maximum(chunk.example, chunk.head)];
  const FeatureSum gradient(slot, sizes);
  std::fill_n(slot, sizes.sum_floats(), 0.0f);
  if (in.causal) {
    std::copy_n(before, sizes.sum_floats(), scratch.sum);
    before = scratch.sum;
  } else {
    transpose(before, sizes.padded, sizes.stride, scratch.turned_sum);
  }
  const float* const ones = before + sizes.padded * sizes.stride;
  for_each_block(chunk, [&](const RowBlock& block) HWY_ATTR {
    const std::int64_t count = block.count;
    load_query_gradients(args, shared, block, scratch);
    const std::int64_t rows = round_up(count, kTileRows);
    if (in.causal) transpose(before, sizes.padded, sizes.stride, scratch.turned_sum);
    block_product<Sum::fresh>({scratch.dout, sizes.stride, 1}, {scratch.turned_sum, sizes.padded},
                              {scratch.slopes, sizes.padded}, {rows, sizes.padded, sizes.head_size});
    if (in.causal) {
      load_keys(in, shared, block, maximum, scratch);
      causal_slopes(sizes, scratch);
      block_product<Sum::added>({scratch.pair_slopes, kBlockRows, 1}, {scratch.keys.values, sizes.padded},
                                {scratch.slopes, sizes.padded}, {rows, sizes.padded, kBlockRows});
    }
    float sums[kBlockRows];
    for (std::int64_t i = 0; i < count; ++i) {
      float* const df = scratch.slopes + i * sizes.padded;  // [padded]
      add_row(scratch.denominators[i], ones, sizes.padded, df);
      sums[i] = feature_slopes(shared, scratch.queries.values + i * sizes.padded, df);
      if (shared.stabilised) df[scratch.best[i]] -= sums[i];
    }
    rows_gradient(shared, scratch.slopes, sums, scratch.queries, count, scratch.out);
    write_rows(scratch.out, sizes, args.dq, block);
    add_to_sum(sizes, count, scratch.queries.values, scratch.dout, scratch.denominators, gradient);
    if (in.causal) {
      add_to_sum(sizes, count, scratch.keys.values, scratch.values, nullptr, FeatureSum(scratch.sum, sizes));
    }
  });
}

// Pass 2 for one head of an example: the first slot becomes the sum of all; causal: each slot becomes the sum of the
// later ones.
HWY_INLINE void finish_sum_gradients(const PerformerBackwardMemory& memory, bool causal, std::int64_t b,
                                     std::int64_t head, float* behind) {
  const std::int64_t chunks = memory.queries.chunks(b), first = memory.queries.slot(b, head, 0);
  const std::int64_t floats = memory.shared.sizes.sum_floats();
  if (!causal) {
    for (std::int64_t n = 1; n < chunks; ++n) add_row(1.0f, memory.slot(first + n), floats, memory.slot(first));
    return;
  }
  // `behind` is the running sum of later chunks; it replaces each chunk's own sum.
  std::fill_n(behind, floats, 0.0f);
  for (std::int64_t n = chunks - 1; n >= 0; --n) {
    float* const own = memory.slot(first + n);  // [sum_floats]
    for (std::int64_t c = 0; c < floats; ++c) {
      const float sum = behind[c] + own[c];
      own[c] = behind[c];
      behind[c] = sum;
    }
  }
}

// Records the largest u of a chunk and its position, before the block's u are replaced by features.
HWY_INLINE void note_largest(const PerformerSizes& sizes, const float* features, const RowBlock& block,
                             LargestKey& largest) {
  for (std::int64_t i = 0; i < block.count; ++i) {
    const float* const u = features + i * sizes.padded;  // [padded]
    const float own = largest_feature(sizes, u);
    // Causal chunks are processed from the last block to the first; of equal values the first position counts.
    const bool earlier = own == largest.value && block.first + i < largest.row;
    if (!(own > largest.value) && !earlier) continue;
    largest.value = own;
    largest.row = block.first + i;
    largest.feature = std::find(u, u + sizes.features, own) - u;
  }
}

// Values that the blocks of a chunk share in pass 3: the example's maximum, and dS and dz of all queries (causal: of
// the queries after the block).
struct KeyPass {
  float maximum;
  FeatureSum gradient;
};

// One block of pass 3.
HWY_INLINE void backward_key_block(const PerformerBackward& args, const PerformerShared& shared, const KeyPass& pass,
                                   const RowBlock& block, PerformerGradientScratch& scratch, LargestKey& largest) {
  const PerformerInputs& in = args.inputs;
  const PerformerSizes& sizes = shared.sizes;
  const FeatureSum& gradient = pass.gradient;
  const std::int64_t count = block.count, rows = round_up(count, kTileRows);
  load_rows(in.k, sizes, block, scratch.keys.rows);
  load_rows(in.v, sizes, block, scratch.values);
  project_rows(shared, count, scratch.keys);
  if (shared.stabilised) note_largest(sizes, scratch.keys.values, block, largest);
  key_features(shared, count, pass.maximum, shared.stabilised ? kStabiliser : 0.0f, scratch.keys);
  block_product<Sum::fresh>({scratch.values, sizes.stride, 1}, {scratch.turned_sum, sizes.padded},
                            {scratch.slopes, sizes.padded}, {rows, sizes.padded, sizes.head_size});
  block_product<Sum::fresh>({scratch.keys.values, sizes.padded, 1}, {gradient.values, sizes.stride},
                            {scratch.out, sizes.stride}, {rows, sizes.stride, sizes.padded});
  if (in.causal) {
    // Queries of the same block; the pair matrices are read by columns.
    load_query_gradients(args, shared, block, scratch);
    causal_pairs(sizes, scratch);
    causal_slopes(sizes, scratch);
    block_product<Sum::added>({scratch.pair_slopes, 1, kBlockRows}, {scratch.queries.values, sizes.padded},
                              {scratch.slopes, sizes.padded}, {rows, sizes.padded, kBlockRows});
    block_product<Sum::added>({scratch.pairs, 1, kBlockRows}, {scratch.dout, sizes.stride}, {scratch.out, sizes.stride},
                              {rows, sizes.stride, kBlockRows});
  }
  write_rows(scratch.out, sizes, args.dv, block);
  float sums[kBlockRows];
  for (std::int64_t j = 0; j < count; ++j) {
    float* const df = scratch.slopes + j * sizes.padded;  // [padded]
    add_row(1.0f, gradient.ones, sizes.padded, df);
    sums[j] = feature_slopes(shared, scratch.keys.values + j * sizes.padded, df);
    largest.slope += sums[j];
  }
  rows_gradient(shared, scratch.slopes, sums, scratch.keys, count, scratch.out);
  write_rows(scratch.out, sizes, args.dk, block);
}

// Pass 3.
HWY_INLINE void backward_keys(const PerformerBackward& args, const PerformerBackwardMemory& memory,
                              const PerformerState& state, const Chunk& chunk, PerformerGradientScratch& scratch,
                              LargestKey& largest) {
  const PerformerSizes& sizes = memory.shared.sizes;
  const bool causal = args.inputs.causal, queries = memory.queries.chunks(chunk.example) > 0;
  float* const slot = queries ? memory.slot(memory.queries.slot(chunk.example, chunk.head, causal ? chunk.index : 0))
                              : memory.no_queries();
  const FeatureSum gradient(slot, sizes);
  const KeyPass pass{args.state[state.maximum(chunk.example, chunk.head)], gradient};
  largest = LargestKey();
  const std::int64_t blocks = ceil_div(chunk.rows, kBlockRows);
  if (!causal) transpose(gradient.values, sizes.padded, sizes.stride, scratch.turned_sum);
  for (std::int64_t n = 0; n < blocks; ++n) {
    // Causal: from the last block to the first, so that the sums cover the queries after each block.
    const std::int64_t at = (causal ? blocks - 1 - n : n) * kBlockRows;
    const RowBlock block{chunk.head, chunk.first_row + at, std::min(kBlockRows, chunk.rows - at)};
    if (causal) transpose(gradient.values, sizes.padded, sizes.stride, scratch.turned_sum);
    backward_key_block(args, memory.shared, pass, block, scratch, largest);
    if (causal) add_to_sum(sizes, block.count, scratch.queries.values, scratch.dout, scratch.denominators, gradient);
  }
}

// Pass 4 for one head of an example: the maximum is subtracted from every key's u, so its gradient is minus the sum of
// all g.
HWY_INLINE void finish_largest(const PerformerBackward& args, const PerformerBackwardMemory& memory, std::int64_t b,
                               std::int64_t head) {
  const PerformerSizes& sizes = memory.shared.sizes;
  LargestKey all;
  for (std::int64_t n = 0; n < memory.keys.chunks(b); ++n) {
    const LargestKey& own = memory.largest[memory.keys.slot(b, head, n)];
    const float slope = all.slope + own.slope;
    if (own.value > all.value) all = own;
    all.slope = slope;
  }
  if (memory.keys.chunks(b) == 0) return;
  float* const dk = head_row(args.dk, all.row, head, sizes.head_size);                   // [D]
  const float* const direction = memory.shared.projection + all.feature * sizes.stride;  // [D]
  for (std::int64_t c = 0; c < sizes.head_size; ++c) dk[c] -= all.slope * direction[c];
}

inline void run_performer_backward(const PerformerBackward& args) {
  const PerformerInputs& in = args.inputs;
  Arena arena(args.scratch);
  const PerformerBackwardMemory memory(arena, in);
  const PerformerState state(in);
  memory.shared.fill(in);
  std::fill_n(memory.no_queries(), memory.shared.sizes.sum_floats(), 0.0f);
  using Scratch = PerformerGradientScratch;
  for_each_chunk<Scratch>(memory, memory.queries, in.causal,
                          [&](const Chunk& chunk, std::int64_t number, Scratch& scratch) HWY_ATTR {
                            backward_queries(args, memory.shared, state, chunk, scratch, memory.slot(number));
                          });
  parallel_for(in.examples * in.heads, [&](std::int64_t n, int thread) HWY_ATTR {
    Arena own(memory.threads + thread * memory.thread_bytes);
    const Scratch scratch(own, memory.shared.sizes, in.causal);
    finish_sum_gradients(memory, in.causal, n / in.heads, n % in.heads, scratch.sum);
  });
  for_each_chunk<Scratch>(memory, memory.keys, in.causal,
                          [&](const Chunk& chunk, std::int64_t number, Scratch& scratch)
                              HWY_ATTR { backward_keys(args, memory, state, chunk, scratch, memory.largest[number]); });
  if (!in.stabilised) return;
  parallel_for(in.examples * in.heads,
               [&](std::int64_t n) HWY_ATTR { finish_largest(args, memory, n / in.heads, n % in.heads); });
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
