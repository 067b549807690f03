// long_attention on the CPU: an example's queries in segments of kSegment, counted from its first token; a task is one
// segment of one head. A task copies the keys and values its segment can see, then goes through its groups.
//
// Backward: a task owns the gradients of the keys that only its segment sees. Those of keys near its ends, of the
// global keys and of the tables go to a slot of its own in scratch; a second pass adds the slots in order of the
// segments.
#include "sparse/long_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/cpu/long_attention_cpu.cpp"
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

#ifndef SPARSE_CPU_LONG_ATTENTION_ONCE
#define SPARSE_CPU_LONG_ATTENTION_ONCE
namespace etc::sparse {

namespace {

constexpr std::int64_t kSegment = 512;      // queries of a task; a multiple of kGroup
constexpr std::int64_t kBackwardKeys = 32;  // keys of a part in backward
static_assert(kSegment % kGroup == 0 && kBackwardKeys % kRunStep == 0);

// One segment of one head.
struct Segment {
  std::int64_t example = 0, head = 0, index = 0;
  std::int64_t length = 0, globals = 0;       // L, G
  std::int64_t long_row = 0, global_row = 0;  // of the example's first token
  std::int64_t begin = 0, end = 0;            // queries
  std::int64_t key_begin = 0, key_end = 0;    // keys they can see
  std::int64_t own_begin = 0, own_end = 0;    // of these, keys no other segment sees
  std::int64_t slot = 0;                      // backward: floats into the slots
};

std::int64_t segments_of(std::int64_t length) {
  return (length + kSegment - 1) / kSegment;
}

// Floats of one task's slot: gradients of shared window keys and of global keys (keys and values each), of the tables.
struct SlotLayout {
  std::int64_t halo_rows = 0, globals = 0, labels = 0, stride = 0;
  std::int64_t floats() const { return (2 * halo_rows + 2 * globals + labels) * stride + labels; }
  std::int64_t halo_dv() const { return halo_rows * stride; }
  std::int64_t dgk() const { return 2 * halo_rows * stride; }
  std::int64_t dgv() const { return dgk() + globals * stride; }
  std::int64_t drel() const { return dgv() + globals * stride; }
  std::int64_t dbias() const { return drel() + labels * stride; }
};

class Plan {
 public:
  explicit Plan(const LongAttentionInputs& inputs)
      : inputs_(inputs), tiles_(inputs.tiles->l2l), global_tiles_(inputs.tiles->l2g) {
    for (std::int64_t b = 0; b < tiles_.examples(); ++b) {
      const std::int64_t length = length_of(b), globals = globals_of(b);
      task_count_ += inputs.heads * segments_of(length);
      slot_floats_ += inputs.heads * segments_of(length) * slot(b).floats();
      max_window_ = std::max(max_window_, std::min(length, kSegment + 2 * tiles_.radius));
      max_globals_ = std::max(max_globals_, globals);
    }
  }

  std::int64_t task_count() const { return task_count_; }
  std::int64_t slot_floats() const { return slot_floats_; }
  std::int64_t max_window() const { return max_window_; }
  std::int64_t max_globals() const { return max_globals_; }
  std::int64_t length_of(std::int64_t b) const { return tiles_.query_offsets[at(b + 1)] - tiles_.query_offsets[at(b)]; }
  std::int64_t globals_of(std::int64_t b) const {
    return global_tiles_.key_offsets[at(b + 1)] - global_tiles_.key_offsets[at(b)];
  }

  SlotLayout slot(std::int64_t b) const {
    SlotLayout layout;
    const std::int64_t length = length_of(b);
    if (segments_of(length) > 1) layout.halo_rows = std::min({length, kSegment + 2 * tiles_.radius, 4 * tiles_.radius});
    layout.globals = globals_of(b);
    layout.labels = inputs_.relative.vectors == nullptr ? 0 : padded_rows(inputs_.relative.labels);
    layout.stride = row_stride(inputs_.head_size);
    return layout;
  }

  // Tasks run through examples, then segments, then heads: the heads of a row are neighbours in memory.
  Segment segment(std::int64_t task) const {
    std::int64_t b = 0, slot_base = 0;
    for (; task >= inputs_.heads * segments_of(length_of(b)); ++b) {
      task -= inputs_.heads * segments_of(length_of(b));
      slot_base += inputs_.heads * segments_of(length_of(b)) * slot(b).floats();
    }
    return segment(b, task % inputs_.heads, task / inputs_.heads, slot_base);
  }

  // slot_base: of the example's first slot.
  Segment segment(std::int64_t b, std::int64_t head, std::int64_t index, std::int64_t slot_base) const {
    Segment s;
    s.example = b;
    s.head = head;
    s.index = index;
    s.length = length_of(b);
    s.globals = globals_of(b);
    s.long_row = tiles_.query_offsets[at(b)];
    s.global_row = global_tiles_.key_offsets[at(b)];
    s.begin = index * kSegment;
    s.end = std::min(s.length, s.begin + kSegment);
    s.key_begin = std::max<std::int64_t>(0, s.begin - tiles_.radius);
    s.key_end = std::min(s.length, s.end + tiles_.radius);
    s.own_begin = s.begin == 0 ? 0 : std::min(s.begin + tiles_.radius, s.key_end);
    s.own_end = s.end == s.length ? s.length : std::max(s.end - tiles_.radius, s.key_begin);
    if (s.own_end <= s.own_begin) s.own_begin = s.own_end = s.key_end;
    const std::int64_t segments = segments_of(s.length);
    s.slot = slot_base + (head * segments + index) * slot(b).floats();
    return s;
  }

 private:
  static std::size_t at(std::int64_t b) { return static_cast<std::size_t>(b); }

  const LongAttentionInputs& inputs_;
  const TypeTiles& tiles_;
  const TypeTiles& global_tiles_;
  std::int64_t task_count_ = 0, slot_floats_ = 0, max_window_ = 0, max_globals_ = 0;
};

// Row of key `key` within the halo part of a segment's slot, -1 if it has none there.
std::int64_t halo_row(const Segment& s, std::int64_t key) {
  if (key < s.key_begin || key >= s.key_end || (key >= s.own_begin && key < s.own_end)) return -1;
  return key < s.own_begin ? key - s.key_begin : key - s.own_end + (s.own_begin - s.key_begin);
}

}  // namespace
}  // namespace etc::sparse
#endif  // SPARSE_CPU_LONG_ATTENTION_ONCE

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One thread's scratch.
struct LongScratch {
  HeadContext head;
  KeyPanel window, globals;
  GroupScratch group;

  LongScratch(Arena& arena, const LongAttentionInputs& inputs, const Plan& plan, bool backward) {
    const TypeTiles& l2l = inputs.tiles->l2l;
    const TypeTiles& l2g = inputs.tiles->l2g;
    head = HeadContext::take(arena, inputs.head_size, inputs.relative, inputs.compute);
    window = KeyPanel::take(arena, plan.max_window(), head.stride, backward, inputs.compute);
    globals = KeyPanel::take(arena, plan.max_globals(), head.stride, backward, inputs.compute);
    const std::int64_t all = l2l.max_group_columns + l2g.max_group_columns;
    const std::int64_t part_keys = backward ? kBackwardKeys : std::max<std::int64_t>(all, kRunStep);
    group = GroupScratch::take(arena, head, part_keys, max_parts(l2l, part_keys) + max_parts(l2g, part_keys), backward);
  }
};

std::int64_t thread_scratch_bytes(const LongAttentionInputs& inputs, const Plan& plan, bool backward) {
  Arena counter(nullptr);
  LongScratch scratch(counter, inputs, plan, backward);
  return counter.used();
}

// Prepares what the task's groups share.
void load_segment(const LongAttentionInputs& in, const Segment& s, LongScratch& scratch) {
  scratch.head.load(in.relative, in.heads, s.head);
  scratch.head.set_dropout(in.dropout, DropoutSite::long_attention, s.example, s.head);
  scratch.window.assign(in.k, in.v, s.head, in.head_size, s.long_row, s.key_begin, s.key_end, 0);
  // In dropout's numbering l2g keys come after the l2l ones.
  scratch.globals.assign(in.gk, in.gv, s.head, in.head_size, s.global_row, 0, s.globals, s.length);
  if (scratch.head.bf16 != nullptr) load_bf16_task(scratch.head);
}

std::int64_t parts_of_group(const LongAttentionInputs& in, std::int64_t group_in_example, std::int64_t example,
                            LongScratch& scratch, std::int64_t max_keys) {
  const std::int64_t group = in.tiles->l2l.group_offsets[static_cast<std::size_t>(example)] + group_in_example;
  Part* parts = scratch.group.parts;
  const std::int64_t count = collect_parts(in.tiles->l2l, group, 0, scratch.window, max_keys, parts);
  return count + collect_parts(in.tiles->l2g, group, 1, scratch.globals, max_keys, parts + count);
}

// out = accumulated / sum, lse = max ln2 + log(sum); rows without a visible key: 0 and -inf.
void finish_group(const LongAttentionForward& args, const Segment& s, std::int64_t first_query, std::int64_t queries,
                  const LongScratch& scratch, const FloatVec* max, const FloatVec* sum) {
  const FloatTag d;
  HWY_ALIGN float factor[kGroup];
  HWY_ALIGN float lse[kGroup];
  for (int p = 0; p < kParts; ++p) {
    const FloatMask seen = hn::Gt(sum[p], hn::Zero(d));
    const FloatVec safe = hn::IfThenElse(seen, sum[p], hn::Set(d, 1.0f));
    hn::Store(hn::IfThenElseZero(seen, hn::Div(hn::Set(d, scratch.head.kept_scale), safe)), d, factor + p * kLanes);
    const FloatVec value = hn::MulAdd(max[p], hn::Set(d, kLn2), hn::Log(d, safe));
    hn::Store(hn::IfThenElse(seen, value, hn::Set(d, -std::numeric_limits<float>::infinity())), d, lse + p * kLanes);
  }
  const std::int64_t row = s.long_row + first_query;
  store_group(scratch.group.out, scratch.head, factor, args.out, s.head, row, queries,
              streams_rows(args.out, args.inputs.head_size));
  std::copy_n(lse, queries, args.lse + s.head * args.inputs.q.rows + row);
}

// What this group will write and the next one will read; its arithmetic hides the time.
void rows_around(const LongAttentionForward& args, const Segment& s, std::int64_t first_query, const KeyPanel& window,
                 RowsAhead& ahead) {
  const Rows& q = args.inputs.q;
  const std::int64_t size = args.inputs.head_size, row = s.long_row + first_query, end = s.long_row + s.end;
  ahead.clear();
  if (!streams_rows(args.out, size)) {
    ahead.add(head_row(args.out, row, s.head, size), args.out.stride, std::min<std::int64_t>(kGroup, end - row), size,
              true);
  }
  ahead.add(head_row(q, row + kGroup, s.head, size), q.stride, std::min<std::int64_t>(kGroup, end - row - kGroup), size,
            false);
  if (window.filled() > 0) window.add_rows_to(ahead, window.filled(), window.filled() + kTilePairs);
}

void forward(const LongAttentionForward& args) {
  const LongAttentionInputs& in = args.inputs;
  const Plan plan(in);
  const std::int64_t thread_bytes = thread_scratch_bytes(in, plan, false);
  parallel_for(plan.task_count(), [&](std::int64_t task, int thread) HWY_ATTR {
    const Segment s = plan.segment(task);
    Arena arena(static_cast<std::byte*>(args.scratch) + thread * thread_bytes);
    LongScratch scratch(arena, in, plan, false);
    load_segment(in, s, scratch);
    const TileUse tiles(scratch.head.bf16);
    const TypeScores scores[2] = {of_head(args.l2l, in.tiles->l2l, s.head), of_head(args.l2g, in.tiles->l2g, s.head)};
    RowsAhead ahead;
    for (std::int64_t first = s.begin; first < s.end; first += kGroup) {
      const std::int64_t queries = std::min<std::int64_t>(kGroup, s.end - first);
      rows_around(args, s, first, scratch.window, ahead);
      load_queries(in.q, s.head, scratch.head, s.long_row + first, queries, scratch.group);
      const std::int64_t count =
          parts_of_group(in, first / kGroup, s.example, scratch, std::numeric_limits<std::int32_t>::max());
      FloatVec max[kParts], sum[kParts];
      forward_group(scratch.head, scores, first, scratch.group.parts, count, ahead, scratch.group, max, sum);
      finish_group(args, s, first, queries, scratch, max, sum);
    }
    hwy::FlushStream();  // scores written past the caches are there before the task counts as done
  });
}

// Gradients of window keys [begin, end) of a task: what it owns to its place, the rest to its slot.
void flush_window(const LongAttentionBackward& args, const Segment& s, const SlotLayout& layout,
                  const LongScratch& scratch, std::int64_t begin, std::int64_t end, float* slot) {
  const std::int64_t size = scratch.head.head_size, stride = scratch.head.stride;
  for (std::int64_t key = begin; key < end; ++key) {
    const float* dk = scratch.window.dk(key - s.key_begin);
    const float* dv = scratch.window.dv(key - s.key_begin);
    const std::int64_t halo = halo_row(s, key);
    if (halo >= 0) {
      std::copy_n(dk, stride, slot + halo * stride);
      std::copy_n(dv, stride, slot + layout.halo_dv() + halo * stride);
    } else {
      std::copy_n(dk, size, head_row(args.dk, s.long_row + key, s.head, size));
      std::copy_n(dv, size, head_row(args.dv, s.long_row + key, s.head, size));
    }
  }
}

// Gradients of global keys and tables of a task to its slot.
void flush_shared(const Segment& s, const SlotLayout& layout, const LongScratch& scratch, float* slot) {
  const std::int64_t stride = scratch.head.stride, labels = scratch.head.labels;
  std::copy_n(scratch.globals.dk(0), s.globals * stride, slot + layout.dgk());
  std::copy_n(scratch.globals.dv(0), s.globals * stride, slot + layout.dgv());
  std::copy_n(scratch.group.drel, labels * stride, slot + layout.drel());
  for (std::int64_t r = 0; r < labels; ++r) {
    float total = 0.0f;
    for (int i = 0; i < kGroup; ++i) total += scratch.group.dbias[r * kGroup + i];
    slot[layout.dbias() + r] = total;
  }
}

// Asks for what this group will write and the next one will read.
void prefetch_around(const LongAttentionBackward& args, const Segment& s, std::int64_t first_query,
                     std::int64_t flush_begin, std::int64_t flush_end) {
  const std::int64_t size = args.inputs.head_size, row = s.long_row + first_query, end = s.long_row + s.end;
  const std::int64_t next = std::min(row + kGroup, end), after = std::min(row + 2 * kGroup, end);
  prefetch_rows(args.dq, row, next, s.head, size);
  prefetch_rows(args.dk, s.long_row + flush_begin, s.long_row + flush_end, s.head, size);
  prefetch_rows(args.dv, s.long_row + flush_begin, s.long_row + flush_end, s.head, size);
  prefetch_rows(args.inputs.q, next, after, s.head, size);
  prefetch_rows(args.dout, next, after, s.head, size);
  prefetch_rows(args.out, next, after, s.head, size);
}

void backward_segment(const LongAttentionBackward& args, const Segment& s, const SlotLayout& layout,
                      LongScratch& scratch, float* slot) {
  const LongAttentionInputs& in = args.inputs;
  const HeadContext& head = scratch.head;
  const TypeScoreGradients scores[2] = {of_head(args.l2l, in.tiles->l2l, s.head),
                                        of_head(args.l2g, in.tiles->l2g, s.head)};
  std::fill_n(scratch.group.drel, head.labels * head.stride, 0.0f);
  std::fill_n(scratch.group.dbias, head.labels * kGroup, 0.0f);
  HWY_ALIGN float ones[kGroup];
  std::fill_n(ones, kGroup, 1.0f);
  scratch.globals.require(s.globals);  // all of them are flushed, seen or not
  std::int64_t flushed = s.key_begin;
  for (std::int64_t first = s.begin; first < s.end; first += kGroup) {
    const std::int64_t queries = std::min<std::int64_t>(kGroup, s.end - first), row = s.long_row + first;
    // After this group nobody sees the keys more than the radius behind the next one.
    const bool last = first + kGroup >= s.end;
    const std::int64_t done = last ? s.key_end : std::max(flushed, first + kGroup - in.tiles->l2l.radius);
    prefetch_around(args, s, first, flushed, done);
    load_group(in.q, s.head, head, row, queries, scratch.group.q_rows, scratch.group.q_lanes);
    load_group(args.dout, s.head, head, row, queries, scratch.group.dout_rows, scratch.group.dout_lanes);
    FloatVec lse[kParts], delta[kParts];
    load_row_statistics(head, s.head, args.out, args.lse + s.head * in.q.rows, row, queries, scratch.group.dout_rows,
                        lse, delta);
    const std::int64_t count = parts_of_group(in, first / kGroup, s.example, scratch, kBackwardKeys);
    backward_group(head, scores, first, scratch.group.parts, count, scratch.group, lse, delta);
    store_group(scratch.group.out, head, ones, args.dq, s.head, row, queries, false);
    scratch.window.require(done - s.key_begin);
    flush_window(args, s, layout, scratch, flushed, done, slot);
    flushed = done;
  }
  flush_shared(s, layout, scratch, slot);
}

// Window keys that several segments see: the sum of their halos. A task adds up the keys among its own queries.
void sum_halos(const LongAttentionBackward& args, const Plan& plan, const Segment& s, const float* slots) {
  const SlotLayout layout = plan.slot(s.example);
  const std::int64_t segments = segments_of(s.length), size = args.inputs.head_size;
  if (segments == 1) return;
  const std::int64_t slot_base = s.slot - (s.head * segments + s.index) * layout.floats();
  const std::int64_t reach = (args.inputs.tiles->l2l.radius + kSegment - 1) / kSegment;  // segments to each side
  const auto row_of = [&](const MutableRows& rows, std::int64_t key) {
    return rows.data + (s.long_row + key) * rows.stride + s.head * size;
  };
  for (std::int64_t key = s.begin; key < s.end; ++key) {
    if (halo_row(s, key) < 0) continue;
    std::fill_n(row_of(args.dk, key), size, 0.0f);
    std::fill_n(row_of(args.dv, key), size, 0.0f);
  }
  for (std::int64_t n = std::max<std::int64_t>(0, s.index - reach); n <= std::min(segments - 1, s.index + reach); ++n) {
    const Segment other = plan.segment(s.example, s.head, n, slot_base);
    for (std::int64_t key = std::max(s.begin, other.key_begin); key < std::min(s.end, other.key_end); ++key) {
      const std::int64_t halo = halo_row(other, key);
      if (halo < 0) continue;
      const float* from_k = slots + other.slot + halo * layout.stride;
      const float* from_v = from_k + layout.halo_dv();
      float* dk = row_of(args.dk, key);
      float* dv = row_of(args.dv, key);
      for (std::int64_t d = 0; d < size; ++d) dk[d] += from_k[d];
      for (std::int64_t d = 0; d < size; ++d) dv[d] += from_v[d];
    }
  }
}

// dgk, dgv of one example and head: over its segments in order.
void sum_globals(const LongAttentionBackward& args, const Plan& plan, std::int64_t example, std::int64_t head,
                 std::int64_t slot_base, const float* slots) {
  const SlotLayout layout = plan.slot(example);
  const std::int64_t segments = segments_of(plan.length_of(example)), size = args.inputs.head_size;
  const std::int64_t first_row = args.inputs.tiles->l2g.key_offsets[static_cast<std::size_t>(example)];
  for (std::int64_t g = 0; g < layout.globals; ++g) {
    float* dgk = args.dgk.data + (first_row + g) * args.dgk.stride + head * size;
    float* dgv = args.dgv.data + (first_row + g) * args.dgv.stride + head * size;
    std::fill_n(dgk, size, 0.0f);
    std::fill_n(dgv, size, 0.0f);
    for (std::int64_t n = 0; n < segments; ++n) {
      const float* slot = slots + slot_base + (head * segments + n) * layout.floats() + g * layout.stride;
      for (std::int64_t d = 0; d < size; ++d) dgk[d] += slot[layout.dgk() + d];
      for (std::int64_t d = 0; d < size; ++d) dgv[d] += slot[layout.dgv() + d];
    }
  }
}

void backward(const LongAttentionBackward& args) {
  const LongAttentionInputs& in = args.inputs;
  const Plan plan(in);
  const std::int64_t thread_bytes = thread_scratch_bytes(in, plan, true);
  std::byte* const block = static_cast<std::byte*>(args.scratch);
  float* const slots = reinterpret_cast<float*>(block + thread_count() * thread_bytes);

  // Pass 1: every segment; leaves dq, the gradients of keys only it sees, and its slot.
  parallel_for(plan.task_count(), [&](std::int64_t task, int thread) HWY_ATTR {
    const Segment s = plan.segment(task);
    Arena arena(block + thread * thread_bytes);
    LongScratch scratch(arena, in, plan, true);
    load_segment(in, s, scratch);
    backward_segment(args, s, plan.slot(s.example), scratch, slots + s.slot);
    hwy::FlushStream();  // scores written past the caches are there before the task counts as done
  });

  // Pass 2: sums over slots, always in order of the segments.
  parallel_for(plan.task_count(),
               [&](std::int64_t task) HWY_ATTR { sum_halos(args, plan, plan.segment(task), slots); });
  const std::int64_t examples = in.tiles->l2l.examples();
  parallel_for(in.heads, [&](std::int64_t head) HWY_ATTR {
    std::int64_t slot_base = 0;
    for (std::int64_t b = 0; b < examples; ++b) {
      sum_globals(args, plan, b, head, slot_base, slots);
      const SlotLayout layout = plan.slot(b);
      const std::int64_t segments = segments_of(plan.length_of(b));
      for (std::int64_t n = 0; n < segments && layout.labels > 0; ++n) {
        const float* slot = slots + slot_base + (head * segments + n) * layout.floats();
        add_table_gradients(slot + layout.drel(), slot + layout.dbias(), layout.stride, in.heads, head, in.head_size,
                            in.relative.labels, args.drelative);
      }
      slot_base += in.heads * segments * layout.floats();
    }
  });
}

std::int64_t forward_scratch(const LongAttentionInputs& inputs) {
  return thread_count() * thread_scratch_bytes(inputs, Plan(inputs), false);
}

std::int64_t backward_scratch(const LongAttentionInputs& inputs) {
  const Plan plan(inputs);
  return thread_count() * thread_scratch_bytes(inputs, plan, true) +
         plan.slot_floats() * static_cast<std::int64_t>(sizeof(float));
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

void register_long_attention_cpu() {
  long_attention_forward_slot.fill(Device::cpu, [](const LongAttentionForward& a) {
    HWY_DYNAMIC_DISPATCH(forward)(a);
  });
  long_attention_backward_slot.fill(Device::cpu, [](const LongAttentionBackward& a) {
    HWY_DYNAMIC_DISPATCH(backward)(a);
  });
  long_attention_forward_scratch_slot.fill(
      Device::cpu, [](const LongAttentionInputs& in) { return HWY_DYNAMIC_DISPATCH(forward_scratch)(in); });
  long_attention_backward_scratch_slot.fill(
      Device::cpu, [](const LongAttentionInputs& in) { return HWY_DYNAMIC_DISPATCH(backward_scratch)(in); });
}

}  // namespace etc::sparse
#endif  // HWY_ONCE
