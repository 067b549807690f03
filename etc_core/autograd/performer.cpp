#include "etc_core/autograd/performer.h"

#include <array>

#include "etc_core/autograd/recording.h"
#include "etc_core/base/error.h"
#include "sparse/performer.h"

namespace etc {

namespace {

// The numbers of q, k or v without the variable, so that closures keep no gradient alive.
struct PerformerRole {
  Tensor tensor;
  std::int64_t first = 0;
  std::shared_ptr<Gradient> gradient;

  explicit PerformerRole(const Columns& columns)
      : tensor(columns.var.value()), first(columns.first), gradient(columns.var.gradient()) {}
  sparse::Rows rows() const { return {tensor.columns(first), tensor.cols(), tensor.rows()}; }
};

// Values that forward keeps for backward.
struct PerformerKept {
  std::shared_ptr<const PerformerBatch> batch;
  Tensor projection;                   // [m, D]
  std::array<PerformerRole, 3> roles;  // q, k, v
  Tensor out, denominators, state;     // [queries, N·D], [N, queries], sums over keys

  sparse::PerformerInputs inputs() const {
    return {batch->heads,
            batch->head_size,
            projection.rows(),
            roles[0].rows(),
            roles[1].rows(),
            roles[2].rows(),
            projection.data(),
            static_cast<std::int64_t>(batch->query_offsets.size()) - 1,
            batch->query_offsets.data(),
            batch->key_offsets.data(),
            batch->causal,
            true,
            batch->scale};
  }
};

sparse::MutableRows dense_rows(const Tensor& tensor) {
  return {tensor.data(), tensor.cols(), tensor.rows()};
}

void performer_gradients(const PerformerKept& kept, const Tensor& dout) {
  const Device device = kept.out.device();
  std::array<Tensor, 3> gradients;  // as roles
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = Tensor::empty(kept.roles[i].tensor.shape(), Purpose::activations, device);
  }
  sparse::PerformerBackward args;
  args.inputs = kept.inputs();
  args.out = {kept.out.data(), kept.out.cols(), kept.out.rows()};
  args.denominators = kept.denominators.data();
  args.state = kept.state.data();
  args.dout = {dout.data(), dout.cols(), dout.rows()};
  args.dq = dense_rows(gradients[0]);
  args.dk = dense_rows(gradients[1]);
  args.dv = dense_rows(gradients[2]);
  {
    Bytes scratch(sparse::performer_backward_scratch_bytes(device, args.inputs), Purpose::scratch, device);
    args.scratch = scratch.data();
    sparse::performer_backward(device, args);
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (kept.roles[i].gradient->needed()) kept.roles[i].gradient->add(gradients[i]);
    gradients[i] = Tensor();
  }
}

}  // namespace

Var performer(Tape& tape, const std::shared_ptr<const PerformerBatch>& batch, const Tensor& projection,
              const PerformerColumns& inputs) {
  const std::int64_t width = batch->heads * batch->head_size;
  PerformerKept kept{batch, projection, {PerformerRole(inputs.q), PerformerRole(inputs.k), PerformerRole(inputs.v)},
                     {},    {},         {}};
  for (const PerformerRole& role : kept.roles) {
    const bool whole = role.first == 0 && role.tensor.cols() == width;
    if (tape.recording() ? whole : role.first + width <= role.tensor.cols()) continue;
    fail("performer", "expected inputs of N·D={} columns, got {} from column {}", width, role.tensor.shape_text(),
         role.first);
  }
  if (projection.rank() != 2 || projection.dim(1) != batch->head_size) {
    fail("performer", "projection: expected [m, D={}], got {}", batch->head_size, projection.shape_text());
  }
  const Device device = kept.roles[0].tensor.device();
  const std::int64_t queries = kept.roles[0].tensor.rows();
  const Purpose purpose = tape.recording() ? Purpose::activations : Purpose::scratch;
  const sparse::PerformerInputs in = kept.inputs();
  kept.out = tape.empty({queries, width}, Purpose::activations, device);
  kept.denominators = tape.empty({batch->heads, queries}, purpose, device);
  kept.state = tape.empty({sparse::performer_state_floats(in)}, purpose, device);
  {
    Bytes scratch(sparse::performer_forward_scratch_bytes(device, in), Purpose::scratch, device);
    sparse::performer_forward(device,
                              {in, dense_rows(kept.out), kept.denominators.data(), kept.state.data(), scratch.data()});
  }
  Var result = recording::made(tape, "performer", kept.out);
  if (!tape.recording()) return result;
  recording::record(tape, "performer", result,
                    [kept = std::move(kept)](const Tensor& dout) { performer_gradients(kept, dout); });
  return result;
}

}  // namespace etc
