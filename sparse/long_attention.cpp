#include "sparse/long_attention.h"

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention_checks.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

KernelSlot<void(const LongAttentionForward&)> long_attention_forward_slot{"long_attention"};
KernelSlot<void(const LongAttentionBackward&)> long_attention_backward_slot{"long_attention backward"};
KernelSlot<std::int64_t(const LongAttentionInputs&)> long_attention_forward_scratch_slot{"long_attention"};
KernelSlot<std::int64_t(const LongAttentionInputs&)> long_attention_backward_scratch_slot{"long_attention backward"};

namespace {

AttentionChecks check_inputs(const LongAttentionInputs& in) {
  const AttentionChecks checks{"long_attention", in.heads, in.head_size};
  checks.sizes();
  if (in.tiles == nullptr) fail("long_attention", "tiles: expected those of the batch, got null (build_long_tiles)");
  const std::int64_t longs = in.tiles->l2l.queries(), globals = in.tiles->l2g.keys();
  checks.rows("q", in.q, "T", longs);
  checks.rows("k", in.k, "T", longs);
  checks.rows("v", in.v, "T", longs);
  checks.rows("gk", in.gk, "U", globals);
  checks.rows("gv", in.gv, "U", globals);
  checks.table(in.relative, in.tiles->l2l, in.tiles->l2g);
  checks.dropout(in.dropout);
  return checks;
}

void check_scratch_inputs(const LongAttentionInputs& in) {
  AttentionChecks{"long_attention", in.heads, in.head_size}.sizes();
  if (in.tiles == nullptr) fail("long_attention", "tiles: expected those of the batch, got null (build_long_tiles)");
}

}  // namespace

void long_attention_forward(Device device, const LongAttentionForward& args) {
  const AttentionChecks checks = check_inputs(args.inputs);
  checks.forward_compute(device, args.inputs.compute, args.inputs.dropout);
  const std::int64_t longs = args.inputs.q.rows;
  checks.rows("out", args.out, "T", longs);
  checks.pointer("lse", args.lse, args.inputs.heads * longs);
  checks.scores(args.inputs.tiles->l2l, args.l2l);
  checks.scores(args.inputs.tiles->l2g, args.l2g);
  checks.pointer("scratch", args.scratch, longs);
  const bool bf16 = args.inputs.compute == ComputeType::bf16;
  const profiler::Scope profiled(bf16 ? "long_attention bf16" : "long_attention",
                                 checks.work(args.inputs.tiles->l2l, args.inputs.tiles->l2g, 2));
  long_attention_forward_slot(device, args);
}

void long_attention_backward(Device device, const LongAttentionBackward& args) {
  const AttentionChecks checks = check_inputs(args.inputs);
  checks.backward_compute(device, args.inputs.compute);
  const std::int64_t longs = args.inputs.q.rows, globals = args.inputs.gk.rows;
  checks.rows("out", args.out, "T", longs);
  checks.pointer("lse", args.lse, args.inputs.heads * longs);
  checks.rows("dout", args.dout, "T", longs);
  checks.rows("dq", args.dq, "T", longs);
  checks.rows("dk", args.dk, "T", longs);
  checks.rows("dv", args.dv, "T", longs);
  checks.rows("dgk", args.dgk, "U", globals);
  checks.rows("dgv", args.dgv, "U", globals);
  checks.table_gradients(args.inputs.relative, args.drelative);
  checks.scores(args.inputs.tiles->l2l, args.l2l);
  checks.scores(args.inputs.tiles->l2g, args.l2g);
  checks.pointer("scratch", args.scratch, longs);
  const profiler::Scope profiled("long_attention_backward",
                                 checks.work(args.inputs.tiles->l2l, args.inputs.tiles->l2g, 5));
  long_attention_backward_slot(device, args);
}

std::int64_t long_attention_forward_scratch_bytes(Device device, const LongAttentionInputs& inputs) {
  check_scratch_inputs(inputs);
  return long_attention_forward_scratch_slot(device, inputs);
}

std::int64_t long_attention_backward_scratch_bytes(Device device, const LongAttentionInputs& inputs) {
  check_scratch_inputs(inputs);
  return long_attention_backward_scratch_slot(device, inputs);
}

}  // namespace etc::sparse
