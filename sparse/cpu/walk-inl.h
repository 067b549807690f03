// The loops shared by both divisions of work: a task iterates over its groups of queries, a group over the runs of keys
// it sees. The divisions differ in where results are written: a *sink* receives them, group by group.
//
//   for each task, on any thread            KeyPanel: its keys and values, copied when first needed
//     for each group of 16 queries          GroupScratch: q as rows and lanes, logits, the terms' table
//       for each key block the group sees   products, softmax (group-inl.h)
//       sink.take(group)                    out and lse, or partial sums to the task's slot
//   then sums over slots                    in the order of the tasks
//
// A division (ByQueries, ByKeys) provides
//   Division(inputs, pass)       list(), sizes(), task(number)
//   ForwardSink(args, division, task, slots)
//     prefetch_ahead(group, scratch, ahead)               rows to prefetch meanwhile
//     take(group, seen, scratch, softmax)                 a group's softmax, not yet divided by its sum
//   BackwardSink(args, division, task, slots)
//     begin_group(group, scratch, ahead)                  rows to prefetch meanwhile
//     take(group, seen, scratch)                          scratch.group.out holds dq
//     take_keys(scratch)                                  the panels' dk and dv include all groups so far
//     end(scratch)                                        after the last group
//   finish_forward(args, division, slots), finish_backward(args, division, slots)     sums over slots, in their order
// If a group sees no key (seen is false), scratch.group.out holds old values, and the sink decides whether zeros are
// needed. With split keys and hard masks most groups see no key of most splits.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_WALK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_WALK_INL_H_
#undef SPARSE_CPU_WALK_INL_H_
#else
#define SPARSE_CPU_WALK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>
// Needs foreach_target before it.
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "etc_core/base/parallel.h"
#include "sparse/cpu/group-inl.h"
#include "sparse/cpu/head_rows-inl.h"
#include "sparse/cpu/task_list.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys of a key block. Forward takes whole runs, since it needs the maximum of a group's logits before the first
// weight. Backward already has the log-sum-exp and takes 32 keys: k, v, dk and dv of a key block are 32 KiB at D = 64
// and stay in the L1 cache during the five products.
inline constexpr std::int64_t kForwardKeys = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kBackwardKeys = 32;
static_assert(kBackwardKeys % kRunStep == 0);

// One thread's working memory for one task.
struct TaskScratch {
  HeadContext head;
  KeyPanel panels[kKeySets];  // of the task's key ranges
  GroupScratch group;

  // With a null arena this only counts (arena.h): size and layout cannot disagree.
  TaskScratch(Arena& arena, const AttentionInputs& in, const TaskSizes& sizes, Pass pass) : head(in) {
    for (int n = 0; n < sizes.panels; ++n) {
      panels[n] = KeyPanel::take(arena, sizes.panel_keys[n], head.stride, pass, in.compute);
    }
    group = GroupScratch::take(arena, in, head, sizes, pass);
    std::int64_t places = 0;  // a panel may hold keys of either key set
    for (const DistanceScratch& own : group.terms.by_distance) places = std::max(places, own.key_places);
    for (int n = 0; n < sizes.panels; ++n) panels[n].take_products(arena, sizes.panel_keys[n], places, pass);
  }
};

inline std::int64_t thread_scratch_bytes(const AttentionInputs& in, const TaskSizes& sizes, Pass pass) {
  Arena counter(nullptr);
  const TaskScratch scratch(counter, in, sizes, pass);
  // Every thread gets as much, whether it runs a task or not.
  return counter.used();
}

// Prepares what the task's groups share. Keys and values are copied later, when a group first needs them.
inline void load_task(const AttentionInputs& in, const Task& task, TaskScratch& scratch) {
  scratch.head.set_task(in, task.example, task.head);
  load_terms(in, task.head, scratch.head, scratch.group.terms);
  for (int n = 0; n < task.key_ranges; ++n) {
    KeyRange range = task.keys[n];
    range.shift = in.tiles->types[range.set].distance.shift(task.example);
    scratch.panels[n].assign(in, task.head, range);
  }
}

// Collects the key blocks of the task's panels that a group sees.
inline std::int64_t collect_group_blocks(const AttentionInputs& in, const Task& task, const QueryGroup& group,
                                         std::int64_t most, TaskScratch& scratch) {
  // Groups are counted from the example's first query, like tasks, so other examples of the batch have no influence.
  const GroupNumber number{task.first_group + group.first / kGroup, group.first};
  const KeySteps steps{most, scratch.head.bf16 != nullptr ? kTilePairs : 1};
  std::int64_t count = 0;
  for (int n = 0; n < task.key_ranges; ++n) {
    count += collect_key_blocks(*in.tiles, number, scratch.panels[n], steps, scratch.group.blocks + count);
  }
  return count;
}

// Calls body(group) for every group of a task, in order.
template <typename Body>
HWY_INLINE void for_each_group(const Task& task, const Body& body) {
  for (std::int64_t first = task.first_query; first < task.end_query; first += kGroup) {
    body(QueryGroup{first, task.query_row + first, std::min<std::int64_t>(kGroup, task.end_query - first)});
  }
}

// The end of a softmax, for the queries of vector v: factor for out = factor · accumulated, and lse = max ln2 +
// log(sum). Rows without a visible key get 0 and -inf.   factor, lse [kGroup]
HWY_INLINE void end_softmax(FloatVec max, FloatVec sum, float kept_scale, int v, float* factor, float* lse) {
  const FloatTag d;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());
  const FloatMask seen = hn::Gt(sum, hn::Zero(d));
  // Sums of rows without a visible key are replaced by 1, to avoid log(0) and division by zero.
  const FloatVec safe = hn::IfThenElse(seen, sum, hn::Set(d, 1.0f));
  hn::Store(hn::IfThenElseZero(seen, hn::Div(hn::Set(d, kept_scale), safe)), d, factor + v * kLanes);
  const FloatVec value = hn::MulAdd(max, hn::Set(d, kLn2), hn::Log(d, safe));
  hn::Store(hn::IfThenElse(seen, value, none), d, lse + v * kLanes);
}

// Partial sums of several slots, added in slot order.
//   first [rows, stride]: in slot 0; the same rows of the next slot are `slot_floats` further
struct SlotSum {
  const float* first = nullptr;
  std::int64_t slots = 0, slot_floats = 0, stride = 0;

  // to[row] = sum_n slot_n[row] of one head.
  void write(const MutableRows& to, const HeadColumns& columns, const RowRange& rows) const {
    for (std::int64_t r = 0; r < rows.count; ++r) {
      // Start from zero and add slot by slot, so that the result does not depend on which thread filled a slot.
      const auto add = [&](std::int64_t from, std::int64_t count, float* sum) HWY_ATTR {
        for (std::int64_t n = 0; n < slots; ++n) {
          const float* const slot = first + n * slot_floats + r * stride + from;  // [count]
          for (std::int64_t c = 0; c < count; ++c) sum[c] += slot[c];
        }
      };
      write_sums(columns.size, row_in(to, columns, rows.first + r), add);
    }
  }
};

template <typename Sink>
HWY_INLINE void forward_task(const AttentionForward& args, const Task& task, TaskScratch& scratch, Sink& sink) {
  const FloatTag d;
  const AttentionInputs& in = args.inputs;
  const TypeScores scores[kKeySets] = {of_head(args.scores[0], in.tiles->types[0], task.head),
                                       of_head(args.scores[1], in.tiles->types[1], task.head)};
  // Rows of the next group, prefetched between the steps of this one.
  RowsAhead ahead;
  for_each_group(task, [&](const QueryGroup& group) HWY_ATTR {
    ahead.clear();
    sink.prefetch_ahead(group, scratch, ahead);
    const std::int64_t count = collect_group_blocks(in, task, group, kForwardKeys, scratch);
    GroupSoftmax softmax;
    if (count > 0) {
      load_queries(in.q, scratch.head, group, scratch.group);
      forward_group(scratch.head, scores, {group.first, scratch.group.blocks, count}, ahead, scratch.group, softmax);
    } else {
      for (int v = 0; v < kGroupVectors; ++v) {
        softmax.max[v] = hn::Set(d, -std::numeric_limits<float>::infinity());
        softmax.sum[v] = hn::Zero(d);
      }
    }
    sink.take(group, count > 0, scratch, softmax);
  });
}

// In bf16: adds the last groups' parts of dk and dv.
inline void finish_groups(const Task& task, TaskScratch& scratch) {
  for (int n = 0; n < task.key_ranges; ++n) {
    multiply_key_gradients(scratch.head, scratch.panels[n], scratch.group.bf16);
  }
  scratch.group.bf16.groups = 0;
}

template <typename Sink>
HWY_INLINE void backward_task(const AttentionBackward& args, const Task& task, TaskScratch& scratch, Sink& sink) {
  const AttentionInputs& in = args.inputs;
  const HeadContext& head = scratch.head;
  const TypeScoreGradients scores[kKeySets] = {of_head(args.scores[0], in.tiles->types[0], task.head),
                                               of_head(args.scores[1], in.tiles->types[1], task.head)};
  RowsAhead ahead;
  for_each_group(task, [&](const QueryGroup& group) HWY_ATTR {
    GroupScratch& own = scratch.group;
    ahead.clear();
    sink.begin_group(group, scratch, ahead);
    const std::int64_t count = collect_group_blocks(in, task, group, kBackwardKeys, scratch);
    if (count > 0) {
      load_group(in.q, head, group, own.q_rows, own.q_lanes);
      load_group(args.dout, head, group, own.dout_rows, own.dout_lanes);
      RowStatistics rows;
      load_row_statistics(head, args.out, args.lse + task.head * in.q.rows, group, own.dout_rows, rows);
      backward_group(head, scores, {group.first, own.blocks, count}, ahead, own, rows);
    }
    sink.take(group, count > 0, scratch);
    if (head.bf16 != nullptr && own.bf16.groups == kTileGroups) finish_groups(task, scratch);
    if (own.bf16.groups == 0) sink.take_keys(scratch);
  });
  if (scratch.group.bf16.groups > 0) finish_groups(task, scratch);
  sink.end(scratch);
}

// Runs body(task, scratch) for every task of the operator, each on any thread, with that thread's scratch. base_2: scores
// are logits (HeadContext::use_base_2).
template <typename Division, typename Body>
void for_each_task(const AttentionInputs& in, const Division& division, Pass pass, bool base_2, std::byte* memory,
                   const Body& body) {
  // Sizes of the largest task; all threads' scratch has the same layout.
  const TaskSizes sizes = division.sizes();
  const std::int64_t thread_bytes = thread_scratch_bytes(in, sizes, pass);
  // Laid out once per thread and copied for every task: in decoding, a task is a single query.
  std::vector<TaskScratch> layouts;
  for (int thread = 0; thread < thread_count(); ++thread) {
    Arena arena(memory + thread * thread_bytes);
    layouts.emplace_back(arena, in, sizes, pass);
    if (base_2) layouts.back().head.use_base_2();
  }
  parallel_for(division.list().tasks(), [&](std::int64_t number, int thread) HWY_ATTR {
    const auto task = division.task(number);
    TaskScratch scratch = layouts[static_cast<std::size_t>(thread)];
    load_task(in, task, scratch);
    body(task, scratch);
    hwy::FlushStream();  // non-temporal stores of scores must be visible before the task counts as done
  });
}

// Scratch of a call: one part per thread, then the slots.
template <typename Division>
std::int64_t scratch_bytes(const AttentionInputs& in, Pass pass) {
  const Division division(in, pass);
  return thread_count() * thread_scratch_bytes(in, division.sizes(), pass) +
         division.floats() * static_cast<std::int64_t>(sizeof(float));
}

template <typename Division>
float* slots_of(const AttentionInputs& in, const Division& division, Pass pass, void* scratch) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(scratch) +
                                  thread_count() * thread_scratch_bytes(in, division.sizes(), pass));
}

template <typename Division>
// Pass 1: tasks on threads, in any order. Pass 2, if any: sums over slots, in slot order.
void run_forward(const AttentionForward& args) {
  const AttentionInputs& in = args.inputs;
  const Division division(in, Pass::forward);
  float* const slots = slots_of(in, division, Pass::forward, args.scratch);  // [floats of all slots]
  const bool scored = args.scores[0].mode != ScoreMode::none || args.scores[1].mode != ScoreMode::none;
  const bool base_2 = in.compute == ComputeType::bf16 && !scored;
  for_each_task(in, division, Pass::forward, base_2, static_cast<std::byte*>(args.scratch),
                [&](const auto& task, TaskScratch& scratch) HWY_ATTR {
                  // The tile unit is configured per task, on the thread that runs the task.
                  const TileUse tiles(scratch.head.bf16);
                  typename Division::ForwardSink sink(args, division, task, slots);
                  forward_task(args, task, scratch, sink);
                });
  Division::finish_forward(args, division, slots);
}

// The tables' gradients: sums over all slots of a head, example by example; where heads share a table, head by head.
template <typename Division>
void add_table_gradients(const AttentionBackward& args, const Division& division, const float* slots) {
  const AttentionInputs& in = args.inputs;
  const TaskList& list = division.list();
  const auto add_head = [&](std::int64_t head, std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t b = 0; b < list.examples(); ++b) {
      for (std::int64_t n = 0; n < list.tasks_per_head(b); ++n) {
        add_term_sums(args, head, begin, end, slots + list.slot(b, head, n) + division.terms_in_slot(b));
      }
    }
  };
  // Without a table there is nothing to add.
  const std::int64_t rows = in.relative.rows();
  if (rows == 0) return;
  if (!in.relative.shared_heads) {
    parallel_for(in.heads, [&](std::int64_t head) HWY_ATTR { add_head(head, 0, rows); });
    return;
  }
  parallel_for(ceil_div(rows, kRunStep), [&](std::int64_t n) HWY_ATTR {
    const std::int64_t begin = n * kRunStep, end = std::min(rows, begin + kRunStep);
    for (std::int64_t head = 0; head < in.heads; ++head) add_head(head, begin, end);
  });
}

template <typename Division>
// As run_forward. In pass 1 a task writes results that it alone owns; all others go through its slot.
void run_backward(const AttentionBackward& args) {
  const AttentionInputs& in = args.inputs;
  const Division division(in, Pass::backward);
  const TermSlot terms(in);
  float* const slots = slots_of(in, division, Pass::backward, args.scratch);  // [floats of all slots]
  for_each_task(in, division, Pass::backward, /*base_2=*/false, static_cast<std::byte*>(args.scratch),
                [&](const auto& task, TaskScratch& scratch) HWY_ATTR {
                  const TileUse tiles(scratch.head.bf16);
                  clear_term_sums(scratch.group.terms, terms);
                  typename Division::BackwardSink sink(args, division, task, slots);
                  backward_task(args, task, scratch, sink);
                  leave_term_sums(scratch.group.terms, terms, slots + task.slot + division.terms_in_slot(task.example));
                });
  Division::finish_backward(args, division, slots);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
