// Forward of linear attention. A task is a chunk of 512 rows of one head:
//   1. key chunks       sums of exp(u - h - M_c) with the chunk's running maximum M_c, so that keys are read once;
//                       stored in the chunk's slot.
//   2. heads            maximum M of the example; slots, times exp(M_c - M), are added in order to the state; the 1e-6
//                       of every feature contributes 1e-6 times the sum of the values. Causal: sums before each chunk.
//   3. query chunks     out = f(q)·S / f(q)·z. Causal: block by block, then the block's keys are added to the sums.
//
// A causal block:
//   f(q) [64, padded] · f(k)T [padded, 64], j > i set to 0,  · v [64, stride]      keys of the same block
//   f(q) [64, padded] · S [padded, stride]                                         keys of all blocks before
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_PERFORMER_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_PERFORMER_FORWARD_INL_H_
#undef SPARSE_CPU_PERFORMER_FORWARD_INL_H_
#else
#define SPARSE_CPU_PERFORMER_FORWARD_INL_H_
#endif

#include "etc_core/base/parallel.h"
#include "sparse/cpu/performer_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One thread's memory.
struct PerformerScratch {
  FeatureBlock queries, keys;
  float* values = nullptr;  // of the keys [kBlockRows, stride]
  float* out = nullptr;     // [kBlockRows, stride]
  // Causal only.
  float* turned_keys = nullptr;  // [padded, kBlockRows]
  float* pairs = nullptr;        // [kBlockRows, kBlockRows]
  float* sum = nullptr;          // of the keys before a block

  PerformerScratch(Arena& arena, const PerformerSizes& sizes, bool causal)
      : queries(FeatureBlock::take(arena, sizes)), keys(FeatureBlock::take(arena, sizes)) {
    values = arena.take<float>(kBlockRows * sizes.stride);
    out = arena.take<float>(kBlockRows * sizes.stride);
    if (!causal) return;
    turned_keys = arena.take<float>(sizes.padded * kBlockRows);
    pairs = arena.take<float>(kBlockRows * kBlockRows);
    sum = arena.take<float>(sizes.sum_floats());
  }
};

// Results of pass 1 for a chunk: its sums, the sum of its values and its maximum.
struct KeySlot {
  FeatureSum sum;
  float* value_sum;  // [stride]
  float* maximum;

  static std::int64_t floats(const PerformerSizes& sizes) { return sizes.sum_floats() + sizes.stride + kLineFloats; }
  KeySlot(float* data, const PerformerSizes& sizes)
      : sum(data, sizes), value_sum(data + sizes.sum_floats()), maximum(value_sum + sizes.stride) {}
};

// All memory of a call, laid out by the arena both for counting and for computing.
struct PerformerForwardMemory {
  PerformerShared shared;
  ChunkList keys, queries;
  float* slots;
  std::byte* threads;
  std::int64_t thread_bytes;

  PerformerForwardMemory(Arena& arena, const PerformerInputs& in)
      : shared(PerformerShared::take(arena, in)),
        keys(in.key_offsets, in.examples, in.heads),
        queries(in.query_offsets, in.examples, in.heads) {
    slots = arena.take<float>(keys.tasks() * KeySlot::floats(shared.sizes));
    Arena counter(nullptr);
    const PerformerScratch one(counter, shared.sizes, in.causal);
    thread_bytes = counter.used();
    threads = arena.take<std::byte>(thread_count() * thread_bytes);
  }

  KeySlot slot(std::int64_t number) const { return {slots + number * KeySlot::floats(shared.sizes), shared.sizes}; }
};

// Calls body(block) for every block of a chunk.
template <typename Body>
HWY_INLINE void for_each_block(const Chunk& chunk, const Body& body) {
  for (std::int64_t first = 0; first < chunk.rows; first += kBlockRows) {
    body(RowBlock{chunk.head, chunk.first_row + first, std::min(kBlockRows, chunk.rows - first)});
  }
}

// The maximum of a block's u, at least `before`.
HWY_INLINE float largest_of_block(const PerformerSizes& sizes, std::int64_t count, const float* u, float before) {
  for (std::int64_t i = 0; i < count; ++i) before = std::max(before, largest_feature(sizes, u + i * sizes.padded));
  return before;
}

// Pass 1.
HWY_INLINE void sum_keys(const PerformerInputs& in, const PerformerShared& shared, const Chunk& chunk,
                         PerformerScratch& scratch, const KeySlot& slot) {
  const PerformerSizes& sizes = shared.sizes;
  std::fill_n(slot.sum.values, KeySlot::floats(sizes), 0.0f);
  float maximum = shared.stabilised ? -std::numeric_limits<float>::infinity() : 0.0f;
  for_each_block(chunk, [&](const RowBlock& block) HWY_ATTR {
    const std::int64_t count = block.count;
    load_rows(in.k, sizes, block, scratch.keys.rows);
    load_rows(in.v, sizes, block, scratch.values);
    project_rows(shared, count, scratch.keys);
    if (shared.stabilised) {
      const float larger = largest_of_block(sizes, count, scratch.keys.values, maximum);
      // Rescale the sums so far to the new maximum. For the first block they are 0, and exp(-inf) is 0.
      if (larger > maximum) {
        const float factor = exponential(maximum - larger);
        for (std::int64_t c = 0; c < sizes.sum_floats(); ++c) slot.sum.values[c] *= factor;
      }
      maximum = larger;
    }
    key_features(shared, count, maximum, 0.0f, scratch.keys);
    add_to_sum(sizes, count, scratch.keys.values, scratch.values, nullptr, slot.sum);
    for (std::int64_t i = 0; i < count; ++i)
      add_row(1.0f, scratch.values + i * sizes.stride, sizes.stride, slot.value_sum);
  });
  *slot.maximum = maximum;
}

// sum += exp(M_c - M) slot, plus the contribution of the 1e-6 of its keys.
HWY_INLINE void add_slot(const PerformerShared& shared, const KeySlot& slot, float maximum, std::int64_t rows,
                         const FeatureSum& sum) {
  const PerformerSizes& sizes = shared.sizes;
  add_row(exponential(*slot.maximum - maximum), slot.sum.values, sizes.sum_floats(), sum.values);
  if (!shared.stabilised) return;
  for (std::int64_t r = 0; r < sizes.features; ++r) {
    add_row(kStabiliser, slot.value_sum, sizes.stride, sum.values + r * sizes.stride);
    sum.ones[r] += kStabiliser * static_cast<float>(rows);
  }
}

// Pass 2 for one head of an example: adds the slots in order to the state.
HWY_INLINE void finish_sums(const PerformerForwardMemory& memory, const PerformerState& state, std::int64_t b,
                            std::int64_t head, float* to) {
  const PerformerSizes& sizes = memory.shared.sizes;
  const std::int64_t chunks = memory.keys.chunks(b), first = memory.keys.slot(b, head, 0);
  float maximum = chunks == 0 ? 0.0f : -std::numeric_limits<float>::infinity();
  for (std::int64_t n = 0; n < chunks; ++n) maximum = std::max(maximum, *memory.slot(first + n).maximum);
  to[state.maximum(b, head)] = maximum;
  if (!state.causal) std::fill_n(to + state.sum(b, head, 0), sizes.sum_floats(), 0.0f);
  for (std::int64_t n = 0; n < chunks; ++n) {
    float* const place = to + state.sum(b, head, state.causal ? n : 0);
    const std::int64_t before = n - 1;  // the slot to add
    if (!state.causal) {
      add_slot(memory.shared, memory.slot(first + n), maximum, memory.keys.chunk(first + n).rows, {place, sizes});
    } else if (n == 0) {
      std::fill_n(place, sizes.sum_floats(), 0.0f);
    } else {
      std::copy_n(to + state.sum(b, head, before), sizes.sum_floats(), place);
      add_slot(memory.shared, memory.slot(first + before), maximum, memory.keys.chunk(first + before).rows,
               {place, sizes});
    }
  }
}

// pairs[i][j] = f(q_i)·f(k_j) for j <= i, else 0; also computes its operand f(k)T.
HWY_INLINE void causal_pairs(const PerformerSizes& sizes, PerformerScratch& scratch) {
  transpose(scratch.keys.values, kBlockRows, sizes.padded, scratch.turned_keys);
  block_product<Sum::fresh>({scratch.queries.values, sizes.padded, 1}, {scratch.turned_keys, kBlockRows},
                            {scratch.pairs, kBlockRows}, {kBlockRows, kBlockRows, sizes.padded});
  for (std::int64_t i = 0; i < kBlockRows; ++i) {
    std::fill(scratch.pairs + i * kBlockRows + i + 1, scratch.pairs + (i + 1) * kBlockRows, 0.0f);
  }
}

// Loads the keys of a causal block and computes their features; also loads their values.
HWY_INLINE void load_keys(const PerformerInputs& in, const PerformerShared& shared, const RowBlock& block,
                          float maximum, PerformerScratch& scratch) {
  load_rows(in.k, shared.sizes, block, scratch.keys.rows);
  load_rows(in.v, shared.sizes, block, scratch.values);
  project_rows(shared, block.count, scratch.keys);
  key_features(shared, block.count, maximum, shared.stabilised ? kStabiliser : 0.0f, scratch.keys);
}

// Pass 3.
HWY_INLINE void attend_chunk(const PerformerForward& args, const PerformerShared& shared, const PerformerState& state,
                             const Chunk& chunk, PerformerScratch& scratch) {
  const PerformerInputs& in = args.inputs;
  const PerformerSizes& sizes = shared.sizes;
  float* const before = args.state + state.sum(chunk.example, chunk.head, chunk.index);
  const float maximum = args.state[state.maximum(chunk.example, chunk.head)];
  // A causal chunk's sums grow block by block, in a copy.
  if (in.causal) std::copy_n(before, sizes.sum_floats(), scratch.sum);
  const FeatureSum sum(in.causal ? scratch.sum : before, sizes);
  for_each_block(chunk, [&](const RowBlock& block) HWY_ATTR {
    const std::int64_t count = block.count;
    load_rows(in.q, sizes, block, scratch.queries.rows);
    query_features(shared, count, scratch.queries, nullptr);
    const std::int64_t rows = round_up(count, kTileRows);
    std::fill_n(scratch.queries.values + count * sizes.padded, (kBlockRows - count) * sizes.padded, 0.0f);
    block_product<Sum::fresh>({scratch.queries.values, sizes.padded, 1}, {sum.values, sizes.stride},
                              {scratch.out, sizes.stride}, {rows, sizes.stride, sizes.padded});
    if (in.causal) {
      load_keys(in, shared, block, maximum, scratch);
      causal_pairs(sizes, scratch);
      block_product<Sum::added>({scratch.pairs, kBlockRows, 1}, {scratch.values, sizes.stride},
                                {scratch.out, sizes.stride}, {rows, sizes.stride, kBlockRows});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      float denominator = row_dot(scratch.queries.values + i * sizes.padded, sum.ones, sizes.padded);
      for (std::int64_t j = 0; in.causal && j <= i; ++j) denominator += scratch.pairs[i * kBlockRows + j];
      args.denominators[chunk.head * in.q.rows + block.first + i] = denominator;
      // Without keys the denominator is 0 and so is the result.
      const float factor = denominator > 0.0f ? 1.0f / denominator : 0.0f;
      float* const to = head_row(args.out, block.first + i, chunk.head, sizes.head_size);  // [D]
      for (std::int64_t c = 0; c < sizes.head_size; ++c) to[c] = factor * scratch.out[i * sizes.stride + c];
    }
    if (in.causal) add_to_sum(sizes, count, scratch.keys.values, scratch.values, nullptr, sum);
  });
}

// Runs body(chunk, slot, scratch) for every chunk of a list.
template <typename Scratch, typename Memory, typename Body>
void for_each_chunk(const Memory& memory, const ChunkList& list, bool causal, const Body& body) {
  parallel_for(list.tasks(), [&](std::int64_t number, int thread) HWY_ATTR {
    Arena arena(memory.threads + thread * memory.thread_bytes);
    Scratch scratch(arena, memory.shared.sizes, causal);
    body(list.chunk(number), number, scratch);
  });
}

inline void run_performer_forward(const PerformerForward& args) {
  const PerformerInputs& in = args.inputs;
  Arena arena(args.scratch);
  const PerformerForwardMemory memory(arena, in);
  const PerformerState state(in);
  memory.shared.fill(in);
  for_each_chunk<PerformerScratch>(memory, memory.keys, in.causal,
                                   [&](const Chunk& chunk, std::int64_t number, PerformerScratch& scratch)
                                       HWY_ATTR { sum_keys(in, memory.shared, chunk, scratch, memory.slot(number)); });
  parallel_for(in.examples * in.heads,
               [&](std::int64_t n) HWY_ATTR { finish_sums(memory, state, n / in.heads, n % in.heads, args.state); });
  for_each_chunk<PerformerScratch>(memory, memory.queries, in.causal,
                                   [&](const Chunk& chunk, std::int64_t, PerformerScratch& scratch)
                                       HWY_ATTR { attend_chunk(args, memory.shared, state, chunk, scratch); });
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
