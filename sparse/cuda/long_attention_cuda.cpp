// long_attention on CUDA: its types and arguments for the kernels both operators share.
#include "sparse/long_attention.h"

#include "sparse/cuda/attention_backend.h"
#include "sparse/cuda/kernels.h"

namespace etc::sparse::cuda {

Inputs inputs_of(const LongAttentionInputs& in) {
  return {"long_attention",
          in.heads,
          in.head_size,
          in.q,
          {in.k, in.gk},
          {in.v, in.gv},
          in.relative,
          {&in.tiles->l2l, &in.tiles->l2g},
          in.dropout,
          in.compute,
          DropoutSite::long_attention,
          false};
}

void register_long_attention() {
  long_attention_forward_slot.fill(Device::cuda, [](const LongAttentionForward& a) {
    forward({inputs_of(a.inputs), {a.l2l, a.l2g}, a.out, a.lse, a.scratch});
  });
  long_attention_backward_slot.fill(Device::cuda, [](const LongAttentionBackward& a) {
    backward({inputs_of(a.inputs),
              {a.l2l, a.l2g},
              a.out,
              a.lse,
              a.dout,
              a.dq,
              {a.dk, a.dgk},
              {a.dv, a.dgv},
              a.drelative,
              a.scratch});
  });
  long_attention_backward_scratch_slot.fill(
      Device::cuda, [](const LongAttentionInputs& in) { return backward_scratch_bytes(inputs_of(in)); });
  long_attention_forward_scratch_slot.fill(
      Device::cuda, [](const LongAttentionInputs& in) { return forward_scratch_bytes(inputs_of(in)); });
}

}  // namespace etc::sparse::cuda
