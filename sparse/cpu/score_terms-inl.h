// The terms of a score besides q·k: what a group and a task keep for them, forward and backward. The one place to add
// a term to (README.md, "Adding a score term").
//
//   s_ij = (q_i·k_j + q_i·rel[label_ij] + rel_bias[label_ij]) / sqrt(D)
//
// There are far fewer labels than keys, so the relative part of every label is computed once per group, and a pair
// looks its own up:
//   table[r][i] = (q_i·rel[r] + rel_bias[r]) / sqrt(D)      s_ij = q_i·k_j / sqrt(D) + table[label_ij][i]
// Backward is the mirror image: dtable[r][i] sums the gradients of the pairs with label r; at the group's end one
// small product takes dtable to dq and to the tables.
//
// A term is a policy of the tile loop, chosen per key block at compile time (with_term): a key block without labels
// runs the loop in which the term does not occur. Highway's per-target include guard.
#if defined(SPARSE_CPU_SCORE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_SCORE_TERMS_INL_H_
#undef SPARSE_CPU_SCORE_TERMS_INL_H_
#else
#define SPARSE_CPU_SCORE_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the terms keep. Labels are padded to whole steps, so that they can be multiplied like keys.
struct TermScratch {
  // Of the task's head.
  std::int64_t labels = 0;                // R rounded up to whole steps; 0: no term at all
  float* vectors = nullptr;               // [labels, stride]  rel; null: biases alone
  float* biases = nullptr;                // [labels]  rel_bias, 0 without
  std::uint16_t* bf16_vectors = nullptr;  // [labels in whole tiles, bf16_stride]  rel rounded
  // Of a group.
  float* table = nullptr;  // [labels, kGroup]
  // Backward.
  float* dtable = nullptr;  // [labels, kGroup]  of a group
  float* drel = nullptr;    // [labels, stride]  sum over the task's groups
  float* dbias = nullptr;   // [labels, kGroup]  likewise, still per lane: lanes are added once, at the task's end

  static TermScratch take(Arena& arena, const HeadContext& head, const RelativeTable& given, Pass pass) {
    TermScratch terms;
    const bool has_vectors = given.vectors != nullptr;
    terms.labels = padded_rows(given.rows());
    // Products of bf16 write whole tiles of rows.
    const std::int64_t whole_tiles = round_up(terms.labels, kTileRows16);
    const bool bf16 = head.bf16 != nullptr;
    if (has_vectors) terms.vectors = arena.take<float>(terms.labels * head.stride);
    terms.biases = arena.take<float>(terms.labels);
    if (bf16 && has_vectors) terms.bf16_vectors = arena.take<std::uint16_t>(whole_tiles * head.bf16_stride);
    terms.table = arena.take<float>((bf16 ? whole_tiles : terms.labels) * kGroup);
    if (pass == Pass::forward) return terms;
    terms.dtable = arena.take<float>(terms.labels * kGroup);
    terms.drel = arena.take<float>(has_vectors ? terms.labels * head.stride : 0);
    terms.dbias = arena.take<float>(terms.labels * kGroup);
    return terms;
  }
};

// table = (table + rel_bias) / sqrt(D); `table` holds q·rel.
HWY_INLINE void finish_table(const HeadContext& head, const TermScratch& terms) {
  const FloatTag d;
  const FloatVec scale = hn::Set(d, head.scale);
  for (std::int64_t r = 0; r < terms.labels; ++r) {
    const FloatVec bias = hn::Set(d, terms.biases[r]);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = terms.table + r * kGroup + v * kLanes;  // [kLanes]
      hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, place), bias), scale), d, place);
    }
  }
}

// Task begins: one head's tables, contiguous. Biases alone make a table that is the same for every group: it is made
// here, once.
inline void load_terms(const AttentionInputs& in, std::int64_t head_index, const HeadContext& head,
                       const TermScratch& terms) {
  if (terms.labels == 0) return;
  const RelativeTable& given = in.relative;
  for (std::int64_t r = 0; r < terms.labels; ++r) {
    const bool has_bias = given.biases != nullptr && r < given.labels;
    terms.biases[r] = has_bias ? given.biases[r * in.heads + head_index] : 0.0f;
  }
  if (given.vectors == nullptr) {
    std::fill_n(terms.table, terms.labels * kGroup, 0.0f);
    return finish_table(head, terms);
  }
  const Rows rows{given.vectors, in.heads * head.head_size, given.labels};
  copy_rows(rows, head_index, head.head_size, 0, given.labels, terms.vectors);
  std::fill(terms.vectors + given.labels * head.stride, terms.vectors + terms.labels * head.stride, 0.0f);
  for (std::int64_t r = 0; head.bf16 != nullptr && r < terms.labels; ++r) {
    head.bf16->round_row(terms.vectors + r * head.stride, head.stride, head.bf16_stride,
                         terms.bf16_vectors + r * head.bf16_stride);
  }
}

// Group begins: its table.   q_lanes [D, kGroup]
HWY_INLINE void make_table(const HeadContext& head, const float* q_lanes, const TermScratch& terms) {
  if (terms.vectors == nullptr) return;
  dot_products(q_lanes, terms.vectors, head.stride, terms.labels, head.head_size, terms.table);
  finish_table(head, terms);
}

// The same with rounded operands.   q_pairs [bf16_stride/2, kGroup, 2]
HWY_INLINE void make_bf16_table(const HeadContext& head, const std::uint16_t* q_pairs, const TermScratch& terms) {
  if (terms.vectors == nullptr) return;
  head.bf16->dot_products(q_pairs, terms.bf16_vectors, head.bf16_stride, terms.labels, terms.table);
  finish_table(head, terms);
}

// Policy of a key block without terms: s = q·k / sqrt(D).
struct NoTerm {
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t, int) const { return hn::Mul(dot, scale); }
};

// Policy of a key block with labels.
struct LabelTerm {
  const float* table;          // [labels, kGroup]
  const std::uint32_t* label;  // [keys]: of the key block
  const std::uint8_t* mixed;   // [mixed columns, kGroup]: of the type

  // s of key j and the queries of vector `v`. Most columns have one label for all queries (far keys, whole
  // sentences): one load. The others, near the diagonal and at sentence ends, gather.
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t j, int v) const {
    return hn::MulAdd(dot, scale, look_up(label[j], v));
  }

 private:
  HWY_INLINE FloatVec look_up(std::uint32_t own, int v) const {
    const FloatTag d;
    const IntTag di;
    if (HWY_LIKELY(own < kFirstMixed)) return hn::LoadU(d, table + own * kGroup + v * kLanes);
    const hn::Rebind<std::uint8_t, IntTag> du8;
    // [kLanes]
    const std::uint8_t* labels = mixed + static_cast<std::int64_t>(own - kFirstMixed) * kGroup + v * kLanes;
    const auto lane = hn::Iota(di, v * kLanes);
    const auto index = hn::Add(hn::ShiftLeft<4>(hn::PromoteTo(di, hn::LoadU(du8, labels))), lane);
    static_assert(kGroup == 1 << 4);
    return hn::GatherIndex(d, table, index);
  }
};

// Whether pairs of this key block have a label to look up.
HWY_INLINE bool has_labels(const TermScratch& terms, const KeyBlock& block) {
  return terms.labels > 0 && block.tiles->relative;
}

HWY_INLINE LabelTerm label_term(const TermScratch& terms, const KeyBlock& block) {
  return {terms.table, block.tiles->label.data() + block.column, block.tiles->mixed.data()};
}

// Backward, group begins.
HWY_INLINE void clear_term_gradients(const TermScratch& terms) {
  std::fill_n(terms.dtable, terms.labels * kGroup, 0.0f);
}

// Backward, per key block: dtable[label_ij][i] += ds_ij. Runs of columns with one label are summed in registers first.
//   ds [keys, kGroup]
HWY_INLINE void add_term_gradients(const TermScratch& terms, const KeyBlock& block, const float* ds) {
  if (!has_labels(terms, block)) return;
  const FloatTag d;
  const LabelTerm term = label_term(terms, block);
  for (std::int64_t j = 0; j < block.keys;) {
    const std::uint32_t label = term.label[j];
    if (label >= kFirstMixed) {
      // [kGroup]
      const std::uint8_t* lane_labels = term.mixed + static_cast<std::int64_t>(label - kFirstMixed) * kGroup;
      for (int i = 0; i < kGroup; ++i) terms.dtable[lane_labels[i] * kGroup + i] += ds[j * kGroup + i];
      ++j;
      continue;
    }
    float* const place = terms.dtable + label * kGroup;  // [kGroup]
    FloatVec sum[kGroupVectors];                         // [kGroup]
    for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::LoadU(d, place + v * kLanes);
    for (; j < block.keys && term.label[j] == label; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, ds + j * kGroup + v * kLanes));
    }
    for (int v = 0; v < kGroupVectors; ++v) hn::StoreU(sum[v], d, place + v * kLanes);
  }
}

// Backward, group ends. forward: table = q·rel + rel_bias; so dq += dtable rel, drel += dtable q, dbias += dtable.
//   q_rows, dq [kGroup, stride]
HWY_INLINE void finish_term_gradients(const HeadContext& head, const TermScratch& terms, const float* q_rows,
                                      float* dq) {
  const FloatTag d;
  if (terms.vectors != nullptr) {
    weighted_sum(terms.dtable, terms.vectors, head.stride, terms.labels, nullptr, dq);
    outer_products(terms.dtable, q_rows, head.stride, terms.labels, terms.drel);
  }
  for (std::int64_t at = 0; at < terms.labels * kGroup; at += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, terms.dbias + at), hn::LoadU(d, terms.dtable + at)), d, terms.dbias + at);
  }
}

// Partial sums of the tables' gradients, as a task leaves them in its slot: drel [labels, stride], dbias [labels].
struct TermSlot {
  std::int64_t labels = 0, vector_floats = 0;

  TermSlot() = default;
  explicit TermSlot(const AttentionInputs& in)
      : labels(padded_rows(in.relative.rows())),
        vector_floats(in.relative.vectors == nullptr ? 0 : labels * row_stride(in.head_size)) {}
  std::int64_t floats() const { return vector_floats + labels; }
};

// Backward, task begins.
inline void clear_term_sums(const TermScratch& terms, const TermSlot& layout) {
  std::fill_n(terms.drel, layout.vector_floats, 0.0f);
  std::fill_n(terms.dbias, terms.labels * kGroup, 0.0f);
}

// Backward, task ends.
inline void leave_term_sums(const TermScratch& terms, const TermSlot& layout, float* slot) {
  std::copy_n(terms.drel, layout.vector_floats, slot);
  for (std::int64_t r = 0; r < terms.labels; ++r) {
    float total = 0.0f;
    for (int i = 0; i < kGroup; ++i) total += terms.dbias[r * kGroup + i];
    slot[layout.vector_floats + r] = total;
  }
}

// After all tasks, per slot in their order: drel[r, head] += its sums, drel_bias likewise.
inline void add_term_sums(const AttentionBackward& args, std::int64_t head, const TermSlot& layout, const float* slot) {
  const AttentionInputs& in = args.inputs;
  const std::int64_t size = in.head_size, stride = row_stride(size);
  for (std::int64_t r = 0; r < in.relative.rows(); ++r) {
    const std::int64_t row = r * in.heads + head;
    for (std::int64_t c = 0; c < size && in.relative.vectors != nullptr; ++c) {
      args.drelative.vectors[row * size + c] += slot[r * stride + c];
    }
    if (in.relative.biases != nullptr) args.drelative.biases[row] += slot[layout.vector_floats + r];
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
