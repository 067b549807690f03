#include "etc_core/autograd/ngram.h"

#include <algorithm>

#include "etc_core/autograd/recording.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/segments.h"

namespace etc {

using namespace recording;

namespace {

using Operator = void (*)(Device, const ops::Segments&);

void run(Operator op, const SegmentOffsets& offsets, const Tensor& rows, const Tensor& of_segments, bool add) {
  ops::Segments args{.segments = of_segments.rows(),
                     .cols = of_segments.cols(),
                     .offsets = offsets->data(),
                     .rows = rows.data(),
                     .of_segments = of_segments.data(),
                     .add = add};
  op(rows.device(), args);
}

// Memory of the input's gradient, and whether to add to it.
struct GradientRows {
  explicit GradientRows(Gradient& gradient) : add(gradient.defined()), tensor(gradient.storage()) {}
  bool add;
  Tensor tensor;
};

// Calls body(first, end) for the rows j that start no phrase, because rows j … j+k−1 are not all in one example.
template <typename Body>
void for_starts_without_phrase(const RaggedRows& rows, std::int64_t k, Body body) {
  for (std::size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    body(std::max(rows.offsets[b], rows.offsets[b + 1] - k + 1), rows.offsets[b + 1]);
  }
}

void clear_rows(const Tensor& x, std::int64_t first, std::int64_t end) {
  zero_bytes(x.device(), x.data() + first * x.cols(),
             (end - first) * x.cols() * static_cast<std::int64_t>(sizeof(float)));
}

// Adds to the gradients of kernel, bias and, through its slot, x [M, H]. Clears rows of dy [M, out] that start no
// phrase.
void ngram_backward(const Tensor& x, const RaggedRows& rows, Parameter& kernel, Parameter& bias, const Slot& slot,
                    const Tensor& dy) {
  const std::int64_t size = kernel.shape[0], width = kernel.shape[1], columns = kernel.shape[2];
  for_starts_without_phrase(rows, size, [&](std::int64_t first, std::int64_t end) { clear_rows(dy, first, end); });
  InputGradient dx(slot);
  if (dx.data != nullptr && !dx.add) slot->tensor().zero();  // every row is added to, up to k times
  ops::LinearBackward back{.rows = std::max<std::int64_t>(0, x.rows() - size + 1),
                           .in = width,
                           .out = columns,
                           .dz = dy.data(),
                           .dz_stride = columns,
                           .x_stride = width,
                           .dx_stride = width,
                           .add_to_dx = true};
  for (std::int64_t t = 0; t < size; ++t) {
    // forward: y_j += x_{j+t}·kernel[t]; so dx_{j+t} += dy_j·kernel[t]ᵀ and dkernel[t] += x_{j+t}ᵀ·dy_j.
    back.x = x.data() + t * width;
    back.weight = data_of(&kernel) + t * width * columns;
    back.dx = dx.data != nullptr ? dx.data + t * width : nullptr;
    back.dweight = kernel.gradient().data() + t * width * columns;
    back.dbias = t == 0 ? bias.gradient().data() : nullptr;
    ops::linear_backward(x.device(), back);
  }
}

}  // namespace

Var sum_segments(Tape& tape, const Var& x, const SegmentOffsets& offsets) {
  const Tensor& value = x.value();
  const auto count = static_cast<std::int64_t>(offsets->size()) - 1;
  if (offsets->back() != value.rows()) {
    fail("sum_segments", "expected the segments to own all M={} rows, got {}", value.rows(), offsets->back());
  }
  const Tensor y = tape.empty({count, value.cols()}, Purpose::activations, value.device());
  run(ops::sum_segments, offsets, value, y, false);
  Var result = made(tape, "sum_segments", y);
  if (!tape.recording() || !x.needs_grad()) return result;
  record(tape, "sum_segments", result, [offsets, slot = x.gradient()](const Tensor& dy) {
    const GradientRows dx(*slot);
    run(ops::spread_segments, offsets, dx.tensor, dy, dx.add);
  });
  return result;
}

Var spread_segments(Tape& tape, const Var& x, const SegmentOffsets& offsets) {
  const Tensor& value = x.value();
  if (static_cast<std::int64_t>(offsets->size()) - 1 != value.rows()) {
    fail("spread_segments", "expected {} segments, got x {}", offsets->size() - 1, value.shape_text());
  }
  const Tensor y = tape.empty({offsets->back(), value.cols()}, Purpose::activations, value.device());
  run(ops::spread_segments, offsets, y, value, false);
  Var result = made(tape, "spread_segments", y);
  if (!tape.recording() || !x.needs_grad()) return result;
  record(tape, "spread_segments", result, [offsets, slot = x.gradient()](const Tensor& dy) {
    const GradientRows dx(*slot);
    run(ops::sum_segments, offsets, dy, dx.tensor, dx.add);
  });
  return result;
}

Var ngram_convolution(Tape& tape, const Var& x, const std::shared_ptr<const RaggedRows>& rows, Parameter& kernel,
                      Parameter& bias) {
  const std::int64_t k = kernel.shape.at(0), in = kernel.shape.at(1), out = kernel.shape.at(2);
  check_matrix("ngram_convolution", x, in);
  const Tensor& value = x.value();
  const std::int64_t count = value.rows();
  if (rows->offsets.back() != count) {
    fail("ngram_convolution", "expected examples of M={} rows, got {}", count, rows->offsets.back());
  }
  // One sum of k products for the whole batch: rows that reach into the next example are also computed, then cleared.
  const std::int64_t starts = std::max<std::int64_t>(0, count - k + 1);
  const Tensor y = tape.empty({count, out}, Purpose::activations, value.device());  // [M, out]
  const Tensor product =                                                            // [starts, out] of one t
      k > 1 && starts > 0 ? tape.empty({starts, out}, Purpose::activations, value.device()) : Tensor();
  ops::LinearForward args{.rows = starts, .in = in, .out = out, .x_stride = in, .y_stride = out};
  for (std::int64_t t = 0; t < k; ++t) {
    args.x = value.data() + t * in;                 // [starts, H] rows t … of x
    args.weight = data_of(&kernel) + t * in * out;  // [H, out]
    args.bias = t == 0 ? data_of(&bias) : nullptr;
    args.y = t == 0 ? y.data() : product.data();
    ops::linear(value.device(), args);
    if (t > 0) ops::axpy(value.device(), 1, product.data(), y.data(), starts * out);
  }
  for_starts_without_phrase(*rows, k, [&](std::int64_t first, std::int64_t end) { clear_rows(y, first, end); });
  const std::string name = tape.checked() ? "ngram_convolution " + kernel.name : "";
  tape.uses(&kernel);
  tape.uses(&bias);
  Var result = made(tape, name, y);
  if (!tape.recording()) return result;
  record(tape, name, result, [&kernel, &bias, rows, value, slot = x.gradient()](const Tensor& dy) {
    ngram_backward(value, *rows, kernel, bias, slot, dy);
  });
  return result;
}

}  // namespace etc
