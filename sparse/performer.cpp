#include "sparse/performer.h"

#include "etc_core/base/error.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"
#include "sparse/performer_layout.h"

namespace etc::sparse {

KernelSlot<void(const PerformerForward&)> performer_forward_slot{"performer"};
KernelSlot<void(const PerformerBackward&)> performer_backward_slot{"performer backward"};
KernelSlot<std::int64_t(const PerformerInputs&)> performer_forward_scratch_slot{"performer"};
KernelSlot<std::int64_t(const PerformerInputs&)> performer_backward_scratch_slot{"performer backward"};

namespace {

constexpr const char* kWhere = "performer";

void check_sizes(const PerformerInputs& in) {
  if (in.heads < 1 || in.head_size < 1 || in.features < 1) {
    fail(kWhere, "expected N >= 1 heads of D >= 1 and m >= 1 features, got {}",
         shape_text({{"N", in.heads}, {"D", in.head_size}, {"m", in.features}}));
  }
  if (in.examples < 0) fail(kWhere, "examples: expected B >= 0, got {}", in.examples);
  check_batch_offsets(kWhere, "query_offsets", in.query_offsets, in.examples);
  check_batch_offsets(kWhere, "key_offsets", in.key_offsets, in.examples);
  for (std::int64_t b = 0; in.causal && b <= in.examples; ++b) {
    if (in.query_offsets[b] == in.key_offsets[b]) continue;
    fail(kWhere, "key_offsets: causal attention is of one sequence: expected {} at {}, got {}", in.query_offsets[b], b,
         in.key_offsets[b]);
  }
}

template <typename AnyRows>
void check_rows(const char* name, const AnyRows& rows, const PerformerInputs& in, bool of_queries) {
  const std::int64_t expected = (of_queries ? in.query_offsets : in.key_offsets)[in.examples];
  if (rows.rows != expected) {
    fail(kWhere, "{} must match the batch: expected [{}={}, N={}, D={}], got {} rows", name,
         of_queries ? "queries" : "keys", expected, in.heads, in.head_size, rows.rows);
  }
  if (expected == 0) return;
  if (rows.data == nullptr) fail(kWhere, "{}: expected {} rows, got null", name, expected);
  if (rows.stride < in.heads * in.head_size) {
    fail(kWhere, "{}: expected a stride of at least N*D={}, got {}", name, in.heads * in.head_size, rows.stride);
  }
}

void check_pointer(const char* name, const void* pointer, std::int64_t elements) {
  if (pointer == nullptr && elements > 0) fail(kWhere, "{}: expected {} elements, got null", name, elements);
}

void check_inputs(const PerformerInputs& in) {
  check_sizes(in);
  check_rows("q", in.q, in, true);
  check_rows("k", in.k, in, false);
  check_rows("v", in.v, in, false);
  check_pointer("projection", in.projection, in.features * in.head_size);
}

// Operations of `products` products of rows with the projection or the sums.
profiler::Work work(const PerformerInputs& in, double products) {
  return {products * static_cast<double>(in.query_offsets[in.examples] + in.key_offsets[in.examples]) *
              static_cast<double>(in.heads * in.features * in.head_size),
          0};
}

}  // namespace

void performer_forward(Device device, const PerformerForward& args) {
  const PerformerInputs& in = args.inputs;
  check_inputs(in);
  check_rows("out", args.out, in, true);
  check_pointer("denominators", args.denominators, in.heads * in.q.rows);
  check_pointer("state", args.state, performer_state_floats(in));
  check_pointer("scratch", args.scratch, in.q.rows + in.k.rows);
  const profiler::Scope profiled("performer", work(in, 4));
  performer_forward_slot(device, args);
}

void performer_backward(Device device, const PerformerBackward& args) {
  const PerformerInputs& in = args.inputs;
  check_inputs(in);
  check_rows("out", args.out, in, true);
  check_pointer("denominators", args.denominators, in.heads * in.q.rows);
  check_pointer("state", args.state, performer_state_floats(in));
  check_rows("dout", args.dout, in, true);
  check_rows("dq", args.dq, in, true);
  check_rows("dk", args.dk, in, false);
  check_rows("dv", args.dv, in, false);
  check_pointer("scratch", args.scratch, in.q.rows + in.k.rows);
  const profiler::Scope profiled("performer_backward", work(in, 8));
  performer_backward_slot(device, args);
}

std::int64_t performer_state_floats(const PerformerInputs& in) {
  check_sizes(in);
  return PerformerState(in).floats();
}

std::int64_t performer_forward_scratch_bytes(Device device, const PerformerInputs& in) {
  check_sizes(in);
  return performer_forward_scratch_slot(device, in);
}

std::int64_t performer_backward_scratch_bytes(Device device, const PerformerInputs& in) {
  check_sizes(in);
  return performer_backward_scratch_slot(device, in);
}

}  // namespace etc::sparse
