// Interface of a task whose loss compares the examples of a whole optimiser batch with each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tasks/task.h"

namespace etc {

// Rows of numbers that the losses of one optimiser batch have in common, in the order of its micro-batches.
struct BatchRows {
  std::vector<float> numbers;                      // [rows, width]
  std::map<std::int64_t, std::int64_t> first_row;  // of each micro-batch, by the sample_ordinal of its first example
};

// Gradient accumulation equals one big batch as follows: before the backward passes every micro-batch is computed once
// without a backward pass, and the rows that the losses compare are collected (Gao, Zhang, Han and Callan, "Scaling Deep
// Contrastive Learning Batch Size under Memory Limited Setup", 2021). loss() of a micro-batch then takes its share of
// the whole batch's loss and gradient.
class ComparesBatch {
 public:
  virtual ~ComparesBatch() = default;

  // Whether this configuration of the task compares examples at all.
  virtual bool compares() const = 0;

  // What the losses of other micro-batches need of this one, in host memory.
  virtual std::vector<float> compared_rows(const HeadOutput& outputs) const = 0;

  // For the following calls of loss() with micro-batches of these rows. counts: the denominators of the whole batch.
  virtual void compare_with(const BatchRows& rows, std::span<const double> counts) = 0;
  // loss() compares the examples of a micro-batch only with each other, as it does at first.
  virtual void compare_micro_batches() = 0;

  // Bytes that comparing a batch takes at its peak, of this many rows.
  virtual std::int64_t bytes_of_comparing(std::int64_t rows) const = 0;
  // The rows of one example.
  virtual std::int64_t rows_of(const data::LoadedExample& example) const = 0;
};

}  // namespace etc
