// Partition::keys on the CPU: an example's keys are divided into splits of kKeySplit, first those of key set 0, then
// those of set 1, each counted from the example's first key; a task is one split of one head. A task copies its keys
// and values once and iterates over all groups of queries.
//
// Forward: no task sees all keys of a query. Per group each task stores the maximum, the sum and the unnormalised
// output over its keys; a second pass combines the splits of a group in order. Backward: a task owns the gradients of
// its keys; dq and the tables' gradients are partial sums in its slot, which a second pass adds in order.
//
//            split 0    split 1    split 2                slot of a task (split, head):
//   group 0  [partial]  [partial]  [partial]  --> combine     forward   per group: out [16, stride], max [16], sum [16]
//   group 1  [partial]  [partial]  [partial]  --> combine     backward  per group: dq  [16, stride]; then the tables
//
// Where groups see few of the splits, the tiles list the visible ones (TypeTiles::split_offsets). Partial results of
// invisible splits are then not stored, and those of a group are contiguous after all slots, so that memory grows with
// the visible pairs.
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BY_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BY_KEYS_INL_H_
#undef SPARSE_CPU_BY_KEYS_INL_H_
#else
#define SPARSE_CPU_BY_KEYS_INL_H_
#endif

#include "etc_core/base/integers.h"
#include "sparse/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline std::int64_t splits_of(std::int64_t keys) {
  return ceil_div(keys, kKeySplit);
}

class ByKeys {
 public:
  // Floats of a task's slot: a partial per group, then in backward the tables.
  struct Slot {
    std::int64_t groups = 0, stride = 0;
    Pass pass = Pass::forward;
    std::int64_t group_floats() const { return kGroup * stride + (pass == Pass::backward ? 0 : 2 * kGroup); }
    std::int64_t max() const { return kGroup * stride; }  // of a group's partial result, after its rows: [kGroup]
    std::int64_t sum() const { return max() + kGroup; }   // [kGroup]
    std::int64_t terms() const { return groups * group_floats(); }
  };
  class ForwardSink;
  class BackwardSink;

  ByKeys(const AttentionInputs& in, Pass pass) : in_(in), pass_(pass), list_(in.heads) {
    for (std::int64_t b = 0; b < tiles(0).examples(); ++b) {
      // A split has keys of one set only, so a task needs one panel and writes gradients of one set.
      const std::int64_t keys[kKeySets] = {rows_of(tiles(0).key_offsets, b).count,
                                           rows_of(tiles(1).key_offsets, b).count};
      list_.add(splits_of(keys[0]) + splits_of(keys[1]),
                terms_in_slot(b) + (pass == Pass::backward ? TermSlot(in).floats() : 0));
      for (std::int64_t count : keys) max_split_ = std::max(max_split_, std::min<std::int64_t>(kKeySplit, count));
    }
  }

  // Floats of all slots and of the partial results after them.
  std::int64_t floats() const {
    if (!listed()) return list_.floats();
    const Slot any{0, row_stride(in_.head_size), pass_};
    return list_.floats() + partials_before(in_.heads, 0) * any.group_floats();
  }

  const TaskList& list() const { return list_; }
  std::int64_t terms_in_slot(std::int64_t b) const { return listed() ? 0 : slot(b).terms(); }

  TaskSizes sizes() const {
    // Runs do not cross splits: at most one run per step, cut at the key block boundaries of the split.
    const bool backward = pass_ == Pass::backward;
    const std::int64_t blocks = kKeySplit / kRunStep + (backward ? kKeySplit / kBackwardKeys : 1);
    return {{max_split_, 0}, 1, backward ? kBackwardKeys : max_split_ + kRunStep, blocks};
  }

  Slot slot(std::int64_t b) const {
    return {rows_of(tiles(0).group_offsets, b).count, row_stride(in_.head_size), pass_};
  }

  // Tasks run through examples, then heads, then splits.
  Task task(std::int64_t number) const {
    const std::int64_t b = list_.example_of(number), splits = list_.tasks_per_head(b), index = number % splits;
    const RowRange queries = rows_of(tiles(0).query_offsets, b);
    // Splits of set 0 come first.
    const std::int64_t first_splits = splits_of(rows_of(tiles(0).key_offsets, b).count);
    const int set = index < first_splits ? 0 : 1;
    const RowRange keys = rows_of(tiles(set).key_offsets, b);
    Task task;
    task.example = b;
    task.head = number / splits;
    task.query_row = queries.first;
    task.end_query = queries.count;
    task.first_group = tiles(0).group_offsets[static_cast<std::size_t>(b)];
    const std::int64_t begin = (set == 0 ? index : index - first_splits) * kKeySplit;
    // Dropout numbers the keys of set 1 after those of set 0.
    const std::int64_t keys_before = set == 0 ? 0 : rows_of(tiles(0).key_offsets, b).count;
    task.keys[0] = {set, keys.first, begin, std::min(keys.count, begin + kKeySplit), keys_before};
    task.key_ranges = 1;
    task.slot = list_.slot(b, task.head, index);
    return task;
  }

  static void finish_forward(const AttentionForward& args, const ByKeys& division, const float* slots);
  static void finish_backward(const AttentionBackward& args, const ByKeys& division, const float* slots);

  // Destinations of a task's partial results, requested group by group; null: the split is invisible to the group and
  // its result is not stored.
  class Places {
   public:
    Places(const ByKeys& division, const Task& task, float* slots)
        : division_(division),
          task_(task),
          slots_(slots),
          floats_(division.slot(task.example).group_floats()),
          next_(division.listed() ? nullptr : slots + task.slot) {}
    float* next(const QueryGroup& group, bool seen) {
      if (next_ == nullptr) return seen ? division_.listed_place(task_, group, slots_) : nullptr;
      float* const own = next_;
      next_ += floats_;
      return own;
    }

   private:
    const ByKeys& division_;
    const Task& task_;
    float* const slots_;
    const std::int64_t floats_;
    float* next_;  // place of the next group; null where only visible splits are stored
  };

 private:
  // Place of a group that sees the task's split: after the partial results of all preceding groups and of this group's
  // preceding splits.
  float* listed_place(const Task& task, const QueryGroup& group, float* slots) const {
    const std::int64_t number = group.first / kGroup, floats = slot(task.example).group_floats();
    const std::int64_t global = task.first_group + number, split = task.keys[0].begin / kKeySplit;
    std::int64_t before = partials_before(task.head, global);
    if (task.keys[0].set == 1) before += splits_seen(tiles(0), task.head, global, kEverySplit);
    before += splits_seen(tiles(task.keys[0].set), task.head, global, split);
    return slots + list_.floats() + before * floats;
  }

  static constexpr std::int64_t kEverySplit = std::numeric_limits<std::int32_t>::max();
  const TypeTiles& tiles(int set) const { return in_.tiles->types[set]; }
  // Whether the tiles of both sets list the splits that groups see.
  bool listed() const { return !tiles(0).split_offsets.empty() && !tiles(1).split_offsets.empty(); }
  // Number of partial results of both sets in preceding heads and in preceding groups of this head.
  std::int64_t partials_before(std::int64_t head, std::int64_t group) const {
    std::int64_t count = 0;
    for (int t = 0; t < kKeySets; ++t) {
      const TypeTiles& own = tiles(t);
      if (own.heads == 1) count += head * own.split_offsets[own.group_offsets.back()];
      count += own.split_offsets[own.first_group(head) + group];
    }
    return count;
  }
  // Number of splits before `split` that a group sees.
  static std::int64_t splits_seen(const TypeTiles& type, std::int64_t head, std::int64_t group, std::int64_t split) {
    const std::int64_t number = type.first_group(head) + group;
    std::int64_t count = 0, last = -1;
    for (std::int64_t r = type.run_offsets[number]; r < type.run_offsets[number + 1]; ++r) {
      const std::int64_t of_run = type.runs[r].first_key / kKeySplit;
      if (of_run >= split) break;
      count += of_run != last ? 1 : 0;
      last = of_run;
    }
    return count;
  }

  // Calls body(example, head, group's number in the example) for every group of every head, in parallel.
  template <typename Body>
  void for_each_group_of_heads(const Body& body) const {
    // There are few examples and many (head, group) pairs: parallel within an example.
    for (std::int64_t b = 0; b < list_.examples(); ++b) {
      const std::int64_t groups = slot(b).groups;
      parallel_for(in_.heads * groups, [&](std::int64_t n) HWY_ATTR { body(b, n / groups, n % groups); });
    }
  }

  // The queries of a group, and the group's partial results in the example's slots.
  RowRange group_rows(std::int64_t b, std::int64_t group) const {
    const RowRange queries = rows_of(tiles(0).query_offsets, b);
    const std::int64_t first = group * kGroup;
    return {queries.first + first, std::min<std::int64_t>(kGroup, queries.count - first)};
  }
  SlotSum group_partials(std::int64_t b, std::int64_t head, std::int64_t group, const float* slots) const {
    const Slot layout = slot(b);
    if (listed()) {
      const std::int64_t global = tiles(0).group_offsets[static_cast<std::size_t>(b)] + group;
      const std::int64_t first = partials_before(head, global), floats = layout.group_floats();
      std::int64_t count = 0;
      for (int t = 0; t < kKeySets; ++t) count += splits_seen(tiles(t), head, global, kEverySplit);
      return {slots + list_.floats() + first * floats, count, floats, layout.stride};
    }
    return {slots + list_.slot(b, head, 0) + group * layout.group_floats(), list_.tasks_per_head(b),
            list_.slot_floats(b), layout.stride};
  }
  void combine_group(const AttentionForward& args, std::int64_t b, std::int64_t head, std::int64_t group,
                     const float* slots) const;

  const AttentionInputs& in_;
  Pass pass_;
  TaskList list_;
  std::int64_t max_split_ = 0;
};

// Stores a group's output, maximum and sum over the split's keys in the slot.
class ByKeys::ForwardSink {
 public:
  ForwardSink(const AttentionForward&, const ByKeys& division, const Task& task, float* slots)
      : layout_(division.slot(task.example)), places_(division, task, slots) {}

  // There are few queries, which are already in the cache.
  void prefetch_ahead(const QueryGroup&, const TaskScratch&, RowsAhead&) const {}

  void take(const QueryGroup& group, bool seen, const TaskScratch& scratch, const GroupSoftmax& softmax) {
    const FloatTag d;
    float* const place = places_.next(group, seen);
    if (place == nullptr) return;
    // Without a visible key the maximum is -inf and the output is never read.
    if (seen) std::copy_n(scratch.group.out, kGroup * layout_.stride, place);
    for (int v = 0; v < kGroupVectors; ++v) {
      hn::StoreU(softmax.max[v], d, place + layout_.max() + v * kLanes);
      hn::StoreU(softmax.sum[v], d, place + layout_.sum() + v * kLanes);
    }
  }

 private:
  const Slot layout_;
  Places places_;
};

// Stores dq of a group over the split's keys in the slot; writes dk and dv to the results.
class ByKeys::BackwardSink {
 public:
  BackwardSink(const AttentionBackward& args, const ByKeys& division, const Task& task, float* slots)
      : args_(args), task_(task), layout_(division.slot(task.example)), places_(division, task, slots) {}

  void begin_group(const QueryGroup&, const TaskScratch&, RowsAhead&) const {}

  void take(const QueryGroup& group, bool seen, const TaskScratch& scratch) {
    float* const place = places_.next(group, seen);
    if (place == nullptr) return;
    if (seen) {
      std::copy_n(scratch.group.out, kGroup * layout_.stride, place);
    } else {
      std::fill_n(place, kGroup * layout_.stride, 0.0f);  // unlike in forward, dq of every slot is added
    }
  }

  void take_keys(const TaskScratch&) const {}

  // Writes the gradients of the task's keys, which no other task has.
  void end(TaskScratch& scratch) const {
    const KeyRange& keys = task_.keys[0];
    const KeySetGradients& to = args_.dkeys[keys.set];
    const HeadColumns columns = scratch.head.columns();
    const std::int64_t count = keys.end - keys.begin;
    scratch.panels[0].require(count);  // gradients of all keys are written, visible or not
    finish_keys(scratch.head, scratch.group.terms, scratch.panels[0], count);
    for (std::int64_t key = 0; key < count; ++key) {
      const std::int64_t row = keys.example_row + keys.begin + key;
      write_row(scratch.panels[0].dk(key), columns.size, row_in(to.dk, columns, row));
      write_row(scratch.panels[0].dv(key), columns.size, row_in(to.dv, columns, row));
    }
  }

 private:
  const AttentionBackward& args_;
  const Task& task_;
  const Slot layout_;
  Places places_;
};

// Combines the splits of one group and head, in order.
//   max = max_n max_n,  sum = sum_n 2^(max_n - max) sum_n,  out = sum_n 2^(max_n - max) out_n / sum     base 2
inline void ByKeys::combine_group(const AttentionForward& args, std::int64_t b, std::int64_t head, std::int64_t group,
                                  const float* slots) const {
  const FloatTag d;
  const Slot layout = slot(b);
  const SlotSum partials = group_partials(b, head, group, slots);
  const float kept_scale = in_.dropout.rate > 0.0f ? 1.0f / (1.0f - in_.dropout.rate) : 1.0f;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());

  HWY_ALIGN float shift[kGroup];   // the maximum; 0 without a visible key
  HWY_ALIGN float factor[kGroup];  // 1/sum, with dropout's rescaling
  HWY_ALIGN float lse[kGroup];     // natural logarithm
  for (int v = 0; v < kGroupVectors; ++v) {
    const float* const lanes = partials.first + v * kLanes;  // [slots, …]: lanes of vector v
    FloatVec max = none, sum = hn::Zero(d);
    for (std::int64_t n = 0; n < partials.slots; ++n) {
      max = hn::Max(max, hn::LoadU(d, lanes + n * partials.slot_floats + layout.max()));
    }
    // A row without a visible key subtracts 0, so that -inf stays -inf.
    const FloatVec finite_max = hn::IfThenZeroElse(hn::Eq(max, none), max);
    for (std::int64_t n = 0; n < partials.slots; ++n) {
      const float* partial = lanes + n * partials.slot_floats;  // one split's lanes
      const FloatVec weight = power_of_two(hn::Sub(hn::LoadU(d, partial + layout.max()), finite_max));
      sum = hn::MulAdd(weight, hn::LoadU(d, partial + layout.sum()), sum);
    }
    // For the loop over rows below, which processes one query at a time.
    hn::Store(finite_max, d, shift + v * kLanes);
    end_softmax(max, sum, kept_scale, v, factor, lse);
  }

  const RowRange rows = group_rows(b, group);
  const HeadColumns columns{head, in_.head_size};
  for (std::int64_t i = 0; i < rows.count; ++i) {
    // The splits of a row in order: 2^(max_n - max) / sum times the partial output.
    const auto add = [&](std::int64_t first, std::int64_t count, float* out) HWY_ATTR {
      for (std::int64_t n = 0; n < partials.slots; ++n) {
        const float* partial = partials.first + n * partials.slot_floats;  // [kGroup, stride], then max, sum
        const float split_max = partial[layout.max() + i];
        if (!(split_max > -std::numeric_limits<float>::infinity())) continue;  // no visible key: no output written
        // Use the vector function for this scalar, so that the power of two has the same bits as in the sum.
        const float weight = hn::GetLane(power_of_two(hn::Set(d, split_max - shift[i]))) * factor[i];
        const float* const from = partial + i * layout.stride + first;  // [count]
        for (std::int64_t c = 0; c < count; ++c) out[c] += weight * from[c];
      }
    };
    write_sums(columns.size, row_in(args.out, columns, rows.first + i), add);
  }
  std::copy_n(lse, rows.count, args.lse + head * in_.q.rows + rows.first);
}

inline void ByKeys::finish_forward(const AttentionForward& args, const ByKeys& division, const float* slots) {
  division.for_each_group_of_heads([&](std::int64_t b, std::int64_t head, std::int64_t group)
                                       HWY_ATTR { division.combine_group(args, b, head, group, slots); });
}

inline void ByKeys::finish_backward(const AttentionBackward& args, const ByKeys& division, const float* slots) {
  division.for_each_group_of_heads([&](std::int64_t b, std::int64_t head, std::int64_t group) HWY_ATTR {
    const SlotSum dq = division.group_partials(b, head, group, slots);
    dq.write(args.dq, {head, args.inputs.head_size}, division.group_rows(b, group));
  });
  add_table_gradients(args, division, slots);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
