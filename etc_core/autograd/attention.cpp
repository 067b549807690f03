#include "etc_core/autograd/attention.h"

#include <array>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// What differs between the two operators is names; everything below is written once for both.
struct LongOperator {
  using Inputs = sparse::LongAttentionInputs;
  using Forward = sparse::LongAttentionForward;
  using Backward = sparse::LongAttentionBackward;
  static constexpr const char* kName = "long_attention";

  static bool relative(const AttentionBatch& batch) { return batch.long_relative; }
  static void set(Inputs& inputs, const AttentionBatch& batch, sparse::Rows k, sparse::Rows v) {
    inputs.gk = k;
    inputs.gv = v;
    inputs.tiles = &batch.long_tiles;
  }
  static void set(Backward& args, sparse::MutableRows dk, sparse::MutableRows dv) {
    args.dgk = dk;
    args.dgv = dv;
  }
  static constexpr auto forward = sparse::long_attention_forward;
  static constexpr auto backward = sparse::long_attention_backward;
  static constexpr auto forward_scratch = sparse::long_attention_forward_scratch_bytes;
  static constexpr auto backward_scratch = sparse::long_attention_backward_scratch_bytes;
};

struct GlobalOperator {
  using Inputs = sparse::GlobalAttentionInputs;
  using Forward = sparse::GlobalAttentionForward;
  using Backward = sparse::GlobalAttentionBackward;
  static constexpr const char* kName = "global_attention";

  static bool relative(const AttentionBatch& batch) { return batch.global_relative; }
  static void set(Inputs& inputs, const AttentionBatch& batch, sparse::Rows k, sparse::Rows v) {
    inputs.lk = k;
    inputs.lv = v;
    inputs.tiles = &batch.global_tiles;
  }
  static void set(Backward& args, sparse::MutableRows dk, sparse::MutableRows dv) {
    args.dlk = dk;
    args.dlv = dv;
  }
  static constexpr auto forward = sparse::global_attention_forward;
  static constexpr auto backward = sparse::global_attention_backward;
  static constexpr auto forward_scratch = sparse::global_attention_forward_scratch_bytes;
  static constexpr auto backward_scratch = sparse::global_attention_backward_scratch_bytes;
};

// A role's numbers without its variable, so that closures keep no gradient alive.
struct Role {
  Tensor tensor;
  std::int64_t first = 0;
  std::shared_ptr<Gradient> gradient;

  explicit Role(const Columns& columns)
      : tensor(columns.var.value()), first(columns.first), gradient(columns.var.gradient()) {}
  sparse::Rows rows() const { return {tensor.columns(first), tensor.cols(), tensor.rows()}; }
};

struct Roles {
  Role q, k, v, other_k, other_v;
  RelativeParameters relative;

  explicit Roles(const AttentionInputs& inputs)
      : q(inputs.q),
        k(inputs.k),
        v(inputs.v),
        other_k(inputs.other_k),
        other_v(inputs.other_v),
        relative(inputs.relative) {}
  std::array<const Role*, 5> all() const { return {&q, &k, &v, &other_k, &other_v}; }
};

template <typename Operator>
typename Operator::Inputs operator_inputs(const AttentionBatch& batch, std::int64_t layer, const Roles& roles) {
  typename Operator::Inputs inputs;
  inputs.heads = batch.heads;
  inputs.head_size = batch.head_size;
  inputs.compute = batch.compute;
  inputs.q = roles.q.rows();
  inputs.k = roles.k.rows();
  inputs.v = roles.v.rows();
  Operator::set(inputs, batch, roles.other_k.rows(), roles.other_v.rows());
  if (Operator::relative(batch) && roles.relative.vectors != nullptr) {
    inputs.relative.vectors = roles.relative.vectors->value.data();
    inputs.relative.biases = roles.relative.biases->value.data();
    inputs.relative.labels = roles.relative.vectors->shape[0];
  }
  if (batch.dropout_rate > 0) {
    inputs.dropout = {batch.seed, batch.dropout_rate, batch.sample_ordinals.data(), static_cast<std::uint32_t>(layer)};
  }
  return inputs;
}

sparse::MutableRows mutable_rows(const Tensor& tensor) {
  return {tensor.data(), tensor.cols(), tensor.rows()};
}

template <typename Operator>
void attend_backward(AttentionBatch& batch, std::int64_t layer, const Roles& roles, const Tensor& out,
                     const Tensor& lse, Tensor dout, bool live) {
  typename Operator::Backward args;
  args.inputs = operator_inputs<Operator>(batch, layer, roles);
  args.out = {out.data(), out.cols(), out.rows()};
  args.lse = lse.data();
  args.dout = {dout.data(), dout.cols(), dout.rows()};
  std::array<Tensor, 5> gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = Tensor::empty(roles.all()[i]->tensor.shape(), Purpose::activations, out.device());
  }
  args.dq = mutable_rows(gradients[0]);
  args.dk = mutable_rows(gradients[1]);
  args.dv = mutable_rows(gradients[2]);
  Operator::set(args, mutable_rows(gradients[3]), mutable_rows(gradients[4]));
  Tensor unused_vectors, unused_biases;
  if (args.inputs.relative.vectors != nullptr) {
    if (!live) {
      unused_vectors = Tensor::zeros(roles.relative.vectors->shape, Purpose::scratch, out.device());
      unused_biases = Tensor::zeros(roles.relative.biases->shape, Purpose::scratch, out.device());
    }
    args.drelative.vectors = (live ? roles.relative.vectors->gradient() : unused_vectors).data();
    args.drelative.biases = (live ? roles.relative.biases->gradient() : unused_biases).data();
  }
  if (batch.scores) batch.scores->backward(layer, args);
  {
    Bytes scratch(Operator::backward_scratch(out.device(), args.inputs), Purpose::scratch, out.device());
    args.scratch = scratch.data();
    Operator::backward(out.device(), args);
  }
  if (!live) return;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (roles.all()[i]->gradient->needed()) roles.all()[i]->gradient->add(gradients[i]);
    gradients[i] = Tensor();
  }
}

template <typename Operator>
Var attend(Tape& tape, const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, Pass pass,
           const AttentionInputs& inputs) {
  const Roles roles(inputs);
  const std::int64_t width = batch->heads * batch->head_size;
  for (const Role* role : roles.all()) {
    if (tape.recording() ? role->first != 0 || role->tensor.cols() != width
                         : role->first + width > role->tensor.cols()) {
      fail(Operator::kName, "expected inputs of N·D={} columns, got {} from column {}", width,
           role->tensor.shape_text(), role->first);
    }
  }
  const Device device = roles.q.tensor.device();
  const std::int64_t queries = roles.q.tensor.rows();
  const Tensor out = tape.empty({queries, width}, Purpose::activations, device);
  const Tensor lse =
      tape.empty({batch->heads, queries}, tape.recording() ? Purpose::activations : Purpose::scratch, device);
  typename Operator::Forward args;
  args.inputs = operator_inputs<Operator>(*batch, layer, roles);
  args.out = mutable_rows(out);
  args.lse = lse.data();
  if (batch->scores) {
    if (pass == Pass::recompute) {
      batch->scores->recompute(layer, args);
    } else {
      batch->scores->forward(layer, args);
    }
  }
  {
    Bytes scratch(Operator::forward_scratch(device, args.inputs), Purpose::scratch, device);
    args.scratch = scratch.data();
    Operator::forward(device, args);
  }
  const std::string name = tape.checked() ? std::string(Operator::kName) + " of layer " + std::to_string(layer) : "";
  if (tape.checked()) check_finite(name, "output", out);
  Var result(out, tape.recording());
  if (!tape.recording()) return result;
  tape.record([batch, layer, roles, out, lse, slot = result.gradient(), name] {
    const bool live = slot->defined();
    // Without a gradient there is nothing to do, except that running scores must be walked back over every layer.
    if (!live && !batch->scores) return;
    Tensor dout = live ? slot->take() : Tensor::zeros(out.shape(), Purpose::scratch, out.device());
    if (!name.empty()) check_finite(name, "gradient of output", dout);
    attend_backward<Operator>(*batch, layer, roles, out, lse, std::move(dout), live);
  });
  return result;
}

}  // namespace

Var long_attention(Tape& tape, const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, Pass pass,
                   const AttentionInputs& inputs) {
  return attend<LongOperator>(tape, batch, layer, pass, inputs);
}

Var global_attention(Tape& tape, const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, Pass pass,
                     const AttentionInputs& inputs) {
  return attend<GlobalOperator>(tape, batch, layer, pass, inputs);
}

}  // namespace etc
