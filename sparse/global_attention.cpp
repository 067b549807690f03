#include "sparse/global_attention.h"

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention_checks.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

KernelSlot<void(const GlobalAttentionForward&)> global_attention_forward_slot{"global_attention"};
KernelSlot<void(const GlobalAttentionBackward&)> global_attention_backward_slot{"global_attention backward"};
KernelSlot<std::int64_t(const GlobalAttentionInputs&)> global_attention_forward_scratch_slot{"global_attention"};
KernelSlot<std::int64_t(const GlobalAttentionInputs&)> global_attention_backward_scratch_slot{
    "global_attention backward"};

namespace {

AttentionChecks check_inputs(const GlobalAttentionInputs& in) {
  const AttentionChecks checks{"global_attention", in.heads, in.head_size};
  checks.sizes();
  if (in.tiles == nullptr)
    fail("global_attention", "tiles: expected those of the batch, got null (build_global_tiles)");
  const std::int64_t globals = in.tiles->g2g.queries(), longs = in.tiles->g2l.keys();
  checks.rows("q", in.q, "U", globals);
  checks.rows("k", in.k, "U", globals);
  checks.rows("v", in.v, "U", globals);
  checks.rows("lk", in.lk, "T", longs);
  checks.rows("lv", in.lv, "T", longs);
  checks.table(in.relative, in.tiles->g2g, in.tiles->g2l);
  checks.dropout(in.dropout);
  return checks;
}

void check_scratch_inputs(const GlobalAttentionInputs& in) {
  AttentionChecks{"global_attention", in.heads, in.head_size}.sizes();
  if (in.tiles == nullptr)
    fail("global_attention", "tiles: expected those of the batch, got null (build_global_tiles)");
}

}  // namespace

void global_attention_forward(Device device, const GlobalAttentionForward& args) {
  const AttentionChecks checks = check_inputs(args.inputs);
  checks.forward_compute(device, args.inputs.compute, args.inputs.dropout);
  const std::int64_t globals = args.inputs.q.rows;
  checks.rows("out", args.out, "U", globals);
  checks.pointer("lse", args.lse, args.inputs.heads * globals);
  checks.scores(args.inputs.tiles->g2g, args.g2g);
  checks.scores(args.inputs.tiles->g2l, args.g2l);
  checks.pointer("scratch", args.scratch, globals);
  const bool bf16 = args.inputs.compute == ComputeType::bf16;
  const profiler::Scope profiled(bf16 ? "global_attention bf16" : "global_attention",
                                 checks.work(args.inputs.tiles->g2g, args.inputs.tiles->g2l, 2));
  global_attention_forward_slot(device, args);
}

void global_attention_backward(Device device, const GlobalAttentionBackward& args) {
  const AttentionChecks checks = check_inputs(args.inputs);
  checks.backward_compute(device, args.inputs.compute);
  const std::int64_t globals = args.inputs.q.rows, longs = args.inputs.lk.rows;
  checks.rows("out", args.out, "U", globals);
  checks.pointer("lse", args.lse, args.inputs.heads * globals);
  checks.rows("dout", args.dout, "U", globals);
  checks.rows("dq", args.dq, "U", globals);
  checks.rows("dk", args.dk, "U", globals);
  checks.rows("dv", args.dv, "U", globals);
  checks.rows("dlk", args.dlk, "T", longs);
  checks.rows("dlv", args.dlv, "T", longs);
  checks.table_gradients(args.inputs.relative, args.drelative);
  checks.scores(args.inputs.tiles->g2g, args.g2g);
  checks.scores(args.inputs.tiles->g2l, args.g2l);
  checks.pointer("scratch", args.scratch, globals + longs);
  const profiler::Scope profiled("global_attention_backward",
                                 checks.work(args.inputs.tiles->g2g, args.inputs.tiles->g2l, 5));
  global_attention_backward_slot(device, args);
}

std::int64_t global_attention_forward_scratch_bytes(Device device, const GlobalAttentionInputs& inputs) {
  check_scratch_inputs(inputs);
  return global_attention_forward_scratch_slot(device, inputs);
}

std::int64_t global_attention_backward_scratch_bytes(Device device, const GlobalAttentionInputs& inputs) {
  check_scratch_inputs(inputs);
  return global_attention_backward_scratch_slot(device, inputs);
}

}  // namespace etc::sparse
