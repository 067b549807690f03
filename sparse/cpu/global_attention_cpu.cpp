// global_attention on the CPU: an example's keys in splits of kKeySplit, first those of g2g, then those of g2l, each
// counted from the example's first; a task is one split of one head. A task copies its keys and values once and goes
// through all groups of global queries.
//
// Forward: each task leaves, per group, the maximum, the sum and the unnormalised output over its keys; a second pass
// combines the splits of a group in order. Backward: a task owns the gradients of its keys; dq and the tables'
// gradients go to a slot of its own and are added in order by a second pass.
#include "sparse/global_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/cpu/global_attention_cpu.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// The per-target part needs them after foreach_target.
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <limits>

#include "etc_core/base/parallel.h"
#include "sparse/cpu/group-inl.h"
#include "sparse/cpu/kernels.h"
#include "sparse/visible_tiles.h"

#ifndef SPARSE_CPU_GLOBAL_ATTENTION_ONCE
#define SPARSE_CPU_GLOBAL_ATTENTION_ONCE
namespace etc::sparse {

namespace {

constexpr std::int64_t kBackwardKeys = 32;  // keys of a part in backward
static_assert(kBackwardKeys % kRunStep == 0);

// One split of one head.
struct Split {
  std::int64_t example = 0, head = 0;
  int type = 0;                              // 0: g2g, 1: g2l
  std::int64_t begin = 0, end = 0;           // keys of that type
  std::int64_t globals = 0;                  // G
  std::int64_t query_row = 0, key_row = 0;   // of the example's first query and first key of the type
  std::int64_t first_group = 0, groups = 0;  // of the example
  std::int64_t slot = 0;                     // floats into the slots
};

std::int64_t splits_of(std::int64_t keys) {
  return (keys + kKeySplit - 1) / kKeySplit;
}

// Floats of one task's slot. Forward: per group its output, maxima and sums. Backward: per group dq; then the tables.
struct SlotLayout {
  std::int64_t groups = 0, labels = 0, stride = 0;
  bool backward = false;
  std::int64_t group_floats() const { return kGroup * stride + (backward ? 0 : 2 * kGroup); }
  std::int64_t max() const { return kGroup * stride; }
  std::int64_t sum() const { return max() + kGroup; }
  std::int64_t drel() const { return groups * group_floats(); }
  std::int64_t dbias() const { return drel() + labels * stride; }
  std::int64_t floats() const { return backward ? dbias() + labels : drel(); }
};

class Plan {
 public:
  Plan(const GlobalAttentionInputs& inputs, bool backward)
      : inputs_(inputs), backward_(backward), g2g_(inputs.tiles->g2g), g2l_(inputs.tiles->g2l) {
    for (std::int64_t b = 0; b < g2g_.examples(); ++b) {
      task_count_ += tasks_of(b);
      slot_floats_ += tasks_of(b) * slot(b).floats();
      max_split_ = std::max({max_split_, std::min<std::int64_t>(kKeySplit, keys_of(g2g_, b)),
                             std::min<std::int64_t>(kKeySplit, keys_of(g2l_, b))});
    }
  }

  std::int64_t task_count() const { return task_count_; }
  std::int64_t slot_floats() const { return slot_floats_; }
  std::int64_t max_split() const { return max_split_; }
  std::int64_t splits_of_example(std::int64_t b) const {
    return splits_of(keys_of(g2g_, b)) + splits_of(keys_of(g2l_, b));
  }
  std::int64_t tasks_of(std::int64_t b) const { return inputs_.heads * splits_of_example(b); }
  std::int64_t groups_of(std::int64_t b) const { return g2g_.group_offsets[at(b + 1)] - g2g_.group_offsets[at(b)]; }

  SlotLayout slot(std::int64_t b) const {
    const std::int64_t labels = inputs_.relative.vectors == nullptr ? 0 : padded_rows(inputs_.relative.labels);
    return {groups_of(b), labels, row_stride(inputs_.head_size), backward_};
  }

  // Slots lie in order of example, head, split.
  std::int64_t slot_base(std::int64_t b) const {
    std::int64_t base = 0;
    for (std::int64_t n = 0; n < b; ++n) base += tasks_of(n) * slot(n).floats();
    return base;
  }

  Split split(std::int64_t task) const {
    std::int64_t b = 0;
    for (; task >= tasks_of(b); ++b) task -= tasks_of(b);
    const std::int64_t own_splits = splits_of(keys_of(g2g_, b)), splits = splits_of_example(b);
    std::int64_t index = task % splits;
    Split s;
    s.example = b;
    s.head = task / splits;
    s.slot = slot_base(b) + task * slot(b).floats();
    s.type = index < own_splits ? 0 : 1;
    if (s.type == 1) index -= own_splits;
    const TypeTiles& tiles = s.type == 0 ? g2g_ : g2l_;
    s.begin = index * kKeySplit;
    s.end = std::min(keys_of(tiles, b), s.begin + kKeySplit);
    s.globals = keys_of(g2g_, b);
    s.query_row = g2g_.query_offsets[at(b)];
    s.key_row = tiles.key_offsets[at(b)];
    s.first_group = g2g_.group_offsets[at(b)];
    s.groups = groups_of(b);
    return s;
  }

 private:
  static std::size_t at(std::int64_t b) { return static_cast<std::size_t>(b); }
  static std::int64_t keys_of(const TypeTiles& tiles, std::int64_t b) {
    return tiles.key_offsets[at(b + 1)] - tiles.key_offsets[at(b)];
  }

  const GlobalAttentionInputs& inputs_;
  bool backward_;
  const TypeTiles& g2g_;
  const TypeTiles& g2l_;
  std::int64_t task_count_ = 0, slot_floats_ = 0, max_split_ = 0;
};

}  // namespace
}  // namespace etc::sparse
#endif  // SPARSE_CPU_GLOBAL_ATTENTION_ONCE

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One thread's scratch.
struct GlobalScratch {
  HeadContext head;
  KeyPanel panel;
  GroupScratch group;

  GlobalScratch(Arena& arena, const GlobalAttentionInputs& inputs, const Plan& plan, bool backward) {
    head = HeadContext::take(arena, inputs.head_size, inputs.relative, inputs.compute);
    panel = KeyPanel::take(arena, plan.max_split(), head.stride, backward, inputs.compute);
    const std::int64_t part_keys = backward ? kBackwardKeys : kKeySplit;
    group = GroupScratch::take(arena, head, backward ? kBackwardKeys : plan.max_split() + kRunStep,
                               kKeySplit / kRunStep + kKeySplit / part_keys, backward);
  }
};

std::int64_t thread_scratch_bytes(const GlobalAttentionInputs& inputs, const Plan& plan, bool backward) {
  Arena counter(nullptr);
  GlobalScratch scratch(counter, inputs, plan, backward);
  return counter.used();
}

// Prepares what the task's groups share.
void load_split(const GlobalAttentionInputs& in, const Split& s, GlobalScratch& scratch) {
  scratch.head.load(in.relative, in.heads, s.head);
  scratch.head.set_dropout(in.dropout, DropoutSite::global_attention, s.example, s.head);
  const Rows& k = s.type == 0 ? in.k : in.lk;
  const Rows& v = s.type == 0 ? in.v : in.lv;
  // In dropout's numbering g2l keys come after the g2g ones.
  scratch.panel.assign(k, v, s.head, in.head_size, s.key_row, s.begin, s.end, s.type == 0 ? 0 : s.globals);
  if (scratch.head.bf16 != nullptr) load_bf16_task(scratch.head);
}

const TypeTiles& tiles_of(const GlobalAttentionInputs& in, int type) {
  return type == 0 ? in.tiles->g2g : in.tiles->g2l;
}

// Pass 1 of forward: one split against all groups; leaves output, maximum and sum of each group in the slot.
void forward_split(const GlobalAttentionForward& args, const Split& s, const SlotLayout& layout, GlobalScratch& scratch,
                   float* slot) {
  const FloatTag d;
  const GlobalAttentionInputs& in = args.inputs;
  const TypeScores scores[2] = {of_head(args.g2g, in.tiles->g2g, s.head), of_head(args.g2l, in.tiles->g2l, s.head)};
  for (std::int64_t g = 0; g < s.groups; ++g, slot += layout.group_floats()) {
    FloatVec max[kParts], sum[kParts];
    for (int p = 0; p < kParts; ++p) {
      max[p] = hn::Set(d, -std::numeric_limits<float>::infinity());
      sum[p] = hn::Zero(d);
    }
    const std::int64_t count =
        collect_parts(tiles_of(in, s.type), s.first_group + g, s.type, scratch.panel, kKeySplit, scratch.group.parts);
    if (count > 0) {
      const std::int64_t first = g * kGroup, queries = std::min<std::int64_t>(kGroup, s.globals - first);
      load_queries(in.q, s.head, scratch.head, s.query_row + first, queries, scratch.group);
      RowsAhead ahead;
      forward_group(scratch.head, scores, first, scratch.group.parts, count, ahead, scratch.group, max, sum);
      std::copy_n(scratch.group.out, kGroup * layout.stride, slot);
    }
    for (int p = 0; p < kParts; ++p) {
      hn::StoreU(max[p], d, slot + layout.max() + p * kLanes);
      hn::StoreU(sum[p], d, slot + layout.sum() + p * kLanes);
    }
  }
}

// Pass 2 of forward: one group of one head, over its splits in order.
//   max = max_s max_s,  sum = sum_s 2^(max_s - max) sum_s,  out = sum_s 2^(max_s - max) out_s / sum     base 2
void combine_group(const GlobalAttentionForward& args, const Plan& plan, std::int64_t b, std::int64_t head,
                   std::int64_t group, const float* slots) {
  const FloatTag d;
  const GlobalAttentionInputs& in = args.inputs;
  const SlotLayout layout = plan.slot(b);
  const std::int64_t splits = plan.splits_of_example(b), size = in.head_size;
  const std::int64_t query_row = in.tiles->g2g.query_offsets[static_cast<std::size_t>(b)];
  const std::int64_t globals = in.tiles->g2g.query_offsets[static_cast<std::size_t>(b) + 1] - query_row;
  const float* first_slot = slots + head * splits * layout.floats() + group * layout.group_floats();
  const float kept_scale = in.dropout.rate > 0.0f ? 1.0f / (1.0f - in.dropout.rate) : 1.0f;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());

  HWY_ALIGN float shift[kGroup];
  HWY_ALIGN float factor[kGroup];  // 1/sum, with dropout's rescaling
  HWY_ALIGN float lse[kGroup];
  for (int p = 0; p < kParts; ++p) {
    FloatVec max = none, sum = hn::Zero(d);
    for (std::int64_t n = 0; n < splits; ++n) {
      max = hn::Max(max, hn::LoadU(d, first_slot + n * layout.floats() + layout.max() + p * kLanes));
    }
    const FloatVec finite_max = hn::IfThenZeroElse(hn::Eq(max, none), max);
    for (std::int64_t n = 0; n < splits; ++n) {
      const float* slot = first_slot + n * layout.floats() + p * kLanes;
      const FloatVec weight = power_of_two(hn::Sub(hn::LoadU(d, slot + layout.max()), finite_max));
      sum = hn::MulAdd(weight, hn::LoadU(d, slot + layout.sum()), sum);
    }
    const FloatMask seen = hn::Gt(sum, hn::Zero(d));
    const FloatVec safe = hn::IfThenElse(seen, sum, hn::Set(d, 1.0f));
    hn::Store(finite_max, d, shift + p * kLanes);
    hn::Store(hn::IfThenElseZero(seen, hn::Div(hn::Set(d, kept_scale), safe)), d, factor + p * kLanes);
    hn::Store(hn::IfThenElse(seen, hn::MulAdd(max, hn::Set(d, kLn2), hn::Log(d, safe)), none), d, lse + p * kLanes);
  }

  const std::int64_t first = group * kGroup, queries = std::min<std::int64_t>(kGroup, globals - first);
  for (std::int64_t i = 0; i < queries; ++i) {
    float* out = args.out.data + (query_row + first + i) * args.out.stride + head * size;
    std::fill_n(out, size, 0.0f);
    for (std::int64_t n = 0; n < splits; ++n) {
      const float* slot = first_slot + n * layout.floats();
      const float split_max = slot[layout.max() + i];
      if (!(split_max > -std::numeric_limits<float>::infinity())) continue;  // saw nothing: its output was not written
      const float weight = hn::GetLane(power_of_two(hn::Set(d, split_max - shift[i]))) * factor[i];
      for (std::int64_t c = 0; c < size; ++c) out[c] += weight * slot[i * layout.stride + c];
    }
  }
  std::copy_n(lse, queries, args.lse + head * in.q.rows + query_row + first);
}

// Calls body(example, head, group) for every group of every head, in parallel.
template <typename Body>
void for_each_group(const GlobalAttentionInputs& in, const Plan& plan, Body&& body) {
  for (std::int64_t b = 0; b < in.tiles->g2g.examples(); ++b) {
    const std::int64_t groups = plan.groups_of(b);
    parallel_for(in.heads * groups, [&](std::int64_t task) HWY_ATTR { body(b, task / groups, task % groups); });
  }
}

void forward(const GlobalAttentionForward& args) {
  const GlobalAttentionInputs& in = args.inputs;
  const Plan plan(in, false);
  const std::int64_t thread_bytes = thread_scratch_bytes(in, plan, false);
  std::byte* const block = static_cast<std::byte*>(args.scratch);
  float* const slots = reinterpret_cast<float*>(block + thread_count() * thread_bytes);
  parallel_for(plan.task_count(), [&](std::int64_t task, int thread) HWY_ATTR {
    const Split s = plan.split(task);
    Arena arena(block + thread * thread_bytes);
    GlobalScratch scratch(arena, in, plan, false);
    load_split(in, s, scratch);
    const TileUse tiles(scratch.head.bf16);
    forward_split(args, s, plan.slot(s.example), scratch, slots + s.slot);
    hwy::FlushStream();  // scores written past the caches are there before the task counts as done
  });
  for_each_group(in, plan, [&](std::int64_t b, std::int64_t head, std::int64_t group) HWY_ATTR {
    combine_group(args, plan, b, head, group, slots + plan.slot_base(b));
  });
}

// Pass 1 of backward: one split against all groups; writes the gradients of its keys, leaves dq and the tables'
// gradients in the slot.
void backward_split(const GlobalAttentionBackward& args, const Split& s, const SlotLayout& layout,
                    GlobalScratch& scratch, float* slot) {
  const GlobalAttentionInputs& in = args.inputs;
  const HeadContext& head = scratch.head;
  const TypeScoreGradients scores[2] = {of_head(args.g2g, in.tiles->g2g, s.head),
                                        of_head(args.g2l, in.tiles->g2l, s.head)};
  std::fill_n(scratch.group.drel, head.labels * head.stride, 0.0f);
  std::fill_n(scratch.group.dbias, head.labels * kGroup, 0.0f);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    float* dq = slot + g * layout.group_floats();
    const std::int64_t count = collect_parts(tiles_of(in, s.type), s.first_group + g, s.type, scratch.panel,
                                             kBackwardKeys, scratch.group.parts);
    if (count == 0) {
      std::fill_n(dq, kGroup * layout.stride, 0.0f);
      continue;
    }
    const std::int64_t first = g * kGroup, row = s.query_row + first;
    const std::int64_t queries = std::min<std::int64_t>(kGroup, s.globals - first);
    load_group(in.q, s.head, head, row, queries, scratch.group.q_rows, scratch.group.q_lanes);
    load_group(args.dout, s.head, head, row, queries, scratch.group.dout_rows, scratch.group.dout_lanes);
    FloatVec lse[kParts], delta[kParts];
    load_row_statistics(head, s.head, args.out, args.lse + s.head * in.q.rows, row, queries, scratch.group.dout_rows,
                        lse, delta);
    backward_group(head, scores, first, scratch.group.parts, count, scratch.group, lse, delta);
    std::copy_n(scratch.group.out, kGroup * layout.stride, dq);
  }

  const MutableRows& dk = s.type == 0 ? args.dk : args.dlk;
  const MutableRows& dv = s.type == 0 ? args.dv : args.dlv;
  const std::int64_t size = in.head_size;
  scratch.panel.require(s.end - s.begin);  // all keys are written, seen or not
  for (std::int64_t key = 0; key < s.end - s.begin; ++key) {
    const std::int64_t row = s.key_row + s.begin + key;
    std::copy_n(scratch.panel.dk(key), size, head_row(dk, row, s.head, size));
    std::copy_n(scratch.panel.dv(key), size, head_row(dv, row, s.head, size));
  }
  std::copy_n(scratch.group.drel, head.labels * head.stride, slot + layout.drel());
  for (std::int64_t r = 0; r < head.labels; ++r) {
    float total = 0.0f;
    for (int i = 0; i < kGroup; ++i) total += scratch.group.dbias[r * kGroup + i];
    slot[layout.dbias() + r] = total;
  }
}

// Pass 2 of backward: dq of one group, over its splits in order.
void sum_dq(const GlobalAttentionBackward& args, const Plan& plan, std::int64_t b, std::int64_t head,
            std::int64_t group, const float* slots) {
  const GlobalAttentionInputs& in = args.inputs;
  const SlotLayout layout = plan.slot(b);
  const std::int64_t splits = plan.splits_of_example(b), size = in.head_size;
  const std::int64_t query_row = in.tiles->g2g.query_offsets[static_cast<std::size_t>(b)];
  const std::int64_t globals = in.tiles->g2g.query_offsets[static_cast<std::size_t>(b) + 1] - query_row;
  const std::int64_t first = group * kGroup, queries = std::min<std::int64_t>(kGroup, globals - first);
  for (std::int64_t i = 0; i < queries; ++i) {
    float* dq = args.dq.data + (query_row + first + i) * args.dq.stride + head * size;
    std::fill_n(dq, size, 0.0f);
    for (std::int64_t n = 0; n < splits; ++n) {
      const float* slot = slots + (head * splits + n) * layout.floats() + group * layout.group_floats();
      for (std::int64_t c = 0; c < size; ++c) dq[c] += slot[i * layout.stride + c];
    }
  }
}

void backward(const GlobalAttentionBackward& args) {
  const GlobalAttentionInputs& in = args.inputs;
  const Plan plan(in, true);
  const std::int64_t thread_bytes = thread_scratch_bytes(in, plan, true);
  std::byte* const block = static_cast<std::byte*>(args.scratch);
  float* const slots = reinterpret_cast<float*>(block + thread_count() * thread_bytes);
  parallel_for(plan.task_count(), [&](std::int64_t task, int thread) HWY_ATTR {
    const Split s = plan.split(task);
    Arena arena(block + thread * thread_bytes);
    GlobalScratch scratch(arena, in, plan, true);
    load_split(in, s, scratch);
    backward_split(args, s, plan.slot(s.example), scratch, slots + s.slot);
    hwy::FlushStream();  // scores written past the caches are there before the task counts as done
  });
  for_each_group(in, plan, [&](std::int64_t b, std::int64_t head, std::int64_t group) HWY_ATTR {
    sum_dq(args, plan, b, head, group, slots + plan.slot_base(b));
  });
  parallel_for(in.heads, [&](std::int64_t head) HWY_ATTR {
    for (std::int64_t b = 0; b < in.tiles->g2g.examples(); ++b) {
      const SlotLayout layout = plan.slot(b);
      const std::int64_t splits = plan.splits_of_example(b);
      for (std::int64_t n = 0; n < splits && layout.labels > 0; ++n) {
        const float* slot = slots + plan.slot_base(b) + (head * splits + n) * layout.floats();
        add_table_gradients(slot + layout.drel(), slot + layout.dbias(), layout.stride, in.heads, head, in.head_size,
                            in.relative.labels, args.drelative);
      }
    }
  });
}

std::int64_t scratch_bytes(const GlobalAttentionInputs& inputs, bool backward) {
  const Plan plan(inputs, backward);
  return thread_count() * thread_scratch_bytes(inputs, plan, backward) +
         plan.slot_floats() * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t forward_scratch(const GlobalAttentionInputs& inputs) {
  return scratch_bytes(inputs, false);
}
std::int64_t backward_scratch(const GlobalAttentionInputs& inputs) {
  return scratch_bytes(inputs, true);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::sparse {

namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(forward_scratch);
HWY_EXPORT(backward_scratch);
}  // namespace

void register_global_attention_cpu() {
  global_attention_forward_slot.fill(Device::cpu, [](const GlobalAttentionForward& a) {
    HWY_DYNAMIC_DISPATCH(forward)(a);
  });
  global_attention_backward_slot.fill(Device::cpu, [](const GlobalAttentionBackward& a) {
    HWY_DYNAMIC_DISPATCH(backward)(a);
  });
  global_attention_forward_scratch_slot.fill(
      Device::cpu, [](const GlobalAttentionInputs& in) { return HWY_DYNAMIC_DISPATCH(forward_scratch)(in); });
  global_attention_backward_scratch_slot.fill(
      Device::cpu, [](const GlobalAttentionInputs& in) { return HWY_DYNAMIC_DISPATCH(backward_scratch)(in); });
}

}  // namespace etc::sparse
#endif  // HWY_ONCE
