#include "sparse/cuda/table_sums.h"

#include "etc_core/base/integers.h"
#include "sparse/cuda/backend_support.h"
#include "sparse/cuda/launch.h"

namespace etc::sparse::cuda {

namespace {

constexpr std::int64_t kRowsOfItem = 256;  // rows of the tables per work item of a part

}  // namespace

TableColumns table_columns(const AttentionInputs& in) {
  TableColumns columns;
  if (!is_pairwise(in)) return columns;
  const auto take = [&](bool has, std::int64_t size, int& first) {
    if (!has) return;
    first = columns.width;
    columns.width += static_cast<int>(size);
  };
  const RelativeTable& tables = in.relative;
  take(tables.vectors != nullptr, in.head_size, columns.rel);
  take(tables.key_vectors != nullptr, in.head_size, columns.rel_k);
  take(tables.products != nullptr || tables.factors != nullptr, in.head_size, columns.product);
  take(tables.value_vectors != nullptr, in.head_size, columns.rel_v);
  take(tables.biases != nullptr, 1, columns.bias);
  return columns;
}

TableColumns label_columns(const AttentionInputs& in) {
  TableColumns columns;
  columns.rel = 0;
  columns.bias = static_cast<int>(in.head_size);
  columns.width = columns.bias + 1;
  return columns;
}

std::int64_t items_of_part(const AttentionInputs& in) {
  // With tiles per head, a part has sums of all heads, and the number of items is multiplied by the heads.
  return in.relative.rows() == 0 ? 1 : ceil_div(in.relative.rows(), kRowsOfItem) * in.tiles->types[0].heads;
}

std::int64_t table_sum_floats(const AttentionInputs& in, const DevicePlan& plan) {
  if (!is_pairwise(in)) return 0;
  const std::int64_t parts = ceil_div(plan.work.items.size, items_of_part(in));
  return parts * in.heads * in.relative.rows() * table_columns(in).width;
}

void sum_tables(const AttentionBackward& args, const PartialSums& partial) {
  const AttentionInputs& in = args.inputs;
  const RelativeTable& tables = in.relative;
  const int size = static_cast<int>(in.head_size);
  const auto sum = [&](float* gradient, const float* table, int first, int columns, bool folded) {
    if (table == nullptr) return;
    TableSumParams params;
    params.heads = in.heads;
    params.table_heads = tables.heads(in.heads);
    params.rows = tables.labels;
    params.partial = partial.sums;
    params.parts = partial.parts;
    params.width = partial.columns.width;
    params.first = first;
    params.columns = columns;
    params.folded = folded;
    params.gradient = {gradient, params.rows * params.table_heads * (folded ? 1 : columns)};
    launch_table_sum(params, simt::stream());
  };
  const TableColumns& columns = partial.columns;
  sum(args.drelative.vectors, tables.vectors, columns.rel, size, false);
  sum(args.drelative.biases, tables.biases, columns.bias, 1, false);
  sum(args.drelative.key_vectors, tables.key_vectors, columns.rel_k, size, false);
  sum(args.drelative.factors, tables.factors, columns.product, size, true);
  sum(args.drelative.products, tables.products, columns.product, size, false);
  sum(args.drelative.value_vectors, tables.value_vectors, columns.rel_v, size, false);
}

}  // namespace etc::sparse::cuda
