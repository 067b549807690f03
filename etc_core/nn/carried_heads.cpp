#include "etc_core/nn/carried_heads.h"

#include <utility>
#include <vector>

#include "etc_core/autograd/functions.h"

namespace etc {

namespace {

// x as rows of `width` numbers.
Var rows_of(Tape& tape, const Var& x, std::int64_t width) {
  return reshaped(tape, x, {x.value().size() / width, width});
}

// [T·N·parts, D] → [T, N·parts·D]
Var tokens_of(Tape& tape, const Var& rows, std::int64_t parts, HeadSizes sizes) {
  return rows_of(tape, rows, sizes.heads * parts * sizes.head_size);
}

}  // namespace

Var head_rows(Tape& tape, const Columns& columns, HeadSizes sizes) {
  const Var rows = rows_of(tape, columns.var, sizes.head_size);
  const std::int64_t tokens = columns.var.value().rows(), all = columns.var.value().cols() / sizes.head_size;
  if (all == sizes.heads) return rows;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < tokens * sizes.heads; ++i) {
    chosen.push_back(i / sizes.heads * all + columns.first / sizes.head_size + i % sizes.heads);
  }
  return gather_rows(tape, rows, std::move(chosen));
}

Var join_heads(Tape& tape, const Var& before, const Var& own, HeadSizes sizes) {
  if (!before.defined()) return tokens_of(tape, own, 1, sizes);
  const Var earlier = rows_of(tape, before, sizes.head_size);
  const std::int64_t own_rows = own.value().rows(), earlier_rows = earlier.value().rows();
  const std::int64_t parts = earlier_rows / own_rows;  // of each head, in `before`
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < own_rows; ++i) {
    for (std::int64_t part = 0; part < parts; ++part) chosen.push_back(i * parts + part);
    chosen.push_back(earlier_rows + i);
  }
  return tokens_of(tape, gather_rows(tape, join_rows(tape, earlier, own), std::move(chosen)), parts + 1, sizes);
}

Var pad_heads(Tape& tape, const Var& own, std::int64_t parts, HeadSizes sizes) {
  const Tensor zeros = Tensor::empty({1, sizes.head_size}, Purpose::activations, own.value().device());
  zeros.zero();
  const std::int64_t own_rows = own.value().rows();
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < own_rows * parts; ++i) chosen.push_back(i % parts == 0 ? i / parts : own_rows);
  return tokens_of(tape, gather_rows(tape, join_rows(tape, own, Var(zeros)), std::move(chosen)), parts, sizes);
}

Var first_of_heads(Tape& tape, const Var& x, std::int64_t parts, HeadSizes sizes) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < x.value().rows() * sizes.heads; ++i) chosen.push_back(i * parts);
  return tokens_of(tape, gather_rows(tape, rows_of(tape, x, sizes.head_size), std::move(chosen)), 1, sizes);
}

}  // namespace etc
