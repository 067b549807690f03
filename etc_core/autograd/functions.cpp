#include "etc_core/autograd/functions.h"

#include <algorithm>

#include "etc_core/autograd/recording.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/embedding.h"

namespace etc {

using namespace recording;

namespace {

// Rows of a feed-forward layer computed at a time in inference: the [rows, F] block between its two products stays in
// the caches, and rows do not depend on one another. Not with kernels that every product has to pack anew: those of
// checkpointed layers, whose backward pass holds such blocks of all rows anyway.
constexpr std::int64_t kFeedForwardRows = 512;

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

// What a dense layer multiplies: x [rows, in] without gaps.
struct DenseInput {
  const float* x;
  std::int64_t rows;
  Device device;
};

DenseInput all_rows(const Tensor& x) {
  return {x.data(), x.rows(), x.device()};
}

// Whether packed weights may be taken where there are any.
enum class Weights : bool { own, packed };

// y [rows, dense.out()] = act(x·W + b).
void run_dense(const Dense& dense, Weights weights, const DenseInput& input, ops::Activation act, float* y) {
  ops::LinearForward args{.rows = input.rows, .in = dense.in(), .x = input.x};
  args.x_stride = args.in;
  args.layout = dense.layout;
  args.compute = dense.compute;
  args.activation = act;
  args.y_stride = dense.out();
  if (weights == Weights::packed && dense.packed != nullptr) {
    args.out = dense.out();
    args.packed = dense.packed;
    args.bias = dense.packed_bias;
    args.y = y;
    ops::linear(input.device, args);
    return;
  }
  for (const Dense::Part& part : dense.parts) {
    args.out = in_out(part, dense.layout).second;
    args.weight = data_of(part.kernel);
    args.bias = data_of(part.bias);
    args.y = y;
    ops::linear(input.device, args);
    y += args.out;
  }
}

// Adds to the gradients of the parts, and writes (or adds to) dx unless it is null. dz [rows, dense.out()].
void run_dense_backward(const Dense& dense, const DenseInput& input, const float* dz, float* dx, bool add_to_dx) {
  ops::LinearBackward args{.rows = input.rows, .in = dense.in(), .dz_stride = dense.out(), .x = input.x};
  args.x_stride = args.in;
  args.layout = dense.layout;
  args.compute = dense.compute;
  args.dx = dx;
  args.dx_stride = args.in;
  for (const Dense::Part& part : dense.parts) {
    args.out = in_out(part, dense.layout).second;
    args.dz = dz;
    args.weight = data_of(part.kernel);
    args.add_to_dx = add_to_dx;
    args.dweight = part.kernel->gradient().data();
    args.dbias = part.bias != nullptr ? part.bias->gradient().data() : nullptr;
    ops::linear_backward(input.device, args);
    dz += args.out;
    add_to_dx = true;
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

Var linear(Tape& tape, const Var& x, const Dense& dense) {
  check_matrix("linear", x, dense.in());
  const Tensor& value = x.value();
  Tensor y = tape.empty({value.rows(), dense.out()}, Purpose::activations, value.device());  // [M, out]
  const Weights weights = tape.recording() ? Weights::own : Weights::packed;
  run_dense(dense, weights, all_rows(value), ops::Activation::linear, y.data());
  const std::string name = tape.checked() ? dense_name(dense) : "";
  Var result = made(tape, name, std::move(y));
  note_uses(tape, dense);
  if (tape.recording()) {
    record(tape, name, result, [dense, value, slot = x.gradient()](Tensor dy) {
      const InputGradient dx(slot);
      run_dense_backward(dense, all_rows(value), dy.data(), dx.data, dx.add);
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

Var feed_forward(Tape& tape, const Var& x, const Dense& first, ops::Activation act, const Dense& second) {
  check_matrix("feed_forward", x, first.in());
  if (second.in() != first.out()) fail("feed_forward", "expected W2 [F={}, H], got F={}", first.out(), second.in());
  const Tensor& value = x.value();
  const Device device = value.device();
  const std::int64_t rows = value.rows(), inner = first.out();
  Tensor y = tape.empty({rows, second.out()}, Purpose::activations, device);  // [M, H]
  const std::string name = tape.checked() ? "feed_forward " + first.parts.front().kernel->name : "";
  note_uses(tape, first);
  note_uses(tape, second);
  if (!tape.recording()) {
    const std::int64_t step = first.packed != nullptr ? std::min(rows, kFeedForwardRows) : rows;
    const Tensor h = tape.empty({step, inner}, Purpose::scratch, device);  // [step, F]: a part of the rows at a time
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t n = std::min(step, rows - row);
      run_dense(first, Weights::packed, {value.data() + row * value.cols(), n, device}, act, h.data());
      run_dense(second, Weights::packed, {h.data(), n, device}, ops::Activation::linear, y.data() + row * y.cols());
    }
    return made(tape, name, std::move(y));
  }
  Tensor z = Tensor::empty({rows, inner}, Purpose::activations, device);  // [M, F] kept for backward
  run_dense(first, Weights::own, all_rows(value), ops::Activation::linear, z.data());
  {
    const Tensor h = Tensor::empty({rows, inner}, Purpose::scratch, device);  // [M, F] not kept
    ops::activation_forward(device, act, z.data(), h.data(), z.size());
    run_dense(second, Weights::own, all_rows(h), ops::Activation::linear, y.data());
  }
  Var result = made(tape, name, std::move(y));
  record(tape, name, result, [first, act, second, value, z, slot = x.gradient()](Tensor dy) {
    const Device on = value.device();
    const Tensor dh = Tensor::empty(z.shape(), Purpose::scratch, on);
    {
      const Tensor h = Tensor::empty(z.shape(), Purpose::scratch, on);
      ops::activation_forward(on, act, z.data(), h.data(), z.size());
      run_dense_backward(second, all_rows(h), dy.data(), dh.data(), false);
    }
    dy = Tensor();
    ops::activation_backward(on, act, z.data(), dh.data(), dh.data(), z.size());
    const InputGradient dx(slot);
    run_dense_backward(first, all_rows(value), dh.data(), dx.data, dx.add);
  });
  return result;
}

namespace {

ops::EmbeddingTerm term(const Lookup& lookup, std::int64_t rows, std::int64_t cols) {
  ops::EmbeddingTerm result;
  if (lookup.table == nullptr) return result;
  if (static_cast<std::int64_t>(lookup.ids->size()) != rows) {
    fail("embedding", "{}: expected {} ids, got {}", lookup.name, rows, lookup.ids->size());
  }
  if (lookup.table->shape.at(1) != cols) {
    fail("embedding", "{}: expected a table [{}, {}], got [{}, {}]", lookup.table->name, lookup.table->shape[0], cols,
         lookup.table->shape[0], lookup.table->shape[1]);
  }
  result.table = data_of(lookup.table);
  result.limit = lookup.table->shape[0];
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
           // A gradient handed over may be changed in place, so two variables never get the same memory.
           if (adder_slot != nullptr && adder_slot->needed()) adder_slot->add(to_base ? de.clone() : de);
           if (to_base) base_slot->add(de);
         });
  return result;
}

std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs, const Stretch& now, Stretch again) {
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
