// Choosing, joining and reshaping rows of variables.
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

void copy_numbers(Device device, const float* from, float* to, std::int64_t count) {
  if (!counting()) copy_bytes(device, to, device, from, count * static_cast<std::int64_t>(sizeof(float)));
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
  const Device device = upper.device();
  Tensor y = tape.empty({upper.rows() + lower.rows(), upper.cols()}, Purpose::activations, device);
  copy_numbers(device, upper.data(), y.data(), upper.size());
  copy_numbers(device, lower.data(), y.data() + upper.size(), lower.size());
  Var result = made(tape, "join_rows", std::move(y));
  if (!tape.recording()) return result;
  const std::array<Slot, 2> slots = {x_0.gradient(), x_1.gradient()};
  const std::array<std::vector<std::int64_t>, 2> shapes = {upper.shape(), lower.shape()};
  record(tape, "join_rows", result, [slots, shapes](Tensor dy) {
    const float* from = dy.data();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Tensor dx = Tensor::empty(shapes[i], Purpose::activations, dy.device());
      copy_numbers(dy.device(), from, dx.data(), dx.size());
      from += dx.size();
      if (slots[i]->needed()) slots[i]->add(dx);
    }
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
