#include "etc_core/autograd/attention.h"

#include <array>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// The numbers of q, k or v without the variable, so that closures keep no gradient alive.
struct Role {
  Tensor tensor;
  std::int64_t first = 0;
  std::shared_ptr<Gradient> gradient;

  explicit Role(const Columns& columns)
      : tensor(columns.var.value()), first(columns.first), gradient(columns.var.gradient()) {}
  bool in_bf16() const { return tensor.type() == ElementType::bf16; }
  sparse::Rows rows() const {
    if (in_bf16()) return {nullptr, tensor.cols(), tensor.rows(), tensor.bf16() + first};
    return {tensor.columns(first), tensor.cols(), tensor.rows()};
  }
};

struct Roles {
  std::array<Role, 1 + 2 * sparse::kKeySets> all;  // q, then k and v of each key set
  RelativeParameters relative;

  explicit Roles(const AttentionInputs& in)
      : all{Role(in.q), Role(in.keys[0].k), Role(in.keys[0].v), Role(in.keys[1].k), Role(in.keys[1].v)},
        relative(in.relative) {}

  ElementType type() const { return all[0].tensor.type(); }
};

// The given parts as a table; each must have the size for R rows of all heads.
sparse::RelativeTable relative_table(const AttentionBatch& batch, const char* op, const RelativeParameters& given) {
  sparse::RelativeTable table;
  table.shared_heads = given.shared_heads;
  const auto take = [&](const char* name, const RelativePart& part, std::int64_t size) -> const float* {
    if (!part.given()) return nullptr;
    const Tensor& value = part.value();
    const std::int64_t rows = value.dim(0), row = table.heads(batch.heads) * size;
    if (table.labels == 0) table.labels = rows;
    if (rows != table.labels || value.size() != rows * row) {
      fail(op, "{}: expected R={} rows of {} numbers, got {}", name, table.labels, row, value.shape_text());
    }
    return value.data();
  };
  table.vectors = take("rel", given.vectors, batch.head_size);
  table.biases = take("rel_bias", given.biases, 1);
  table.key_vectors = take("rel_k", given.key_vectors, batch.head_size);
  table.factors = take("factor", given.factors, 1);
  table.products = take("w", given.products, batch.head_size);
  table.value_vectors = take("rel_v", given.value_vectors, batch.head_size);
  return table;
}

sparse::AttentionInputs operator_inputs(const AttentionBatch& batch, const OperatorBatch& own, std::int64_t layer,
                                        const Roles& roles) {
  sparse::AttentionInputs inputs;
  inputs.heads = batch.heads;
  inputs.head_size = batch.head_size;
  inputs.tiles = &own.tiles;
  inputs.q = roles.all[0].rows();
  for (std::size_t t = 0; t < sparse::kKeySets; ++t) {
    inputs.keys[t] = {roles.all[1 + 2 * t].rows(), roles.all[2 + 2 * t].rows()};
  }
  inputs.scale = batch.scale;
  if (own.relative) inputs.relative = relative_table(batch, own.tiles.op->name, roles.relative);
  inputs.compute = sparse::compute_of(roles.all[0].tensor.device(), batch.compute, inputs.relative);
  inputs.type = roles.type();
  if (batch.dropout_rate > 0) {
    inputs.dropout = {batch.seed, batch.dropout_rate, batch.sample_ordinals.data(), static_cast<std::uint32_t>(layer)};
  }
  return inputs;
}

sparse::MutableRows mutable_rows(const Tensor& tensor) {
  if (tensor.type() == ElementType::bf16) return {nullptr, tensor.cols(), tensor.rows(), tensor.bf16()};
  return {tensor.data(), tensor.cols(), tensor.rows()};
}

sparse::Rows rows_of(const Tensor& tensor) {
  const sparse::MutableRows rows = mutable_rows(tensor);
  return {rows.data, rows.stride, rows.rows, rows.bf16};
}

// Memory for the tables' gradients: of parameters and variables, or unused memory for tables that are not trained.
struct TableGradients {
  sparse::RelativeTableGradients places;
  std::vector<Tensor> unused;

  TableGradients(const RelativeParameters& tables, bool live) {
    const auto place = [&](const RelativePart& part) -> float* {
      if (!part.given()) return nullptr;
      if (float* const own = live ? part.gradient() : nullptr) return own;
      unused.push_back(Tensor::zeros(part.value().shape(), Purpose::scratch, part.value().device()));
      return unused.back().data();
    };
    places = {place(tables.vectors), place(tables.biases),   place(tables.key_vectors),
              place(tables.factors), place(tables.products), place(tables.value_vectors)};
  }
};

void tell_watch(const AttentionBatch& batch, std::int64_t layer, const Roles& roles,
                const sparse::AttentionForward& args) {
  WatchedAttention watched{layer, args.inputs, args.scores, {}};
  for (const Role& role : roles.all) watched.kept.push_back(role.tensor);
  const RelativeParameters& of = roles.relative;
  for (const RelativePart* part :
       {&of.vectors, &of.biases, &of.key_vectors, &of.factors, &of.products, &of.value_vectors}) {
    if (part->given()) watched.kept.push_back(part->value());
  }
  batch.watch(watched);
}

// Values that forward keeps for backward.
struct Kept {
  const OperatorBatch* own;
  std::int64_t layer;
  Roles roles;
  Tensor out, lse;  // [queries, N·D], [N, queries]
};

void attend_backward(AttentionBatch& batch, const Kept& kept, const Tensor& dout, bool live) {
  const Roles& roles = kept.roles;
  const Device device = kept.out.device();
  sparse::AttentionBackward args;
  args.inputs = operator_inputs(batch, *kept.own, kept.layer, roles);
  args.out = rows_of(kept.out);
  args.lse = kept.lse.data();
  args.dout = rows_of(dout);
  std::array<Tensor, 1 + 2 * sparse::kKeySets> gradients;  // as roles.all
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& of = roles.all[i].tensor;
    gradients[i] = Tensor::empty(of.shape(), Purpose::activations, device, of.type());
  }
  args.dq = mutable_rows(gradients[0]);
  for (std::size_t t = 0; t < sparse::kKeySets; ++t) {
    args.dkeys[t] = {mutable_rows(gradients[1 + 2 * t]), mutable_rows(gradients[2 + 2 * t])};
  }
  const bool tables = args.inputs.relative.rows() > 0;
  const TableGradients drelative(tables ? roles.relative : RelativeParameters{}, live);
  args.drelative = drelative.places;
  if (batch.scores) args.scores = batch.scores->backward(kept.layer, *kept.own->tiles.op);
  {
    Bytes scratch(sparse::attention_backward_scratch_bytes(device, args.inputs), Purpose::scratch, device);
    args.scratch = scratch.data();
    sparse::attention_backward(device, args);
  }
  if (!live) return;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (roles.all[i].gradient->needed()) roles.all[i].gradient->add(gradients[i]);
    gradients[i] = Tensor();
  }
}

void check_columns(const Tape& tape, const char* op, const Roles& roles, std::int64_t width) {
  for (const Role& role : roles.all) {
    if (tape.recording() ? role.first != 0 || role.tensor.cols() != width : role.first + width > role.tensor.cols()) {
      fail(op, "expected inputs of N·D={} columns, got {} from column {}", width, role.tensor.shape_text(), role.first);
    }
  }
}

}  // namespace

float* RelativePart::gradient() const {
  if (parameter_ != nullptr) return parameter_->gradient().data();
  if (gradient_ == nullptr || !gradient_->needed()) return nullptr;
  const bool first = !gradient_->defined();
  const Tensor& own = gradient_->storage();
  if (first) own.zero();
  return own.data();
}

const OperatorBatch& AttentionBatch::of(const sparse::AttentionOperator& op) const {
  for (const OperatorBatch& own : operators) {
    if (own.tiles.op == &op) return own;
  }
  fail(op.name, "expected an operator the batch was made for");
}

sparse::ScoredOperators AttentionBatch::scored_operators() const {
  sparse::ScoredOperators tiles;
  for (const OperatorBatch& own : operators) tiles.push_back(&own.tiles);
  return tiles;
}

ElementType row_type(const AttentionBatch& batch, const sparse::AttentionOperator& op,
                     const RelativeParameters& relative, Device device) {
  if (batch.watch) return ElementType::fp32;
  const OperatorBatch& own = batch.of(op);
  sparse::AttentionInputs inputs;
  inputs.heads = batch.heads;
  inputs.head_size = batch.head_size;
  inputs.tiles = &own.tiles;
  if (own.relative) inputs.relative = relative_table(batch, op.name, relative);
  inputs.compute = sparse::compute_of(device, batch.compute, inputs.relative);
  return sparse::row_type(device, inputs);
}

Var attention(Tape& tape, const sparse::AttentionOperator& op, const std::shared_ptr<AttentionBatch>& batch,
              std::int64_t layer, Pass pass, const AttentionInputs& inputs) {
  const OperatorBatch& own = batch->of(op);
  const Roles roles(inputs);
  const std::int64_t width = batch->heads * batch->head_size;
  check_columns(tape, op.name, roles, width);
  const Device device = roles.all[0].tensor.device();
  const std::int64_t queries = roles.all[0].tensor.rows();
  const Tensor out = tape.empty({queries, width}, Purpose::activations, device, roles.type());  // [queries, N·D]
  const Tensor lse =  // [N, queries] log-sum-exp of each row, which backward needs
      tape.empty({batch->heads, queries}, tape.recording() ? Purpose::activations : Purpose::scratch, device);
  sparse::AttentionForward args;
  args.inputs = operator_inputs(*batch, own, layer, roles);
  args.out = mutable_rows(out);
  args.lse = lse.data();
  if (batch->scores) {
    args.scores = pass == Pass::recompute ? batch->scores->recompute(layer, op) : batch->scores->forward(layer, op);
  }
  {
    Bytes scratch(sparse::attention_forward_scratch_bytes(device, args.inputs), Purpose::scratch, device);
    args.scratch = scratch.data();
    sparse::attention_forward(device, args);
  }
  if (batch->watch && pass == Pass::forward) tell_watch(*batch, layer, roles, args);
  const std::string name = tape.checked() ? std::string(op.name) + " of layer " + std::to_string(layer) : "";
  if (tape.checked()) check_finite(name, "output", out);
  Var result(out, tape.recording());
  const RelativeParameters& tables = inputs.relative;
  for (const RelativePart* part : {&tables.vectors, &tables.biases, &tables.key_vectors, &tables.factors,
                                   &tables.products, &tables.value_vectors}) {
    tape.uses(part->parameter());
  }
  if (!tape.recording()) return result;
  tape.record([batch, kept = Kept{&own, layer, roles, out, lse}, slot = result.gradient(), name] {
    const bool live = slot->defined();
    // Without a gradient there is nothing to do, except that running scores must be restored layer by layer.
    if (!live && !batch->scores) return;
    const Tensor& of = kept.out;
    const Tensor dout = live ? slot->take() : Tensor::empty(of.shape(), Purpose::scratch, of.device(), of.type());
    if (!live) dout.zero();
    if (!name.empty()) check_finite(name, "gradient of output", dout);
    attend_backward(*batch, kept, dout, live);
  });
  return result;
}

}  // namespace etc
