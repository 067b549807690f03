// global_attention on CUDA: its types and arguments for the kernels both operators share. Global queries are few and
// see many keys, so their keys are split among blocks.
#include "sparse/global_attention.h"

#include "sparse/cuda/attention_backend.h"
#include "sparse/cuda/kernels.h"

namespace etc::sparse::cuda {

Inputs inputs_of(const GlobalAttentionInputs& in) {
  return {"global_attention",
          in.heads,
          in.head_size,
          in.q,
          {in.k, in.lk},
          {in.v, in.lv},
          in.relative,
          {&in.tiles->g2g, &in.tiles->g2l},
          in.dropout,
          in.compute,
          DropoutSite::global_attention,
          true};
}

void register_global_attention() {
  global_attention_forward_slot.fill(Device::cuda, [](const GlobalAttentionForward& a) {
    forward({inputs_of(a.inputs), {a.g2g, a.g2l}, a.out, a.lse, a.scratch});
  });
  global_attention_backward_slot.fill(Device::cuda, [](const GlobalAttentionBackward& a) {
    backward({inputs_of(a.inputs),
              {a.g2g, a.g2l},
              a.out,
              a.lse,
              a.dout,
              a.dq,
              {a.dk, a.dlk},
              {a.dv, a.dlv},
              a.drelative,
              a.scratch});
  });
  global_attention_backward_scratch_slot.fill(
      Device::cuda, [](const GlobalAttentionInputs& in) { return backward_scratch_bytes(inputs_of(in)); });
  global_attention_forward_scratch_slot.fill(
      Device::cuda, [](const GlobalAttentionInputs& in) { return forward_scratch_bytes(inputs_of(in)); });
}

}  // namespace etc::sparse::cuda
