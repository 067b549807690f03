#include "etc_core/autograd/position_bias.h"

#include "etc_core/autograd/recording.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/position_bias.h"

namespace etc {

using namespace recording;

namespace {

constexpr const char* kName = "position_bias";

void check(const Tensor& rel, std::int64_t heads, const QueryBiases& biases) {
  if (rel.rank() != 2 || heads < 1 || rel.cols() % heads != 0) {
    fail(kName, "rel: expected [R, N·D] with N={}, got {}", heads, rel.shape_text());
  }
  for (const Parameter* bias : {biases.content, biases.position}) {
    if (bias == nullptr || bias->size() == rel.cols()) continue;
    fail(kName, "{}: expected N·D={} numbers, got {}", bias->name, rel.cols(), bias->size());
  }
}

// dy [R, N]
void add_gradients(const Tensor& rel, const QueryBiases& biases, Gradient& drel, const Tensor& dy) {
  ops::PositionBiasBackward args;
  args.rows = rel.rows();
  args.heads = dy.cols();
  args.head_size = rel.cols() / dy.cols();
  args.rel = rel.data();
  args.content = data_of(biases.content);
  args.position = data_of(biases.position);
  args.dy = dy.data();
  if (drel.needed()) {
    const bool first = !drel.defined();
    const Tensor& own = drel.storage();
    if (first) own.zero();
    args.drel = own.data();
  }
  args.dcontent = biases.content == nullptr ? nullptr : biases.content->gradient().data();
  args.dposition = biases.position == nullptr ? nullptr : biases.position->gradient().data();
  ops::position_bias_backward(rel.device(), args);
}

}  // namespace

Var position_bias(Tape& tape, const Var& rel, std::int64_t heads, const QueryBiases& biases) {
  const Tensor rows = rel.value();
  check(rows, heads, biases);
  Tensor y = tape.empty({rows.rows(), heads}, Purpose::activations, rows.device());
  ops::position_bias(rows.device(), {rows.rows(), heads, rows.cols() / heads, rows.data(), data_of(biases.content),
                                     data_of(biases.position), y.data()});
  Var result = made(tape, kName, std::move(y));
  tape.uses(biases.content);
  tape.uses(biases.position);
  if (!tape.recording()) return result;
  record(tape, kName, result,
         [rows, biases, slot = rel.gradient()](const Tensor& dy) { add_gradients(rows, biases, *slot, dy); });
  return result;
}

}  // namespace etc
