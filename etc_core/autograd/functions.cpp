#include "etc_core/autograd/functions.h"

#include <algorithm>

#include "etc_core/autograd/recording.h"
#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/embedding.h"

namespace etc {

using namespace recording;

namespace {

// In inference, a feed-forward layer computes this many rows at a time, so that the [rows, F] block between its two
// products stays in the caches; rows do not depend on one another. Not used with kernels that every product would have
// to pack again, as in checkpointed layers; their backward pass holds the block of all rows anyway.
constexpr std::int64_t kFeedForwardRows = 512;
// The same for a GPU, which needs many rows at a time to be efficient; the limit bounds the block's memory.
constexpr std::int64_t kFeedForwardRowsOfGpu = 16384;

std::string dense_name(const Dense& dense) {
  return "linear " + dense.parts.front().kernel->name;
}

// The kernel's two sizes as (in, out), whatever its layout.
std::pair<std::int64_t, std::int64_t> in_out(const Dense::Part& part, ops::WeightLayout layout) {
  const std::vector<std::int64_t>& shape = part.kernel->shape;
  return layout == ops::WeightLayout::in_out ? std::pair(shape[0], shape[1]) : std::pair(shape[1], shape[0]);
}

void note_uses(Tape& tape, const Dense& dense) {
  for (const Dense::Part& part : dense.parts) {
    tape.uses(part.kernel);
    tape.uses(part.bias);
  }
}

// Whether packed weights may be used if available.
enum class Weights : bool { own, packed };

// Rows of a tensor in either type: x [rows, cols] without gaps. Input or output of a dense layer.
struct DenseRows {
  float* fp32 = nullptr;
  Bf16* bf16 = nullptr;  // instead
  std::int64_t rows = 0;
  Device device = Device::cpu;
};

// Rows [first, first + count) of x.
DenseRows rows_from(const Tensor& x, std::int64_t first, std::int64_t count) {
  const std::int64_t at = first * x.cols();
  if (x.type() == ElementType::bf16) return {nullptr, x.bf16() + at, count, x.device()};
  return {x.data() + at, nullptr, count, x.device()};
}

DenseRows all_rows(const Tensor& x) {
  return rows_from(x, 0, x.rows());
}

// Whether `dense` multiplies bf16 arrays; this requires rows of a multiple of kBf16Columns numbers.
bool keeps_bf16(const Dense& dense, Weights weights, Device device) {
  const bool packed = weights == Weights::packed && dense.packed != nullptr;
  return etc::keeps_bf16(device, packed ? dense.packed->compute : dense.compute) && dense.in() % ops::kBf16Columns == 0;
}

// Whether the parts' results may be columns of one bf16 array: each part has its own product, so its width must be a
// multiple of kBf16Columns.
bool parts_fit_bf16(const Dense& dense) {
  return std::ranges::all_of(
      dense.parts, [&](const Dense::Part& part) { return in_out(part, dense.layout).second % ops::kBf16Columns == 0; });
}

// The gradient type of a layer's result; only the layer's own products read this gradient.
ElementType gradient_type(bool in_bf16, const Dense& dense) {
  return in_bf16 && parts_fit_bf16(dense) ? ElementType::bf16 : ElementType::fp32;
}

// The array that a layer's products read for x: x itself, or its copy rounded to bf16, which is made at the first call.
const Tensor& operand_of(const Tape& tape, const Var& x, bool in_bf16) {
  const Tensor& value = x.value();
  if (!in_bf16 || value.type() == ElementType::bf16) return value;
  if (!x.rounded()) {
    x.rounded() = tape.empty(value.shape(), Purpose::activations, value.device(), ElementType::bf16);
    ops::round_to_bf16(value.device(), value.data(), x.rounded().bf16(), value.size());
  }
  return x.rounded();
}

// y [rows, dense.out()] = act(x·W + b).
void run_dense(const Dense& dense, Weights weights, const DenseRows& input, ops::Activation act, DenseRows y) {
  ops::LinearForward args{.rows = input.rows, .in = dense.in(), .x = input.fp32, .x_bf16 = input.bf16};
  args.x_stride = args.in;
  args.layout = dense.layout;
  args.compute = dense.compute;
  args.activation = act;
  args.y_stride = dense.out();
  if (weights == Weights::packed && dense.packed != nullptr) {
    args.out = dense.out();
    args.packed = dense.packed;
    args.bias = dense.packed_bias;
    args.y = y.fp32;
    args.y_bf16 = y.bf16;
    ops::linear(input.device, args);
    return;
  }
  for (const Dense::Part& part : dense.parts) {
    args.out = in_out(part, dense.layout).second;
    args.weight = data_of(part.kernel);
    args.bias = data_of(part.bias);
    args.y = y.fp32;
    args.y_bf16 = y.bf16;
    ops::linear(input.device, args);
    if (y.fp32 != nullptr) y.fp32 += args.out;
    if (y.bf16 != nullptr) y.bf16 += args.out;
  }
}

// The destination of a layer's dx: none, or rows of either type that are written (=) or added to (+=).
struct DenseGradient {
  DenseRows to;
  bool add = false;

  explicit DenseGradient(const InputGradient& dx) : to{dx.data, dx.bf16}, add(dx.add) {}
  explicit DenseGradient(const Tensor& dx) : to(all_rows(dx)) {}
};

// Writes or adds to the gradients of the parts, and to dx. dz [rows, dense.out()].
void run_dense_backward(const Dense& dense, const DenseRows& input, DenseRows dz, const DenseGradient& dx) {
  ops::LinearBackward args{.rows = input.rows, .in = dense.in(), .dz_stride = dense.out(), .x = input.fp32};
  args.x_bf16 = input.bf16;
  args.x_stride = args.in;
  args.layout = dense.layout;
  args.compute = dense.compute;
  args.dx = dx.to.fp32;
  args.dx_bf16 = dx.to.bf16;
  args.dx_stride = args.in;
  args.add_to_dx = dx.add;
  for (const Dense::Part& part : dense.parts) {
    args.out = in_out(part, dense.layout).second;
    args.dz = dz.fp32;
    args.dz_bf16 = dz.bf16;
    args.weight = data_of(part.kernel);
    // Without rows nothing is written.
    if (input.rows == 0) part.kernel->gradient();
    const Parameter::GradientTarget dweight = part.kernel->gradient_target();
    args.dweight = dweight.data;
    args.add_to_dweight = dweight.add;
    args.dbias = part.bias != nullptr ? part.bias->gradient().data() : nullptr;
    ops::linear_backward(input.device, args);
    if (dz.fp32 != nullptr) dz.fp32 += args.out;
    if (dz.bf16 != nullptr) dz.bf16 += args.out;
    args.add_to_dx = true;
  }
}

}  // namespace

ops::HiddenDropout Dropout::arguments() const {
  ops::HiddenDropout args;
  if (rate == 0) return args;
  args.rate = rate;
  args.seed = seed;
  args.layer = layer;
  args.site = site;
  args.examples = static_cast<std::int64_t>(rows->offsets.size()) - 1;
  args.offsets = rows->offsets.data();
  args.sample_ordinals = rows->sample_ordinals.data();
  return args;
}

std::int64_t Dense::in() const {
  return in_out(parts.front(), layout).first;
}

std::int64_t Dense::out() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += in_out(part, layout).second;
  return sum;
}

Var linear(Tape& tape, const Var& x, const Dense& dense, ElementType type) {
  check_matrix("linear", x, dense.in());
  const Device device = x.value().device();
  const Weights weights = tape.recording() ? Weights::own : Weights::packed;
  const bool in_bf16 = keeps_bf16(dense, weights, device);
  const Tensor& value = operand_of(tape, x, in_bf16);
  Tensor y = tape.empty({value.rows(), dense.out()}, Purpose::activations, device, type);  // [M, out]
  run_dense(dense, weights, all_rows(value), ops::Activation::linear, all_rows(y));
  const std::string name = tape.checked() ? dense_name(dense) : "";
  Var result = made(tape, name, std::move(y), gradient_type(in_bf16, dense));
  note_uses(tape, dense);
  if (tape.recording()) {
    record(tape, name, result, [dense, value, slot = x.gradient()](Tensor dy) {
      run_dense_backward(dense, all_rows(value), all_rows(dy), DenseGradient(InputGradient(slot)));
    });
  }
  return result;
}

Var activation(Tape& tape, const Var& x, ops::Activation act) {
  const Tensor& value = x.value();
  Tensor y = tape.empty(value.shape(), Purpose::activations, value.device());
  ops::activation_forward(value.device(), act, value.data(), y.data(), value.size());
  Var result = made(tape, "activation", std::move(y));
  if (tape.recording() && x.needs_grad()) {
    record(tape, "activation", result, [act, value, slot = x.gradient()](Tensor dy) {
      ops::activation_backward(value.device(), act, value.data(), dy.data(), dy.data(), value.size());
      slot->add(dy);
    });
  }
  return result;
}

namespace {

// y = act(x) of tensors in one type.
void activate(ops::Activation act, const Tensor& x, const Tensor& y) {
  if (x.type() == ElementType::bf16) return ops::activation_forward(x.device(), act, x.bf16(), y.bf16(), x.size());
  ops::activation_forward(x.device(), act, x.data(), y.data(), x.size());
}

// dy = dy · act'(x).
void activate_backward(ops::Activation act, const Tensor& x, const Tensor& dy) {
  if (x.type() == ElementType::bf16) {
    return ops::activation_backward(x.device(), act, x.bf16(), dy.bf16(), dy.bf16(), x.size());
  }
  ops::activation_backward(x.device(), act, x.data(), dy.data(), dy.data(), x.size());
}

// Rows of [M, F] that a feed-forward layer computes at a time.
std::int64_t step_of(const Dense& first, Device device, std::int64_t rows) {
  if (first.packed == nullptr) return rows;
  return std::min(rows, device == Device::cpu ? kFeedForwardRows : kFeedForwardRowsOfGpu);
}

}  // namespace

Var feed_forward(Tape& tape, const Var& x, const Dense& first, ops::Activation act, const Dense& second) {
  check_matrix("feed_forward", x, first.in());
  if (second.in() != first.out()) fail("feed_forward", "expected W2 [F={}, H], got F={}", first.out(), second.in());
  const Device device = x.value().device();
  const Weights weights = tape.recording() ? Weights::own : Weights::packed;
  const bool in_bf16 =
      keeps_bf16(first, weights, device) && keeps_bf16(second, weights, device) && parts_fit_bf16(first);
  const Tensor& value = operand_of(tape, x, in_bf16);
  const ElementType type = in_bf16 ? ElementType::bf16 : ElementType::fp32;  // of all that is [M, F]
  const std::int64_t rows = value.rows(), inner = first.out();
  Tensor y = tape.empty({rows, second.out()}, Purpose::activations, device);  // [M, H]
  const std::string name = tape.checked() ? "feed_forward " + first.parts.front().kernel->name : "";
  note_uses(tape, first);
  note_uses(tape, second);
  if (!tape.recording()) {
    const std::int64_t step = step_of(first, device, rows);
    const Tensor h = tape.empty({step, inner}, Purpose::scratch, device, type);  // [step, F]: a part of the rows
    // In training, a forward pass without recording must give the same bits as one with recording, which rounds z
    // before the activation.
    const bool apart = in_bf16 && first.packed == nullptr;
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t n = std::min(step, rows - row);
      run_dense(first, weights, rows_from(value, row, n), apart ? ops::Activation::linear : act, rows_from(h, 0, n));
      if (apart) activate(act, h, h);  // without packed weights all rows at once
      run_dense(second, weights, rows_from(h, 0, n), ops::Activation::linear, rows_from(y, row, n));
    }
    return made(tape, name, std::move(y));
  }
  Tensor z = Tensor::empty({rows, inner}, Purpose::activations, device, type);  // [M, F] kept for backward
  run_dense(first, weights, all_rows(value), ops::Activation::linear, all_rows(z));
  {
    const Tensor h = Tensor::empty({rows, inner}, Purpose::scratch, device, type);  // [M, F] not kept
    activate(act, z, h);
    run_dense(second, weights, all_rows(h), ops::Activation::linear, all_rows(y));
  }
  Var result = made(tape, name, std::move(y), gradient_type(in_bf16, second));
  record(tape, name, result, [first, act, second, value, z, slot = x.gradient()](Tensor dy) {
    const Tensor dh = Tensor::empty(z.shape(), Purpose::scratch, z.device(), z.type());
    {
      const Tensor h = Tensor::empty(z.shape(), Purpose::scratch, z.device(), z.type());
      activate(act, z, h);
      run_dense_backward(second, all_rows(h), all_rows(dy), DenseGradient(dh));
    }
    dy = Tensor();
    activate_backward(act, z, dh);
    run_dense_backward(first, all_rows(value), all_rows(dh), DenseGradient(InputGradient(slot)));
  });
  return result;
}

namespace {

ops::EmbeddingTerm term(const Lookup& lookup, std::int64_t rows, std::int64_t cols) {
  ops::EmbeddingTerm result;
  if (lookup.table == nullptr && !lookup.fixed) return result;
  const std::vector<std::int64_t>& shape = lookup.table != nullptr ? lookup.table->shape : lookup.fixed.shape();
  if (static_cast<std::int64_t>(lookup.ids->size()) != rows) {
    fail("embedding", "{}: expected {} ids, got {}", lookup.name, rows, lookup.ids->size());
  }
  if (shape.at(1) != cols) {
    fail("embedding", "{}: expected a table [{}, {}], got [{}, {}]",
         lookup.table != nullptr ? lookup.table->name : lookup.name, shape[0], cols, shape[0], shape[1]);
  }
  result.table = lookup.table != nullptr ? data_of(lookup.table) : lookup.fixed.data();
  result.limit = shape[0];
  result.ids = lookup.ids->data();
  result.name = lookup.name;
  return result;
}

}  // namespace

Var on_device(Tape& tape, const Var& x, Device device) {
  const Device source = x.value().device();
  if (device == source) return x;
  Var result(x.value().to(device), tape.recording() && x.needs_grad());
  if (result.needs_grad()) {
    record(tape, "on_device", result, [source, slot = x.gradient()](Tensor dy) { slot->add(dy.to(source)); });
  }
  return result;
}

Var embedding(Tape& tape, const EmbeddingSum& sum) {
  const auto& [rows, width, base, tokens, segments, positions, adder] = sum;
  const std::int64_t count = rows->offsets.back();
  const Device device = base.defined() ? base.value().device() : tokens.table->value.device();
  const Var added = adder.defined() ? on_device(tape, adder, device) : Var();
  Tensor e = tape.empty({count, width}, Purpose::activations, device);
  ops::EmbeddingForward args{.rows = count,
                             .cols = width,
                             .base = base.defined() ? base.value().data() : nullptr,
                             .tokens = term(tokens, count, width),
                             .segments = term(segments, count, width),
                             .positions = term(positions, count, width),
                             .adder = added.defined() ? added.value().data() : nullptr,
                             .e = e.data(),
                             .examples = static_cast<std::int64_t>(rows->offsets.size()) - 1,
                             .offsets = rows->offsets.data()};
  ops::embedding(e.device(), args);
  Var result = made(tape, "embedding", std::move(e));
  for (const Lookup* lookup : {&tokens, &segments, &positions}) tape.uses(lookup->table);
  if (!tape.recording()) return result;
  record(tape, "embedding", result,
         [tokens = sum.tokens, segments = sum.segments, positions = sum.positions,
          base_slot = base.defined() ? base.gradient() : nullptr,
          adder_slot = added.defined() ? added.gradient() : nullptr](Tensor de) {
           for (const Lookup* lookup : {&tokens, &segments, &positions}) {
             if (lookup->table == nullptr) continue;
             ops::EmbeddingBackward back{.rows = de.rows(),
                                         .cols = de.cols(),
                                         .limit = lookup->table->shape[0],
                                         .de = de.data(),
                                         .ids = lookup->ids->data(),
                                         .dtable = lookup->table->gradient().data()};
             ops::embedding_backward(de.device(), back);
           }
           const bool to_base = base_slot != nullptr && base_slot->needed();
           // A gradient may later be changed in place, so two variables must never share its memory.
           if (adder_slot != nullptr && adder_slot->needed()) adder_slot->add(to_base ? de.clone() : de);
           if (to_base) base_slot->add(de);
         });
  return result;
}

std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs, const Section& now, Section again) {
  if (!tape.recording()) return now(tape, inputs);
  std::vector<Var> results;
  {
    Tape silent(Recording::off, tape.checks());
    silent.pass_uses_to(tape);
    for (const Var& result : now(silent, inputs)) results.push_back(Var(result.value(), true));
  }
  std::vector<Tensor> values;
  std::vector<Slot> input_slots, result_slots;
  for (const Var& input : inputs) {
    values.push_back(input.value());
    input_slots.push_back(input.gradient());
  }
  for (const Var& result : results) result_slots.push_back(result.gradient());
  tape.record([again = std::move(again), values, input_slots, result_slots, checks = tape.checks()] {
    if (std::none_of(result_slots.begin(), result_slots.end(), [](const Slot& slot) { return slot->defined(); }))
      return;
    std::vector<Var> leaves;
    for (std::size_t i = 0; i < values.size(); ++i) leaves.push_back(Var(values[i], input_slots[i]->needed()));
    Tape inner(Recording::on, checks);
    {
      const std::vector<Var> recomputed = again(inner, leaves);
      for (std::size_t i = 0; i < recomputed.size(); ++i) {
        if (result_slots[i]->defined()) recomputed[i].gradient()->add(result_slots[i]->take());
      }
    }
    inner.backward();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].has_grad()) input_slots[i]->add(leaves[i].gradient()->take());
    }
  });
  return results;
}

}  // namespace etc
