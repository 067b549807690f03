#include "bench/cases/bf16_rows.h"

namespace etc::bench {

namespace {

constexpr std::uint16_t kMark = 0x7abc;  // fills the space between the rows

// Grows the scratch to at least `bytes`.
void* room(Buffer<std::uint8_t>& scratch, std::int64_t bytes) {
  if (scratch.size() < bytes) scratch = Buffer<std::uint8_t>(bytes, Purpose::scratch);
  return scratch.data();
}

}  // namespace

Bf16Rows::Bf16Rows(const RowBuffer& of)
    : stride_(of.stride), count_(of.count), width_(of.width), all_(of.stride * of.count, Purpose::activations) {
  for (std::int64_t row = 0; row < count_; ++row) {
    for (std::int64_t column = 0; column < stride_; ++column) {
      const std::int64_t at = row * stride_ + column;
      all_[at] = {column < width_ ? bf16_from_float(of.values[at]) : kMark};
    }
  }
}

bool Bf16Rows::guards_intact() const {
  for (std::int64_t row = 0; row < count_; ++row) {
    for (std::int64_t column = width_; column < stride_; ++column) {
      if (all_[row * stride_ + column].bits != kMark) return false;
    }
  }
  return true;
}

std::vector<float> Bf16Rows::used() const {
  std::vector<float> values;
  for (std::int64_t row = 0; row < count_; ++row) {
    for (std::int64_t column = 0; column < width_; ++column) {
      values.push_back(float_from_bf16(all_[row * stride_ + column].bits));
    }
  }
  return values;
}

Bf16Problem::Bf16Problem(const AttentionProblem& of)
    : problem(of.setup, of.structure, of.side, of.layer),
      q(of.q),
      k{Bf16Rows(of.k[0]), Bf16Rows(of.k[1])},
      v{Bf16Rows(of.v[0]), Bf16Rows(of.v[1])},
      dout(of.dout),
      out(problem.out),
      dq(problem.dq),
      dk{Bf16Rows(problem.dk[0]), Bf16Rows(problem.dk[1])},
      dv{Bf16Rows(problem.dv[0]), Bf16Rows(problem.dv[1])} {
  problem.device = of.device;
}

sparse::AttentionInputs Bf16Problem::inputs() const {
  sparse::AttentionInputs in = problem.inputs();
  in.type = ElementType::bf16;
  in.q = q.rows();
  for (int t = 0; t < 2; ++t) in.keys[t] = {k[t].rows(), v[t].rows()};
  return in;
}

void Bf16Problem::forward(const sparse::TypeScores& first, const sparse::TypeScores& second) {
  const sparse::AttentionInputs in = inputs();
  void* const scratch = room(forward_scratch_, sparse::attention_forward_scratch_bytes(problem.device, in));
  sparse::attention_forward(problem.device, {in, {first, second}, out.mutable_rows(), problem.lse.data(), scratch});
}

void Bf16Problem::backward(const sparse::TypeScoreGradients& first, const sparse::TypeScoreGradients& second) {
  sparse::AttentionBackward args;
  args.inputs = inputs();
  args.scores = {first, second};
  args.out = out.rows();
  args.lse = problem.lse.data();
  args.dout = dout.rows();
  args.dq = dq.mutable_rows();
  for (int t = 0; t < 2; ++t) args.dkeys[t] = {dk[t].mutable_rows(), dv[t].mutable_rows()};
  if (args.inputs.relative.vectors != nullptr) args.drelative.vectors = problem.drel.data();
  if (args.inputs.relative.biases != nullptr) args.drelative.biases = problem.drel_bias.data();
  if (args.inputs.relative.factors != nullptr) args.drelative.factors = problem.dfactor.data();
  args.scratch = room(backward_scratch_, sparse::attention_backward_scratch_bytes(problem.device, args.inputs));
  sparse::attention_backward(problem.device, args);
}

}  // namespace etc::bench
