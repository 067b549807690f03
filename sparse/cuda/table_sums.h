// From partial sums to the gradients of the relative tables: which columns a row of sums has, and their launches.
#pragma once

#include <cstdint>

#include "sparse/attention.h"
#include "sparse/cuda/attention_params.h"
#include "sparse/cuda/attention_plan.h"

namespace etc::sparse::cuda {

// Pairwise terms: columns for the tables a call has, the work items whose pairs one part of the sums takes, and all
// floats of them; 0 without such terms. Parts grow with the rows, so that sums stay within a few times the queries.
TableColumns table_columns(const AttentionInputs& in);
std::int64_t items_of_part(const AttentionInputs& in);
std::int64_t table_sum_floats(const AttentionInputs& in, const DevicePlan& plan);

// Those of LabelTerms: D of rel and one of rel_bias, whether both are there or not.
TableColumns label_columns(const AttentionInputs& in);

struct PartialSums {
  std::int64_t parts = 0;
  TableColumns columns;
  Span<const float> sums;  // [parts, N, R, width]
};

// Gradients of all tables a call has += their columns. One launch after the other: two tables may share a gradient.
void sum_tables(const AttentionBackward& args, const PartialSums& partial);

}  // namespace etc::sparse::cuda
