// Partition::queries on the CPU: an example's queries are divided into segments (query blocks), counted from its first
// token; a task is one segment of one head. A task copies the part of key set 0 that its segment can see
// (the window) and all keys of set 1, then iterates over its groups. The task has all keys of a group, so forward
// writes final results. Keys are counted from the example's first key; a memory comes before the first query's own key.
//
// Backward: a task owns the gradients of the keys that only its segment sees, and writes them as soon as no later group
// sees the keys. Gradients of keys near the segment's ends (the halo), of key set 1 and of the tables are partial sums
// in the task's slot; a second pass adds the slots in the order of the segments.
//
//   keys of set 0    |···halo···|·········own·········|···halo···|      own: seen by no other segment
//   queries                 |<---------- segment ---------->|           halo: up to a window's width at each end
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BY_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BY_QUERIES_INL_H_
#undef SPARSE_CPU_BY_QUERIES_INL_H_
#else
#define SPARSE_CPU_BY_QUERIES_INL_H_
#endif

#include <vector>

#include "etc_core/base/integers.h"
#include "sparse/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Queries of a task. Large enough that copying the window's keys outside the segment, and the keys of set 1, costs
// little; small enough that a long document has tasks for many threads. In bf16, where the products are so fast that
// copies take an eighth of the time, the length grows with the example's, from four segments on. It depends on nothing
// else, so an example's bits are the same alone, in a batch and with any number of threads.
inline constexpr std::int64_t kSegment = 512, kLongestSegment = 2048;
static_assert(kSegment % kGroup == 0 && kLongestSegment % kSegment == 0);

inline std::int64_t segment_length(std::int64_t length, ComputeType compute) {
  std::int64_t segment = kSegment;
  while (compute == ComputeType::bf16 && segment < kLongestSegment && length >= 8 * segment) segment *= 2;
  return segment;
}

// One segment of one head; keys[0] is its window, keys[1] all of set 1.
struct Segment : Task {
  std::int64_t index = 0;
  std::int64_t own_begin = 0, own_end = 0;  // keys of the window that no other segment sees

  // Row of a window key in the halo of the slot, -1 if it has none there.
  std::int64_t halo_row(std::int64_t key) const {
    const KeyRange& window = keys[0];
    if (key < window.begin || key >= window.end || (key >= own_begin && key < own_end)) return -1;
    return key < own_begin ? key - window.begin : key - own_end + (own_begin - window.begin);
  }
};

class ByQueries {
 public:
  // Floats of a task's slot, one array after the other.
  struct Slot {
    std::int64_t halo_rows = 0, other_keys = 0, stride = 0;
    std::int64_t dk() const { return 0; }                                       // [halo_rows, stride]
    std::int64_t dv() const { return halo_rows * stride; }                      // [halo_rows, stride]
    std::int64_t other_dk() const { return 2 * dv(); }                          // [other_keys, stride]
    std::int64_t other_dv() const { return other_dk() + other_keys * stride; }  // [other_keys, stride]
    std::int64_t terms() const { return other_dv() + other_keys * stride; }     // TermSlot
  };
  class ForwardSink;
  class BackwardSink;

  ByQueries(const AttentionInputs& in, Pass pass) : in_(in), pass_(pass), list_(in.heads) {
    for (std::int64_t b = 0; b < own().examples(); ++b) {
      // No query sees a memory without a segment, but its (zero) gradients must be written.
      const std::int64_t tasks = std::max(segments(b), std::min<std::int64_t>(1, key_count(b)));
      list_.add(tasks, pass == Pass::backward ? slot(b).terms() + TermSlot(in).floats() : 0);
      // The first segment's window includes the whole memory, however long it is.
      const std::int64_t unseen = std::max<std::int64_t>(0, own().first_position(b) - own().before);
      max_window_ =
          std::max(max_window_, std::min(key_count(b), segment_queries(b) + own().before + own().after + unseen));
      max_other_ = std::max(max_other_, rows_of(other().key_offsets, b).count);
    }
  }

  const TaskList& list() const { return list_; }
  std::int64_t floats() const { return list_.floats(); }  // of all slots
  std::int64_t terms_in_slot(std::int64_t b) const { return slot(b).terms(); }

  TaskSizes sizes() const {
    // Forward holds a group's logits of all its keys at a time, backward those of one key block.
    const std::int64_t all = std::max<std::int64_t>(own().max_group_columns + other().max_group_columns, kRunStep);
    const std::int64_t columns = pass_ == Pass::backward ? kBackwardKeys : all;
    return {{max_window_, max_other_}, 2, columns, max_key_blocks(own(), columns) + max_key_blocks(other(), columns)};
  }

  Slot slot(std::int64_t b) const {
    Slot slot;
    const std::int64_t around = own().before + own().after;  // keys of a segment's window outside the segment
    if (segments(b) > 1) slot.halo_rows = std::min({key_count(b), segment_queries(b) + around, 2 * around});
    slot.other_keys = rows_of(other().key_offsets, b).count;
    slot.stride = row_stride(in_.head_size);
    return slot;
  }

  // Tasks are ordered by example, then segment, then head, because the heads of a row are adjacent in memory.
  Segment task(std::int64_t number) const {
    const std::int64_t b = list_.example_of(number);
    return segment(b, number % in_.heads, number / in_.heads);
  }

  Segment segment(std::int64_t b, std::int64_t head, std::int64_t index) const {
    const RowRange queries = rows_of(own().query_offsets, b), others = rows_of(other().key_offsets, b);
    const std::int64_t before = own().before, after = own().after, end = queries.count;
    const std::int64_t first_position = own().first_position(b), key_count = first_position + end;
    Segment s;
    s.example = b;
    s.head = head;
    s.index = index;
    s.query_row = queries.first;
    // Counted from the example's first query, so that segments are the same for an example alone or in a batch.
    s.first_query = index * segment_queries(b);
    s.end_query = std::min(end, s.first_query + segment_queries(b));
    s.first_group = own().group_offsets[static_cast<std::size_t>(b)];
    const std::int64_t first = first_position + s.first_query, last = first_position + s.end_query;
    // The keys that the segment's queries can see. The first segment also gets the keys before, whose gradients are 0.
    const std::int64_t key_begin = s.first_query == 0 ? 0 : std::max<std::int64_t>(0, first - before);
    const std::int64_t key_end = std::min(key_count, last + after);
    s.keys[0] = {0, own().key_offsets[static_cast<std::size_t>(b)], key_begin, key_end, 0};
    // Dropout numbers the keys of set 1 after those of set 0.
    s.keys[1] = {1, others.first, 0, others.count, key_count};
    s.key_ranges = 2;
    s.own_begin = s.first_query == 0 ? 0 : std::min(first + after, key_end);
    s.own_end = s.end_query == end ? key_count : std::max(last - before, key_begin);
    // In a window wider than the segment, other segments see every key, too.
    if (s.own_end <= s.own_begin) s.own_begin = s.own_end = key_end;
    s.slot = list_.slot(b, head, index);
    return s;
  }

  static void finish_forward(const AttentionForward&, const ByQueries&, const float*) {}
  static void finish_backward(const AttentionBackward& args, const ByQueries& division, const float* slots);

 private:
  const TypeTiles& own() const { return in_.tiles->types[0]; }
  const TypeTiles& other() const { return in_.tiles->types[1]; }
  std::int64_t length(std::int64_t b) const { return rows_of(own().query_offsets, b).count; }
  std::int64_t key_count(std::int64_t b) const { return rows_of(own().key_offsets, b).count; }
  std::int64_t segment_queries(std::int64_t b) const { return segment_length(length(b), in_.compute); }
  std::int64_t segments(std::int64_t b) const { return ceil_div(length(b), segment_queries(b)); }
  // Second pass of backward.
  void sum_halo(const AttentionBackward& args, const Segment& s, const float* slots) const;
  void sum_other_keys(const AttentionBackward& args, std::int64_t head, const float* slots) const;

  const AttentionInputs& in_;
  Pass pass_;
  TaskList list_;
  std::int64_t max_window_ = 0, max_other_ = 0;
};

// Writes a group's output and log-sum-exp to the results.
class ByQueries::ForwardSink {
 public:
  ForwardSink(const AttentionForward& args, const ByQueries&, const Segment& s, float*)
      : args_(args), s_(s), streams_(streams_rows(args.out, args.inputs.head_size)) {}

  // Prefetches the rows that this group will write and the next one will read, during this group's arithmetic. Rows of
  // one head are far apart, and no hardware prefetcher follows them.
  void prefetch_ahead(const QueryGroup& group, const TaskScratch& scratch, RowsAhead& ahead) const {
    const HeadColumns columns = scratch.head.columns();
    const std::int64_t next = group.row + kGroup, left = s_.query_row + s_.end_query - next;
    if (!streams_) ahead.add_written(args_.out, columns, group.row, group.queries);
    ahead.add_read(args_.inputs.q, columns, next, std::min<std::int64_t>(kGroup, left));
    const KeyPanel& window = scratch.panels[0];
    if (window.filled() > 0) window.add_rows_to(ahead, window.filled(), window.filled() + kTilePairs);
  }

  void take(const QueryGroup& group, bool seen, const TaskScratch& scratch, const GroupSoftmax& softmax) const {
    if (!seen) std::fill_n(scratch.group.out, kGroup * scratch.head.stride, 0.0f);
    HWY_ALIGN float factor[kGroup];  // 1/sum, with dropout's rescaling
    HWY_ALIGN float lse[kGroup];     // natural logarithm
    for (int v = 0; v < kGroupVectors; ++v) {
      end_softmax(softmax.max[v], softmax.sum[v], scratch.head.kept_scale, v, factor, lse);
    }
    store_group(scratch.group.out, scratch.head, factor, args_.out, group, streams_);
    std::copy_n(lse, group.queries, args_.lse + s_.head * args_.inputs.q.rows + group.row);
  }

 private:
  const AttentionForward& args_;
  const Segment& s_;
  bool streams_;
};

// Writes dq of a group and the gradients of keys that no later group sees.
class ByQueries::BackwardSink {
 public:
  BackwardSink(const AttentionBackward& args, const ByQueries& division, const Segment& s, float* slots)
      : args_(args),
        s_(s),
        layout_(division.slot(s.example)),
        slot_(slots + s.slot),
        flushed_(s.keys[0].begin),
        done_(flushed_) {
    std::fill_n(ones_, kGroup, 1.0f);
  }

  // Rows to prefetch: those that this group will write and the next one will read.
  void begin_group(const QueryGroup& group, const TaskScratch& scratch, RowsAhead& ahead) {
    const AttentionInputs& in = args_.inputs;
    const HeadColumns columns = scratch.head.columns();
    const std::int64_t end = s_.query_row + s_.end_query, keys = s_.keys[0].example_row;
    const std::int64_t next = std::min(group.row + kGroup, end), after = std::min(group.row + 2 * kGroup, end);
    // Later groups do not see keys more than `before` positions before the next group's first query.
    const bool last = group.first + kGroup >= s_.end_query;
    const std::int64_t next_position = in.tiles->types[0].first_position(s_.example) + group.first + kGroup;
    done_ = last ? s_.keys[0].end : std::max(flushed_, next_position - in.tiles->types[0].before);
    ahead.add_written(args_.dq, columns, group.row, next - group.row);
    ahead.add_written(args_.dkeys[0].dk, columns, keys + flushed_, done_ - flushed_);
    ahead.add_written(args_.dkeys[0].dv, columns, keys + flushed_, done_ - flushed_);
    ahead.add_read(in.q, columns, next, after - next);
    ahead.add_read(args_.dout, columns, next, after - next);
    ahead.add_read(args_.out, columns, next, after - next);
  }

  void take(const QueryGroup& group, bool seen, TaskScratch& scratch) {
    if (!seen) std::fill_n(scratch.group.out, kGroup * scratch.head.stride, 0.0f);
    store_group(scratch.group.out, scratch.head, ones_, args_.dq, group, /*past_caches=*/false);
  }

  void take_keys(TaskScratch& scratch) {
    scratch.panels[0].require(done_ - s_.keys[0].begin);  // gradients of all keys are written, visible or not
    finish_keys(scratch.head, scratch.group.terms, scratch.panels[0], done_ - s_.keys[0].begin);
    flush_window(scratch);
    flushed_ = done_;
  }

  // Copies the gradients of key set 1 to the slot.
  void end(TaskScratch& scratch) {
    done_ = s_.keys[0].end;
    scratch.panels[0].require(done_ - s_.keys[0].begin);
    for (KeyPanel& panel : scratch.panels) finish_keys(scratch.head, scratch.group.terms, panel, panel.keys());
    flush_window(scratch);
    // Every segment sees all of set 1, so no task owns its gradients.
    const std::int64_t floats = layout_.other_keys * layout_.stride;
    scratch.panels[1].require(layout_.other_keys);
    std::copy_n(scratch.panels[1].dk(0), floats, slot_ + layout_.other_dk());
    std::copy_n(scratch.panels[1].dv(0), floats, slot_ + layout_.other_dv());
  }

 private:
  // Writes the gradients of window keys [flushed, done): owned ones to the results, the others to the slot.
  void flush_window(const TaskScratch& scratch) const {
    const HeadColumns columns = scratch.head.columns();
    const std::int64_t stride = layout_.stride;
    const KeyRange& window = s_.keys[0];
    for (std::int64_t key = flushed_; key < done_; ++key) {
      const float* dk = scratch.panels[0].dk(key - window.begin);  // [stride]
      const float* dv = scratch.panels[0].dv(key - window.begin);  // [stride]
      const std::int64_t halo = s_.halo_row(key), row = window.example_row + key;
      // Two or more segments have halo gradients of the key; each writes to its own slot.
      if (halo >= 0) {
        std::copy_n(dk, stride, slot_ + layout_.dk() + halo * stride);
        std::copy_n(dv, stride, slot_ + layout_.dv() + halo * stride);
      } else {
        write_row(dk, columns.size, row_in(args_.dkeys[0].dk, columns, row));
        write_row(dv, columns.size, row_in(args_.dkeys[0].dv, columns, row));
      }
    }
  }

  const AttentionBackward& args_;
  const Segment& s_;
  const Slot layout_;
  float* const slot_;
  std::int64_t flushed_, done_;   // window keys whose gradients are written, and will be after this group
  HWY_ALIGN float ones_[kGroup];  // factors for storing rows unchanged
};

// Window keys that several segments see: adds their halos. A task handles the keys of its own queries' tokens.
inline void ByQueries::sum_halo(const AttentionBackward& args, const Segment& s, const float* slots) const {
  const Slot layout = slot(s.example);
  const std::int64_t segments = list_.tasks_per_head(s.example);
  if (segments == 1) return;
  const std::int64_t reach = ceil_div(std::max(own().before, own().after), segment_queries(s.example));  // to each side
  std::vector<Segment> near;  // segments whose windows may reach these keys, in order
  const std::int64_t last = std::min(segments - 1, s.index + reach);
  for (std::int64_t n = std::max<std::int64_t>(0, s.index - reach); n <= last; ++n) {
    near.push_back(segment(s.example, s.head, n));
  }
  // The keys of the segment's own tokens; for the first segment also the memory.
  const std::int64_t first_position = own().first_position(s.example);
  const std::int64_t own_begin = s.first_query == 0 ? 0 : first_position + s.first_query;
  const std::int64_t own_end = first_position + s.end_query;
  const HeadColumns columns{s.head, in_.head_size};
  // Writes one key's gradient; array: offset of the halo's dk or dv in a slot.
  const auto write = [&](const MutableRows& to, std::int64_t key, std::int64_t array) HWY_ATTR {
    const auto add = [&](std::int64_t first, std::int64_t count, float* sum) HWY_ATTR {
      for (const Segment& of : near) {
        const std::int64_t halo = of.halo_row(key);
        if (halo < 0) continue;
        const float* const from = slots + of.slot + array + halo * layout.stride + first;  // [count]
        for (std::int64_t c = 0; c < count; ++c) sum[c] += from[c];
      }
    };
    write_sums(columns.size, row_in(to, columns, s.keys[0].example_row + key), add);
  };
  for (std::int64_t key = own_begin; key < own_end; ++key) {
    // Already complete: the task that owns the key wrote it.
    if (s.halo_row(key) < 0) continue;
    write(args.dkeys[0].dk, key, layout.dk());
    write(args.dkeys[0].dv, key, layout.dv());
  }
}

// dk and dv of key set 1 for one head: sums over the segments of each example, in order.
inline void ByQueries::sum_other_keys(const AttentionBackward& args, std::int64_t head, const float* slots) const {
  for (std::int64_t b = 0; b < list_.examples(); ++b) {
    const Slot layout = slot(b);
    const RowRange rows = rows_of(other().key_offsets, b);
    // dk first; dv is at a fixed distance after it in every slot.
    SlotSum sum{slots + list_.slot(b, head, 0) + layout.other_dk(), list_.tasks_per_head(b), list_.slot_floats(b),
                layout.stride};
    const HeadColumns columns{head, in_.head_size};
    sum.write(args.dkeys[1].dk, columns, rows);
    sum.first += layout.other_dv() - layout.other_dk();
    sum.write(args.dkeys[1].dv, columns, rows);
  }
}

// Sums over slots, always in order of the segments.
inline void ByQueries::finish_backward(const AttentionBackward& args, const ByQueries& division, const float* slots) {
  // First the halos, each key by the task of its token; then the gradients that all segments of a head share.
  parallel_for(division.list_.tasks(),
               [&](std::int64_t number) HWY_ATTR { division.sum_halo(args, division.task(number), slots); });
  parallel_for(args.inputs.heads, [&](std::int64_t head) HWY_ATTR { division.sum_other_keys(args, head, slots); });
  add_table_gradients(args, division, slots);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
