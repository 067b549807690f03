// attention_statistics on the CPU: computes scores of this layer and of the layer before, then logits, then the
// statistics of statistics_group-inl.h. Sums by label and distance go to the task's slot; slots are added in order.
#include "sparse/attention_statistics.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/cpu/statistics_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "etc_core/base/vector_dispatch.h"
#include "sparse/cpu/statistics_group-inl.h"
#include "sparse/cpu/statistics_top-inl.h"
#include "sparse/cpu/walk-inl.h"
#include "sparse/register_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// scratch.group.p = s of all pairs of a group; its visible key blocks are in scratch.group.blocks.
std::int64_t make_scores(const AttentionInputs& in, const Task& task, const QueryGroup& group, TaskScratch& scratch) {
  const FloatTag d;
  const std::int64_t count = collect_group_blocks(in, task, group, kStatisticsKeys, scratch);
  const HeadContext& head = scratch.head;
  const GroupScratch& own = scratch.group;
  load_queries(in.q, head, group, own);
  make_table(head, own.q_lanes, own.terms, span_of_group(own.terms, {group.first, own.blocks, count}));
  float* s = own.p;  // [keys, kGroup] of the block
  for (std::int64_t n = 0; n < count; s += own.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = own.blocks[n];
    block.panel->require(block.row + block.keys);
    dots_of_block(head, block, {0, block.keys, /*scored=*/true}, own, s);  // m with all its terms
    with_term(
        own.terms, block, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
          for (std::int64_t j = 0; j < block.keys; ++j) {
            for (int v = 0; v < kGroupVectors; ++v) {
              hn::StoreU(score(head, term, s, j, v), d, s + j * kGroup + v * kLanes);
            }
          }
        });
  }
  return count;
}

// Logits of one block of a type that carries scores: of this layer, and of the layer before from C - s.
struct CarriedBlock {
  const ScoreElement *running, *running_before;  // [keys, kGroup] of the head, and of the one it is compared with
  const float* own_before;                       // s of this layer, of that head
  float scale, scale_before;
  float *used, *previous;
};
HWY_INLINE void carried_logits(const KeyBlock& block, const CarriedBlock& of, CarrySums& carry) {
  const FloatTag d;
  const IntTag di;
  const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
  FloatVec sum[kGroupVectors], seen[kGroupVectors], largest[kGroupVectors];
  clear(sum);
  clear(seen);
  for (int v = 0; v < kGroupVectors; ++v) largest[v] = hn::Load(d, carry.largest + v * kLanes);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      const std::int64_t at = j * kGroup + v * kLanes;
      const FloatMask mask = lanes_of(visible[j], v);
      const FloatVec c = score_value(hn::LoadU(di, of.running + at));
      const FloatVec size = hn::IfThenElseZero(mask, hn::Abs(c));
      sum[v] = hn::Add(sum[v], size);
      seen[v] = hn::Add(seen[v], hn::IfThenElseZero(mask, hn::Set(d, 1.0f)));
      largest[v] = hn::Max(largest[v], size);
      hn::StoreU(hn::Mul(c, hn::Set(d, of.scale)), d, of.used + at);
      const FloatVec earlier =
          hn::Sub(score_value(hn::LoadU(di, of.running_before + at)), hn::LoadU(d, of.own_before + at));
      hn::StoreU(hn::Mul(earlier, hn::Set(d, of.scale_before)), d, of.previous + at);
    }
  }
  add_lanes(sum, carry.magnitude);
  add_lanes(seen, carry.pairs);
  for (int v = 0; v < kGroupVectors; ++v) hn::Store(largest[v], d, carry.largest + v * kLanes);
}

// Computes scratch.used and scratch.previous of a group, block by block.
void make_logits(const StatisticsCall& call, const Task& task, const GroupBlocks& of, StatisticsScratch& scratch,
                 CarrySums& carry) {
  const std::int64_t head_before = call.head_before(task.head);
  const TaskScratch& same = scratch.shifted ? *scratch.shifted : scratch.own;
  std::int64_t at = 0;  // of the block in the arrays
  for (std::int64_t n = 0; n < of.count; at += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    const TypeScores& scores = call.args.scores[static_cast<std::size_t>(block.set)];
    const std::int64_t floats = block.keys * kGroup;
    if (scores.running == nullptr) {
      std::copy_n(scratch.own.group.p + at, floats, scratch.used + at);
      if (scratch.before) std::copy_n(scratch.before->group.p + at, floats, scratch.previous + at);
      continue;
    }
    const auto running = [&](std::int64_t head) {
      return of_head(scores, *block.tiles, head).running + block.column * kGroup;
    };
    carried_logits(block,
                   {running(task.head), running(head_before), same.group.p + at, scores.logit_scale,
                    call.args.logit_scale_before, scratch.used + at, scratch.previous + at},
                   carry);
  }
}

void take_group(const StatisticsCall& call, const Task& task, const QueryGroup& group, StatisticsScratch& scratch) {
  const AttentionStatistics& args = call.args;
  const GroupBlocks of{scratch.own.group.blocks, make_scores(call.own, task, group, scratch.own)};
  Task other = task;
  other.head = call.head_before(task.head);
  if (scratch.shifted) make_scores(call.own, other, group, *scratch.shifted);
  if (scratch.before) make_scores(call.before, other, group, *scratch.before);
  GroupSums sums;
  make_logits(call, task, of, scratch, sums.carry);
  sums.used.take<true>(of, scratch.used, scratch.powers);
  take_deviations(of, scratch.used, sums);
  probabilities_of(of, scratch.powers, sums.used, scratch.p);
  const std::int64_t own_key = call.tiles(0).first_position(task.example) + group.first;
  add_distances(of, own_key, scratch.p, sums.distance);
  take_labels(call, group, of, scratch);
  if (args.distance_mass != nullptr) take_distances(call, group, own_key, of, scratch);
  if (call.compares()) take_divergences(call, of, scratch, sums);
  const std::int64_t queries = call.own.q.rows, first = task.head * queries;
  if (args.top_keys != nullptr) {
    take_top({args.top, scratch.p, scratch.own.group.p, scratch.used, scratch.greatest}, group.queries, of,
             args.top_keys + (first + group.row) * args.top);
  }
  for (int i = 0; i < group.queries; ++i) {
    write_query(call, sums, scratch, i, args.of_queries + (first + group.row + i) * kQueryStatistics);
  }
}

// Sums over the slots of a head, example by example.
void add_slots(const StatisticsCall& call, std::int64_t head, const double* slots) {
  const AttentionStatistics& args = call.args;
  const auto add = [&](double* to, std::int64_t at, std::int64_t count) {
    if (to == nullptr) return;
    to += head * count;
    for (std::int64_t b = 0; b < call.list.examples(); ++b) {
      for (std::int64_t n = 0; n < call.list.tasks_per_head(b); ++n) {
        const double* const from = slots + call.list.slot(b, head, n) + at;
        for (std::int64_t k = 0; k < count; ++k) to[k] += from[k];
      }
    }
  };
  for (int t = 0; t < kKeySets; ++t) add(args.label_mass[t], call.slot.of_labels[t], args.groups * call.slot.labels);
  add(args.distance_mass, call.slot.of_distances, args.groups * call.slot.distances);
}

std::int64_t thread_bytes(const StatisticsCall& call, const TaskSizes& sizes) {
  Arena counter(nullptr);
  const StatisticsScratch scratch(counter, call, sizes);
  return counter.used();
}

std::int64_t statistics_scratch(const AttentionStatistics& args) {
  const StatisticsCall call(args);
  return thread_count() * thread_bytes(call, call.sizes()) +
         call.list.floats() * static_cast<std::int64_t>(sizeof(double));
}

void statistics(const AttentionStatistics& args) {
  const StatisticsCall call(args);
  const TaskSizes sizes = call.sizes();
  const std::int64_t bytes = thread_bytes(call, sizes);
  auto* const memory = static_cast<std::byte*>(args.scratch);
  double* const slots = reinterpret_cast<double*>(memory + thread_count() * bytes);  // after all threads' memory
  std::fill_n(slots, call.list.floats(), 0.0);
  parallel_for(call.list.tasks(), [&](std::int64_t number, int thread) HWY_ATTR {
    Arena arena(memory + thread * bytes);
    StatisticsScratch scratch(arena, call, sizes);
    scratch.load(call, number);
    const Task task = call.task(number, 0);
    for_each_group(task, [&](const QueryGroup& group) HWY_ATTR { take_group(call, task, group, scratch); });
    finish_task(call, scratch, slots + task.slot);
  });
  parallel_for(call.own.heads, [&](std::int64_t head) { add_slots(call, head, slots); });
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::sparse {

void register_statistics_kernels(Device device) {
  if (device == Device::counting) {
    attention_statistics_slot.fill(device, [](const AttentionStatistics&) {});
  } else {
    attention_statistics_slot.fill(device, [](const AttentionStatistics& a) { ETC_DISPATCH(statistics)(a); });
  }
  attention_statistics_scratch_slot.fill(
      device, [](const AttentionStatistics& a) { return ETC_DISPATCH(statistics_scratch)(a); });
}

}  // namespace etc::sparse
#endif  // HWY_ONCE
