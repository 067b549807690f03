// Adds partial sums to the gradients of the relative tables: the columns of a row of sums, and the launches.
#pragma once

#include <cstdint>

#include "sparse/attention.h"
#include "sparse/cuda/attention_params.h"
#include "sparse/cuda/attention_plan.h"

namespace etc::sparse::cuda {

// Pairwise terms: the columns of a call's tables, the number of work items whose pairs are added to one part of the
// sums, and the floats of all parts; 0 without such terms. Parts grow with the rows, which limits the sums to a few
// times q.
TableColumns table_columns(const AttentionInputs& in);
std::int64_t items_of_part(const AttentionInputs& in);
std::int64_t table_sum_floats(const AttentionInputs& in, const DevicePlan& plan);

// The columns of LabelTerms: D of rel and one of rel_bias, even if one of them is absent.
TableColumns label_columns(const AttentionInputs& in);

struct PartialSums {
  std::int64_t parts = 0;
  TableColumns columns;
  Span<const float> sums;  // [parts, N, R, width]
};

// Gradients of all tables of a call += their columns. Launches run one after the other: two tables may share a
// gradient.
void sum_tables(const AttentionBackward& args, const PartialSums& partial);

}  // namespace etc::sparse::cuda
