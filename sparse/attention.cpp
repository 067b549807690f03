#include "sparse/attention.h"

#include <cmath>

#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention_checks.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Each device has one forward and one backward for all operators. The only difference between ETC's two operators
// (whether queries or keys are divided among threads) is handled within the device's kernel by Partition.
KernelSlot<void(const AttentionForward&)> attention_forward_slot{"attention"};
KernelSlot<void(const AttentionBackward&)> attention_backward_slot{"attention backward"};
KernelSlot<std::int64_t(const AttentionInputs&)> attention_forward_scratch_slot{"attention"};
KernelSlot<std::int64_t(const AttentionInputs&)> attention_backward_scratch_slot{"attention backward"};

namespace {

// The checks that a scratch-size call also needs.
AttentionChecks check_sizes(const AttentionInputs& in) {
  // Only the tiles know which operator this is.
  if (in.tiles == nullptr) fail("attention", "tiles: expected those of the batch, got null (build_long_tiles, …)");
  const AttentionTiles& tiles = *in.tiles;
  // A task copies the keys within the radius of its queries, and no others.
  if (tiles.op->partition == Partition::queries && !tiles.types[0].window) {
    fail(tiles.op->name,
         "tiles of {}: expected a window, since this operator is divided by queries (Partition::keys takes any type)",
         tiles.types[0].type.name);
  }
  const AttentionChecks checks{tiles, in.heads, in.head_size, in.type};
  checks.sizes();
  return checks;
}

}  // namespace

float score_scale(const AttentionInputs& in) {
  return in.scale > 0.0f ? in.scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(in.head_size)));
}

bool is_pairwise(const AttentionInputs& in) {
  return in.relative.joins() || in.relative.rows() > kMostListedLabels || in.tiles->types[0].heads > 1;
}

ElementType row_type(Device device, const AttentionInputs& in) {
  if (!keeps_bf16(device, in.compute)) return ElementType::fp32;
  // The CPU packs rows anyway, kGroup components at a time; GPU kernels read bf16 rows only for some widths and tables.
  const bool as_they_lie = device == Device::cpu
                               ? in.head_size % kGroup == 0
                               : !is_pairwise(in) && in.head_size == bf16_width(static_cast<int>(in.head_size));
  return as_they_lie ? ElementType::bf16 : ElementType::fp32;
}

namespace {

AttentionChecks check_inputs(Device device, const AttentionInputs& in) {
  const AttentionChecks checks = check_sizes(in);
  if (in.type == ElementType::bf16 && row_type(device, in) != ElementType::bf16) {
    fail(in.tiles->op->name, "expected q, k and v in fp32 on {} with these tables and heads of D={}, got bf16",
         device_name(device), in.head_size);
  }
  checks.query_rows("q", in.q);
  for (int t = 0; t < kKeySets; ++t) {
    checks.key_rows("k", t, in.keys[t].k);
    checks.key_rows("v", t, in.keys[t].v);
  }
  checks.scale(in.scale);
  checks.table(in.relative);
  checks.dropout(in.dropout);
  checks.compute(device, in);
  return checks;
}

}  // namespace

void attention_forward(Device device, const AttentionForward& args) {
  const AttentionChecks checks = check_inputs(device, args.inputs);
  const std::int64_t queries = args.inputs.q.rows;
  checks.query_rows("out", args.out);
  // Everything is checked before anything is written.
  checks.pointer("lse", args.lse, args.inputs.heads * queries);
  for (int t = 0; t < kKeySets; ++t) checks.scores(t, args.scores[static_cast<std::size_t>(t)]);
  checks.pointer("scratch", args.scratch, queries);
  // Each operator has its own lines in the profiler's table.
  const AttentionOperator& op = *args.inputs.tiles->op;
  const bool bf16 = args.inputs.compute == ComputeType::bf16;
  const profiler::Scope profiled(bf16 ? op.bf16_name : op.name, checks.work(2));
  attention_forward_slot(device, args);
}

void attention_backward(Device device, const AttentionBackward& args) {
  const AttentionChecks checks = check_inputs(device, args.inputs);
  std::int64_t rows = args.inputs.q.rows;
  checks.query_rows("out", args.out);
  checks.pointer("lse", args.lse, args.inputs.heads * rows);
  checks.query_rows("dout", args.dout);
  checks.query_rows("dq", args.dq);
  for (int t = 0; t < kKeySets; ++t) {
    checks.key_rows("dk", t, args.dkeys[t].dk);
    checks.key_rows("dv", t, args.dkeys[t].dv);
    checks.scores(t, args.scores[static_cast<std::size_t>(t)]);
    // Keys without queries still get their (zero) gradients written.
    rows += args.inputs.keys[t].k.rows;
  }
  checks.table_gradients(args.inputs.relative, args.drelative);
  checks.pointer("scratch", args.scratch, rows);
  // Five products: q·k (or C), dout·v, and one each for dq, dk, dv.
  const profiler::Scope profiled(args.inputs.tiles->op->backward_name, checks.work(5));
  attention_backward_slot(device, args);
}

std::int64_t attention_forward_scratch_bytes(Device device, const AttentionInputs& inputs) {
  check_sizes(inputs);
  return attention_forward_scratch_slot(device, inputs);
}

std::int64_t attention_backward_scratch_bytes(Device device, const AttentionInputs& inputs) {
  check_sizes(inputs);
  return attention_backward_scratch_slot(device, inputs);
}

}  // namespace etc::sparse
