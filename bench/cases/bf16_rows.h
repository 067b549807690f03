// Attention problems with rows in bf16, the output type of the GEMMs of an encoder in bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/cases/attention.h"
#include "etc_core/base/bf16.h"

namespace etc::bench {

// The numbers of a RowBuffer as bf16, at the same positions, with guard zones that no kernel may access.
class Bf16Rows {
 public:
  Bf16Rows() = default;
  explicit Bf16Rows(const RowBuffer& of);
  sparse::Rows rows() const { return {nullptr, stride_, count_, all_.data()}; }
  sparse::MutableRows mutable_rows() { return {nullptr, stride_, count_, all_.data()}; }
  bool guards_intact() const;
  std::vector<float> used() const;  // [rows, width]

 private:
  std::int64_t stride_ = 0, count_ = 0, width_ = 0;
  Buffer<Bf16> all_;
};

// The same problem with q, k, v, dout, out and all gradients of rows in bf16; tables, their gradients and lse are those
// of `problem`.
struct Bf16Problem {
  explicit Bf16Problem(const AttentionProblem& of);

  sparse::AttentionInputs inputs() const;
  void forward(const sparse::TypeScores& first = {}, const sparse::TypeScores& second = {});
  void backward(const sparse::TypeScoreGradients& first = {}, const sparse::TypeScoreGradients& second = {});

  AttentionProblem problem;
  Bf16Rows q, k[2], v[2], dout;
  Bf16Rows out, dq, dk[2], dv[2];

 private:
  Buffer<std::uint8_t> forward_scratch_, backward_scratch_;
};

}  // namespace etc::bench
