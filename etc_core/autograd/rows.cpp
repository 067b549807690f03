// Choosing, joining, cutting out and reshaping rows of variables.
#include <array>
#include <utility>

#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/recording.h"
#include "etc_core/base/counting.h"
#include "etc_core/base/device_memory.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/embedding.h"

namespace etc {

using namespace recording;

namespace {

// The address of number `at` of a tensor of either type.
void* address(const Tensor& x, std::int64_t at) {
  return x.type() == ElementType::bf16 ? static_cast<void*>(x.bf16() + at) : x.data() + at;
}

// Copies as many numbers as `like` has, of its type and on its device.
void copy_numbers(const Tensor& like, const void* from, void* to) {
  const Device device = like.device();
  if (!counting()) copy_bytes(device, to, device, from, like.size() * element_bytes(like.type()));
}

}  // namespace

Var gather_rows(Tape& tape, const Var& x, std::vector<std::int64_t> rows) {
  const std::int64_t limit = x.value().rows(), width = x.value().cols();
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= limit) fail("gather_rows", "expected rows 0 … {}, got {}", limit - 1, row);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const Device device = x.value().device();
  Tensor y = tape.empty({count, width}, Purpose::activations, device);
  // Choosing rows is an embedding whose table is x.
  const std::vector<std::int32_t> ids(rows.begin(), rows.end());
  ops::EmbeddingForward args{
      .rows = count, .cols = width, .tokens = {x.value().data(), limit, ids.data(), "rows"}, .e = y.data()};
  ops::embedding(device, args);
  Var result = made(tape, "gather_rows", std::move(y));
  if (!tape.recording()) return result;
  record(tape, "gather_rows", result, [slot = x.gradient(), limit, ids](Tensor dy) {
    if (!slot->needed()) return;
    const bool first = !slot->defined();
    const Tensor& dx = slot->storage();  // [M, H]
    if (first) dx.zero();
    ops::EmbeddingBackward back{
        .rows = dy.rows(), .cols = dy.cols(), .limit = limit, .de = dy.data(), .ids = ids.data(), .dtable = dx.data()};
    ops::embedding_backward(dy.device(), back);
  });
  return result;
}

Var join_rows(Tape& tape, const Var& x_0, const Var& x_1) {
  const Tensor &upper = x_0.value(), &lower = x_1.value();
  check_matrix("join_rows", x_1, upper.cols());
  if (upper.type() != lower.type()) {
    fail("join_rows", "expected rows of one number type, got {} and {}", element_type_name(upper.type()),
         element_type_name(lower.type()));
  }
  Tensor y =
      tape.empty({upper.rows() + lower.rows(), upper.cols()}, Purpose::activations, upper.device(), upper.type());
  copy_numbers(upper, address(upper, 0), address(y, 0));
  copy_numbers(lower, address(lower, 0), address(y, upper.size()));
  Var result = made(tape, "join_rows", std::move(y));
  if (!tape.recording()) return result;
  const std::array<Slot, 2> slots = {x_0.gradient(), x_1.gradient()};
  const std::array<std::vector<std::int64_t>, 2> shapes = {upper.shape(), lower.shape()};
  record(tape, "join_rows", result, [slots, shapes](Tensor dy) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Tensor dx = Tensor::empty(shapes[i], Purpose::activations, dy.device(), dy.type());
      copy_numbers(dx, address(dy, at), address(dx, 0));
      at += dx.size();
      if (slots[i]->needed()) slots[i]->add(dx);
    }
  });
  return result;
}

Var row_range(Tape& tape, const Var& x, std::int64_t first, std::int64_t count) {
  const Tensor& value = x.value();
  if (first < 0 || count < 0 || first + count > value.rows()) {
    fail("row_range", "expected rows of x {}, got {} from row {} on", value.shape_text(), count, first);
  }
  Tensor y = tape.empty({count, value.cols()}, Purpose::activations, value.device(), value.type());
  copy_numbers(y, address(value, first * value.cols()), address(y, 0));
  Var result = made(tape, "row_range", std::move(y));
  if (!tape.recording()) return result;
  record(tape, "row_range", result, [slot = x.gradient(), first, shape = value.shape()](Tensor dy) {
    if (!slot->needed()) return;
    const Tensor dx = Tensor::empty(shape, Purpose::activations, dy.device(), dy.type());  // [M, H]
    dx.zero();
    copy_numbers(dy, address(dy, 0), address(dx, first * dx.cols()));
    slot->add(dx);
  });
  return result;
}

Var reshaped(Tape& tape, const Var& x, std::vector<std::int64_t> shape) {
  Var result = made(tape, "reshaped", x.value().reshaped(std::move(shape)));
  if (!tape.recording()) return result;
  record(tape, "reshaped", result, [slot = x.gradient(), own = x.value().shape()](Tensor dy) {
    if (slot->needed()) slot->add(dy.reshaped(own));
  });
  return result;
}

}  // namespace etc
