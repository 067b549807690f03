// The parts of a score that join query and key pair by pair, forward and backward:
//
//   m_ij = q_i·k_j | factor[r] q_i·k_j | sum_c q_ic k_jc w[r]_c        then + k_j·rel_k[r]        r = label_ij
//
// They are passes over a key block's products, before the loop of the logits: a model without them pays one branch per
// key block. A column that all queries see with one label, as far ones with clipped distances, takes rel_k and w from
// one row; another column takes kGroup rows, one dot product each. Highway's per-target include guard.
#if defined(SPARSE_CPU_PAIR_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_PAIR_TERMS_INL_H_
#undef SPARSE_CPU_PAIR_TERMS_INL_H_
#else
#define SPARSE_CPU_PAIR_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/block_labels-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether m of this key block is more than q·k.
HWY_INLINE bool joins_pairs(const TermScratch& terms, const KeyBlock& block) {
  return (terms.key_vectors != nullptr || terms.factors != nullptr || terms.products != nullptr) &&
         block.tiles->labelled();
}

// sum_c x_c y_c.   x, y [stride]
HWY_INLINE float row_dot(const float* x, const float* y, std::int64_t stride) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d);
  for (std::int64_t c = 0; c < stride; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, y + c), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// sum_c x_c y_c z_c.   x, y, z [stride]
HWY_INLINE float row_dot(const float* x, const float* y, const float* z, std::int64_t stride) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    sum = hn::MulAdd(hn::Mul(hn::LoadU(d, x + c), hn::LoadU(d, y + c)), hn::LoadU(d, z + c), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// to_c += a x_c.   x, to [stride]
HWY_INLINE void add_row(float a, const float* x, std::int64_t stride, float* to) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, a);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    hn::StoreU(hn::MulAdd(by, hn::LoadU(d, x + c), hn::LoadU(d, to + c)), d, to + c);
  }
}

// to_c += a x_c y_c.   x, y, to [stride]
HWY_INLINE void add_row(float a, const float* x, const float* y, std::int64_t stride, float* to) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, a);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    const FloatVec product = hn::Mul(hn::LoadU(d, x + c), hn::LoadU(d, y + c));
    hn::StoreU(hn::MulAdd(by, product, hn::LoadU(d, to + c)), d, to + c);
  }
}

// rows = k⊙w[label] of a step's columns that have one label, 0 of the others.   k, rows [kRunStep, stride]
HWY_INLINE void scale_keys(const AnyLabels& labels, std::int64_t first, const float* k, const float* w,
                           std::int64_t stride, float* rows) {
  std::fill_n(rows, kRunStep * stride, 0.0f);
  for (std::int64_t j = 0; j < kRunStep; ++j) {
    const std::uint32_t code = labels.code(first + j);
    if (code < kFirstMixed) add_row(1.0f, k + j * stride, w + code * stride, stride, rows + j * stride);
  }
}

// s = sum_c q_c k_c w[label]_c, a step of keys at a time: k times w of the whole column, as if those were the keys;
// columns with several labels pair by pair.   k [keys, stride], s [keys, kGroup]
HWY_INLINE void product_dots(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                             const float* k, std::int64_t keys, float* s) {
  const std::int64_t stride = head.stride;
  const float* const w = scratch.terms.products;  // [labels, stride]
  float* const rows = scratch.terms.rows;         // [kRunStep, stride]
  for (std::int64_t first = 0; first < keys; first += kRunStep) {
    scale_keys(labels, first, k + first * stride, w, stride, rows);
    dot_products(scratch.q_lanes, rows, stride, kRunStep, head.head_size, s + first * kGroup);
    for (std::int64_t j = first; j < first + kRunStep; ++j) {
      const std::uint32_t code = labels.code(j);
      for (int i = 0; i < kGroup && code >= kFirstMixed; ++i) {
        s[j * kGroup + i] =
            row_dot(scratch.q_rows + i * stride, k + j * stride, w + labels.lane(code, i) * stride, stride);
      }
    }
  }
}

// s += k·rel_k[label].   k [keys, stride], s [keys, kGroup]
HWY_INLINE void add_key_dots(const HeadContext& head, const TermScratch& terms, const AnyLabels& labels, const float* k,
                             std::int64_t keys, float* s) {
  const std::int64_t stride = head.stride;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::uint32_t code = labels.code(j);
    const float* const key = k + j * stride;  // [stride]
    if (code < kFirstMixed) {
      const float dot = row_dot(key, terms.key_vectors + code * stride, stride);
      for (int i = 0; i < kGroup; ++i) s[j * kGroup + i] += dot;
      continue;
    }
    for (int i = 0; i < kGroup; ++i) {
      s[j * kGroup + i] += row_dot(key, terms.key_vectors + labels.lane(code, i) * stride, stride);
    }
  }
}

// s *= factor[label].   factors [labels], s [keys, kGroup]
HWY_INLINE void apply_factors(const float* factors, const AnyLabels& labels, std::int64_t keys, float* s) {
  const FloatTag d;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::uint32_t code = labels.code(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* const place = s + j * kGroup + v * kLanes;  // [kLanes]
      const FloatVec factor =
          code < kFirstMixed ? hn::Set(d, factors[code]) : hn::GatherIndex(d, factors, labels.lanes(code, v));
      hn::StoreU(hn::Mul(hn::LoadU(d, place), factor), d, place);
    }
  }
}

// Out of line: models without these parts keep their loops as they are.
HWY_NOINLINE inline void joined_dots(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                                     const float* k, std::int64_t keys, float* s) {
  const TermScratch& terms = scratch.terms;
  if (terms.products != nullptr) {
    product_dots(head, scratch, labels, k, keys, s);
  } else {
    dot_products(scratch.q_lanes, k, head.stride, keys, head.head_size, s);
  }
  if (terms.factors != nullptr) apply_factors(terms.factors, labels, keys, s);
  if (terms.key_vectors != nullptr) add_key_dots(head, terms, labels, k, keys, s);
}

// m of `keys` columns of a key block, from its column `first` on: whole steps.   s [keys, kGroup]
// Column by column the same instructions whoever asks: rewinding subtracts the bits that were added.
HWY_INLINE void dots_of_block(const HeadContext& head, const KeyBlock& block, std::int64_t first, std::int64_t keys,
                              const GroupScratch& scratch, float* s) {
  const float* const k = block.panel->k(block.row + first);  // [keys, stride]
  if (HWY_LIKELY(!joins_pairs(scratch.terms, block))) {
    return dot_products(scratch.q_lanes, k, head.stride, keys, head.head_size, s);
  }
  joined_dots(head, scratch, labels_of(block.from(first)), k, keys, s);
}

// Backward, w: dq_i += g_ij w⊙k_j, dk_j += g_ij w⊙q_i, dw += g_ij q_i⊙k_j, a step of keys at a time as in product_dots.
//   g [keys, kGroup]
HWY_INLINE void product_gradients(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                                  const KeyBlock& block, const float* g) {
  const std::int64_t stride = head.stride;
  const TermScratch& terms = scratch.terms;
  float* const keys = terms.rows;                         // [kRunStep, stride]  k⊙w
  float* const queries = terms.rows + kRunStep * stride;  // [kRunStep, stride]  sum_i g_i q_i
  for (std::int64_t first = 0; first < block.keys; first += kRunStep) {
    const float* const own = g + first * kGroup;  // [kRunStep, kGroup]
    scale_keys(labels, first, block.panel->k(block.row + first), terms.products, stride, keys);
    weighted_sum(own, keys, stride, kRunStep, nullptr, scratch.out);
    std::fill_n(queries, kRunStep * stride, 0.0f);
    outer_products(own, scratch.q_rows, stride, kRunStep, queries);
    for (std::int64_t j = 0; j < kRunStep; ++j) {
      const std::uint32_t code = labels.code(first + j);
      const float* const key = block.panel->k(block.row + first + j);  // [stride]
      float* const dk = block.panel->dk(block.row + first + j);        // [stride]
      if (code < kFirstMixed) {
        add_row(1.0f, queries + j * stride, terms.products + code * stride, stride, dk);
        add_row(1.0f, queries + j * stride, key, stride, terms.dw + code * stride);
        continue;
      }
      for (int i = 0; i < kGroup; ++i) {
        const std::int64_t label = labels.lane(code, i);
        const float* const query = scratch.q_rows + i * stride;  // [stride]
        const float* const w = terms.products + label * stride;  // [stride]
        const float pair = own[j * kGroup + i];
        add_row(pair, w, key, stride, scratch.out + i * stride);
        add_row(pair, w, query, stride, dk);
        add_row(pair, query, key, stride, terms.dw + label * stride);
      }
    }
  }
}

// Backward, rel_k: dk_j += g_ij rel_k, drel_k += g_ij k_j.   g [keys, kGroup]
HWY_INLINE void key_vector_gradients(const HeadContext& head, const TermScratch& terms, const AnyLabels& labels,
                                     const KeyBlock& block, const float* g) {
  const std::int64_t stride = head.stride;
  for (std::int64_t j = 0; j < block.keys; ++j) {
    const std::uint32_t code = labels.code(j);
    const float* const key = block.panel->k(block.row + j);  // [stride]
    float* const dk = block.panel->dk(block.row + j);        // [stride]
    const auto add = [&](float own, std::int64_t label) {
      add_row(own, terms.key_vectors + label * stride, stride, dk);
      add_row(own, key, stride, terms.drel_k + label * stride);
    };
    const float* const column = g + j * kGroup;  // [kGroup]
    if (code < kFirstMixed) {
      float total = 0.0f;
      for (int i = 0; i < kGroup; ++i) total += column[i];
      add(total, code);
      continue;
    }
    for (int i = 0; i < kGroup; ++i) add(column[i], labels.lane(code, i));
  }
}

// Backward of one key block: dq, dk and the tables' gradients from g = scale·dC [keys, kGroup], which becomes what
// q·k has for its gradient.
HWY_NOINLINE inline void joined_gradients(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                                          const KeyBlock& block, float* g) {
  const TermScratch& terms = scratch.terms;
  const float* const k = block.panel->k(block.row);  // [keys, stride]
  if (terms.key_vectors != nullptr) key_vector_gradients(head, terms, labels, block, g);
  if (terms.products != nullptr) return product_gradients(head, scratch, labels, block, g);
  if (terms.factors != nullptr) {
    const FloatTag d;
    dot_products(scratch.q_lanes, k, head.stride, block.keys, head.head_size, terms.dots);
    for (std::int64_t at = 0; at < block.keys * kGroup; at += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, terms.dots + at), hn::LoadU(d, g + at)), d, terms.dots + at);
    }
    add_by_label(labels, block.keys, terms.dots, terms.dfactor);
    apply_factors(terms.factors, labels, block.keys, g);
  }
  weighted_sum(g, k, head.stride, block.keys, block.tiles->visible.data() + block.column, scratch.out);
  outer_products(g, scratch.q_rows, head.stride, block.keys, block.panel->dk(block.row));
}

// Backward of m: dq += and dk += of one key block; scratch.ds holds scale·dC and is used up where pairs are joined.
HWY_INLINE void dots_gradients(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch) {
  if (HWY_LIKELY(!joins_pairs(scratch.terms, block))) {
    weighted_sum(scratch.ds, block.panel->k(block.row), head.stride, block.keys,
                 block.tiles->visible.data() + block.column, scratch.out);
    outer_products(scratch.ds, scratch.q_rows, head.stride, block.keys, block.panel->dk(block.row));
    return;
  }
  joined_gradients(head, scratch, labels_of(block), block, scratch.ds);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
