// Working memory of the score and value terms during a task, and the sums that the task stores in its slot for the
// tables' gradients. Highway's per-target include guard.
#if defined(SPARSE_CPU_TERM_SCRATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_TERM_SCRATCH_INL_H_
#undef SPARSE_CPU_TERM_SCRATCH_INL_H_
#else
#define SPARSE_CPU_TERM_SCRATCH_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/distance_rows-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The parts of one key set with labels by distance, in the order of its list (distance_rows-inl.h); null where the
// model does not have the part. Sums have additional rows (or lanes) before place 0, which skewing writes.
struct DistanceScratch {
  const DistanceLabels* labels = nullptr;  // null: the set has no labels by distance
  std::int64_t places = 0;                 // possible places of columns: all but the last kSkew of the list
  // Of the task's head.
  float* factors = nullptr;      // [places + kSkew]
  float* key_vectors = nullptr;  // [key_places, stride]  rel_k
  float* key_columns = nullptr;  // [D, key_places]  the same, components in rows
  std::int64_t key_places = 0;   // 0: too many for products of every key with every place
  // Of a group.
  float* table = nullptr;  // [places + kSkew, kGroup]  q·rel + rel_bias, skewed
  // Backward, of a group; weights in forward, too.
  float* dtable = nullptr;       // [kSkew + places + kSkew, kGroup], from place 0 on
  float* weights = nullptr;      // the same
  float* value_table = nullptr;  // [places + kSkew, kGroup]
  // Backward, sums over the task's groups.
  float* dfactors = nullptr;      // [kGroup + places + kSkew], from place 0 on
  float* dkey_vectors = nullptr;  // [key_places, stride]

  bool used() const { return labels != nullptr; }
  PlaceRange all() const { return {0, places}; }
  const std::int32_t* lanes() const { return labels->lanes.data(); }

  static DistanceScratch take(Arena& arena, const AttentionInputs& in, int set, Pass pass) {
    DistanceScratch own;
    const RelativeTable& given = in.relative;
    const DistanceLabels& labels = in.tiles->types[set].distance;
    if (!labels.used() || given.rows() == 0) return own;
    const std::int64_t list = labels.lanes.size(), stride = row_stride(in.head_size);
    own.labels = &labels;
    own.places = list - kSkew;
    const auto rows = [&](bool has) { return has ? arena.take<float>(list * kGroup) : nullptr; };
    const auto sums = [&](bool has) {
      float* const first = has ? arena.take<float>((kSkew + list) * kGroup) : nullptr;
      return first == nullptr ? nullptr : first + kSkew * kGroup;
    };
    const bool values = given.value_vectors != nullptr, backward = pass == Pass::backward;
    if (given.factors != nullptr) own.factors = arena.take<float>(list);
    if (given.key_vectors != nullptr) own.key_places = key_places_of(list);
    own.key_vectors = arena.take<float>(own.key_places * stride);
    own.key_columns = arena.take<float>(own.key_places * stride);
    own.table = rows(given.adds());
    own.weights = sums(values);
    if (!backward) return own;
    own.dtable = sums(given.adds());
    own.value_table = rows(values);
    if (given.factors != nullptr) own.dfactors = arena.take<float>(kGroup + list);
    if (own.dfactors != nullptr) own.dfactors += kGroup;
    own.dkey_vectors = arena.take<float>(own.key_places * stride);
    return own;
  }

  // Number of places with which each key is multiplied once per task, in whole tiles; 0 if a key would be multiplied
  // with many more labels than its pairs have.
  static std::int64_t key_places_of(std::int64_t list) {
    constexpr std::int64_t kMost = 256;
    return list > kMost ? 0 : round_up(list, kTileVectors * kGroup);
  }
};

// Labels are padded to whole steps, so that they can be multiplied like keys. Parts that the model lacks are null.
struct TermScratch {
  std::int64_t labels = 0;     // R rounded up to whole steps; 0: no table at all
  std::int64_t added = 0;      // the same where scores have rel or rel_bias, else 0
  bool listed = false;         // whether some key set lists its labels
  bool biased = false;         // whether there is rel_bias
  bool joined[kKeySets] = {};  // whether m of a key set's pairs is more than q·k
  bool late[kKeySets] = {};    // whether these are only terms by distance, which the logit loop may add instead
  DistanceScratch by_distance[kKeySets];
  // Of the task's head.
  float* vectors = nullptr;               // [labels, stride]  rel
  float* biases = nullptr;                // [added]  rel_bias, 0 without
  std::uint16_t* bf16_vectors = nullptr;  // [labels in whole tiles, bf16_stride]  rel rounded
  float* key_vectors = nullptr;           // [labels, stride]  rel_k
  float* factors = nullptr;               // [labels]
  float* products = nullptr;              // [labels, stride]  w
  float* value_vectors = nullptr;         // [labels, stride]  rel_v
  // Of a group.
  float* table = nullptr;    // [added, kGroup]
  float* weights = nullptr;  // [labels, kGroup]  weights of the values by label, with value_vectors
  float* rows = nullptr;     // [2, kRunStep, stride]  rows of a step's keys; only with `products`
  // Backward, of a group.
  float* dtable = nullptr;       // [added, kGroup]
  float* value_table = nullptr;  // [labels, kGroup]  dout·rel_v
  float* dots = nullptr;         // [columns, kGroup]  q·k of a key block; only with `factors`
  // Backward, sums over the task's groups; those over lanes are added once, at the task's end.
  float* drel = nullptr;     // [labels, stride]
  float* dbias = nullptr;    // [added, kGroup]
  float* drel_k = nullptr;   // [labels, stride]
  float* dfactor = nullptr;  // [labels, kGroup]
  float* dw = nullptr;       // [labels, stride]
  float* drel_v = nullptr;   // [labels, stride]

  bool skewed() const { return by_distance[0].used() || by_distance[1].used(); }

  static TermScratch take(Arena& arena, const AttentionInputs& in, const HeadContext& head, std::int64_t columns,
                          Pass pass) {
    TermScratch terms;
    const RelativeTable& given = in.relative;
    for (int set = 0; set < kKeySets; ++set) {
      const TypeTiles& type = in.tiles->types[set];
      terms.by_distance[set] = DistanceScratch::take(arena, in, set, pass);
      terms.listed = terms.listed || type.relative;
      const bool scaled = given.factors != nullptr || given.products != nullptr;
      const bool pairs = given.key_vectors != nullptr || scaled;
      terms.joined[set] = type.labelled() && given.rows() > 0 && (pairs || (type.distance.used() && given.adds()));
      const bool keys_late = given.key_vectors == nullptr || terms.by_distance[set].key_places > 0;
      terms.late[set] = terms.joined[set] && type.distance.used() && given.adds() && !scaled && keys_late;
    }
    terms.biased = given.biases != nullptr;
    terms.labels = padded_rows(given.rows());
    terms.added = given.adds() ? terms.labels : 0;
    const auto rows_of = [&](const float* part) {
      return part == nullptr ? nullptr : arena.take<float>(terms.labels * head.stride);
    };
    const auto lanes_of = [&](const float* part) {
      return part == nullptr ? nullptr : arena.take<float>(terms.labels * kGroup);
    };
    // bf16 products write whole tiles of rows.
    const std::int64_t whole_tiles = round_up(terms.added, kTileRows16);
    const bool bf16 = head.bf16 != nullptr, backward = pass == Pass::backward;
    terms.vectors = rows_of(given.vectors);
    terms.biases = arena.take<float>(terms.added);
    if (bf16 && given.vectors != nullptr) {
      terms.bf16_vectors = arena.take<std::uint16_t>(whole_tiles * head.bf16_stride);
    }
    terms.table = arena.take<float>((bf16 ? whole_tiles : terms.added) * kGroup);
    terms.key_vectors = rows_of(given.key_vectors);
    if (given.factors != nullptr) terms.factors = arena.take<float>(terms.labels);
    terms.products = rows_of(given.products);
    if (given.products != nullptr) terms.rows = arena.take<float>(2 * kRunStep * head.stride);
    terms.value_vectors = rows_of(given.value_vectors);
    terms.weights = lanes_of(given.value_vectors);
    if (!backward) return terms;
    terms.dtable = arena.take<float>(terms.added * kGroup);
    terms.drel = rows_of(given.vectors);
    terms.dbias = arena.take<float>(terms.added * kGroup);
    terms.drel_k = rows_of(given.key_vectors);
    terms.dfactor = lanes_of(given.factors);
    if (given.factors != nullptr) terms.dots = arena.take<float>(columns * kGroup);
    terms.dw = rows_of(given.products);
    terms.value_table = lanes_of(given.value_vectors);
    terms.drel_v = rows_of(given.value_vectors);
    return terms;
  }
};

// A table's rows, and the number of a head within them.   part [R, N, size] or, shared, [R, size]
inline Rows table_rows(const AttentionInputs& in, const float* part, std::int64_t size) {
  return {part, in.relative.heads(in.heads) * size, in.relative.labels};
}
inline std::int64_t table_head(const AttentionInputs& in, std::int64_t head) {
  return in.relative.shared_heads ? 0 : head;
}

// to = one head's rows of a table, zero beyond the last label.   to [labels, stride]
inline void load_table_rows(const AttentionInputs& in, const float* part, std::int64_t head_index,
                            const HeadContext& head, std::int64_t labels, float* to) {
  if (part == nullptr) return;
  const std::int64_t given = in.relative.labels;
  copy_rows(table_rows(in, part, head.head_size), {table_head(in, head_index), head.head_size}, 0, given, to);
  std::fill(to + given * head.stride, to + labels * head.stride, 0.0f);
}

// to = one head's numbers of a table [R, N] or [R]; 0 without one, and beyond the last label.   to [labels]
inline void load_table_numbers(const AttentionInputs& in, const float* part, std::int64_t head_index,
                               std::int64_t labels, float* to) {
  const Rows rows = table_rows(in, part, 1);
  for (std::int64_t r = 0; r < labels; ++r) {
    const bool has = part != nullptr && r < in.relative.labels;
    to[r] = has ? *head_row(rows, r, table_head(in, head_index), 1) : 0.0f;
  }
}

// Layout of a task's sums in its slot: rows [labels, stride] and numbers [labels], one part after another; parts that
// the model does not have take no space.
struct TermSlot {
  std::int64_t labels = 0, stride = 0, size = 0;  // size: floats
  std::int64_t drel = 0, dbias = 0, drel_k = 0, dfactor = 0, dw = 0, drel_v = 0;

  TermSlot() = default;
  explicit TermSlot(const AttentionInputs& in)
      : labels(padded_rows(in.relative.rows())), stride(row_stride(in.head_size)) {
    const RelativeTable& table = in.relative;
    const auto place = [this](bool has, std::int64_t floats) {
      const std::int64_t at = size;
      if (has) size += floats;
      return at;
    };
    drel = place(table.vectors != nullptr, labels * stride);
    dbias = place(table.adds(), labels);
    drel_k = place(table.key_vectors != nullptr, labels * stride);
    dfactor = place(table.factors != nullptr, labels);
    dw = place(table.products != nullptr, labels * stride);
    drel_v = place(table.value_vectors != nullptr, labels * stride);
  }
  std::int64_t floats() const { return size; }
};

// Backward, start of a task.
inline void clear_term_sums(const TermScratch& terms, const TermSlot& layout) {
  for (float* rows : {terms.drel, terms.drel_k, terms.dw, terms.drel_v}) {
    if (rows != nullptr) std::fill_n(rows, layout.labels * layout.stride, 0.0f);
  }
  std::fill_n(terms.dbias, terms.added * kGroup, 0.0f);
  if (terms.dfactor != nullptr) std::fill_n(terms.dfactor, layout.labels * kGroup, 0.0f);
  for (const DistanceScratch& own : terms.by_distance) {
    if (own.dfactors != nullptr) std::fill_n(own.dfactors - kGroup, kGroup + own.places + kSkew, 0.0f);
    if (own.used()) std::fill_n(own.dkey_vectors, own.key_places * layout.stride, 0.0f);
  }
}

// Backward, end of a task: adds the sums by place in a list of distances to the sums by label.
inline void fold_distance_sums(const TermScratch& terms, const TermSlot& layout) {
  for (const DistanceScratch& own : terms.by_distance) {
    for (std::int64_t n = 0; own.used() && n < own.places + kSkew; ++n) {
      const std::int64_t label = own.lanes()[n], stride = layout.stride;
      if (own.dfactors != nullptr) terms.dfactor[label * kGroup] += own.dfactors[n];
      for (std::int64_t c = 0; own.key_places > 0 && c < stride; ++c) {
        terms.drel_k[label * stride + c] += own.dkey_vectors[n * stride + c];
      }
    }
  }
}

// Backward, end of a task: stores the sums in the slot.
inline void leave_term_sums(const TermScratch& terms, const TermSlot& layout, float* slot) {
  fold_distance_sums(terms, layout);
  const auto leave_rows = [&](const float* rows, std::int64_t at) {
    if (rows != nullptr) std::copy_n(rows, layout.labels * layout.stride, slot + at);
  };
  const auto leave_numbers = [&](const float* lanes, std::int64_t labels, std::int64_t at) {
    for (std::int64_t r = 0; r < labels; ++r) {
      float total = 0.0f;
      for (int i = 0; i < kGroup; ++i) total += lanes[r * kGroup + i];
      slot[at + r] = total;
    }
  };
  leave_rows(terms.drel, layout.drel);
  leave_numbers(terms.dbias, terms.added, layout.dbias);
  leave_rows(terms.drel_k, layout.drel_k);
  leave_numbers(terms.dfactor, terms.dfactor == nullptr ? 0 : terms.labels, layout.dfactor);
  leave_rows(terms.dw, layout.dw);
  leave_rows(terms.drel_v, layout.drel_v);
}

// After all tasks, called per slot in slot order: adds the sums of one head to the gradients of rows [begin, end) of
// the tables, part by part (two parts may add to one array).
inline void add_term_sums(const AttentionBackward& args, std::int64_t head, std::int64_t begin, std::int64_t end,
                          const float* slot) {
  const AttentionInputs& in = args.inputs;
  const TermSlot layout(in);
  const std::int64_t width = in.relative.heads(in.heads), own = table_head(in, head);
  const auto add = [&](const float* part, float* gradient, std::int64_t at, std::int64_t stride, std::int64_t size) {
    if (part == nullptr) return;
    for (std::int64_t r = begin; r < end; ++r) {
      float* const to = gradient + (r * width + own) * size;  // [size]
      for (std::int64_t c = 0; c < size; ++c) to[c] += slot[at + r * stride + c];
    }
  };
  const RelativeTableGradients& to = args.drelative;
  add(in.relative.vectors, to.vectors, layout.drel, layout.stride, in.head_size);
  add(in.relative.biases, to.biases, layout.dbias, 1, 1);
  add(in.relative.key_vectors, to.key_vectors, layout.drel_k, layout.stride, in.head_size);
  add(in.relative.factors, to.factors, layout.dfactor, 1, 1);
  add(in.relative.products, to.products, layout.dw, layout.stride, in.head_size);
  add(in.relative.value_vectors, to.value_vectors, layout.drel_v, layout.stride, in.head_size);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
