#include "sparse/cuda/backend_support.h"

#include <vector>

#include "etc_core/base/error.h"

namespace etc::sparse::cuda {

// Unsupported calls are reported before any kernel runs.
void check_supported(const AttentionInputs& in) {
  // The tiles of larger heads do not fit into a block's shared memory.
  const int most = is_pairwise(in) ? kMaxPairwiseHead : uses_bf16(in) ? kMaxBf16Head : kMaxFp32Head;
  if (in.head_size > most) {
    fail(in.tiles->op->name, "cuda: expected a head size of at most D={} in {}{}, got D={} (the cpu takes any)", most,
         compute_type_name(uses_bf16(in) ? ComputeType::bf16 : ComputeType::fp32),
         is_pairwise(in) ? " with terms pair by pair, or a pattern of each head" : "", in.head_size);
  }
  // An item has tiles of both key sets, which must belong to one head.
  const TypeTiles &first = in.tiles->types[0], &second = in.tiles->types[1];
  if (first.heads != second.heads && second.columns > 0) {
    fail(in.tiles->op->name,
         "cuda: tiles of {}: expected as many patterns as those of {}: {}, got {} (the cpu takes both)",
         second.type.name, first.type.name, first.heads, second.heads);
  }
}

// Words of the bf16 copy, rows padded to a supported width; 0 if the kernels read the caller's rows directly.
std::int64_t converted_words(std::int64_t rows, const AttentionInputs& in) {
  return uses_bf16(in) && in.type == ElementType::fp32
             ? rows * in.heads * (bf16_width(static_cast<int>(in.head_size)) / 2)
             : 0;
}

// The order of the arrays defines the layout; both the counting and the reserving call run this code.
CommonScratch::CommonScratch(simt::Carver& carver, const AttentionInputs& in, const DevicePlan& plan) {
  // Sizes follow from the tiles, because the rows may be unset when only the size is wanted.
  const TypeTiles& first = in.tiles->types[0];
  q = carver.take<std::uint32_t>(converted_words(first.queries(), in));
  for (int t = 0; t < 2; ++t) {
    k[t] = carver.take<std::uint32_t>(converted_words(in.tiles->types[t].keys(), in));
    v[t] = carver.take<std::uint32_t>(converted_words(in.tiles->types[t].keys(), in));
  }
  table = carver.take<float>(in.heads * plan.group_rows.size * sizes_of(in).labels * kGroup);
  dropout_keys = carver.take<std::uint64_t>(in.dropout.rate > 0.0f ? first.examples() : 0);
  range = carver.take<std::int32_t>(2);
}

// shared_labels and buffers are decided at launch, kernel by kernel (fit_shared).
AttentionSizes sizes_of(const AttentionInputs& in) {
  AttentionSizes sizes;
  sizes.heads = in.heads;
  sizes.queries = in.q.rows;
  sizes.head_size = static_cast<int>(in.head_size);
  const int rows = static_cast<int>(in.relative.rows());
  sizes.pairwise = is_pairwise(in);
  sizes.labels = is_pairwise(in) ? 0 : rows;
  sizes.table_rows = is_pairwise(in) ? rows : 0;
  sizes.table_heads = in.relative.heads(in.heads);
  sizes.scale = score_scale(in);
  return sizes;
}

// The CPU's threshold and scale, so that the same pairs are kept on every device.
DropoutView dropout_view(const AttentionInputs& in, const CommonScratch& scratch) {
  DropoutView view;
  view.keys = simt::read_only(scratch.dropout_keys);
  view.threshold = dropout_threshold(in.dropout.rate);
  view.kept_scale = 1.0f / (1.0f - in.dropout.rate);
  return view;
}

namespace {
// Count from the first number of a tensor to the last that may be accessed; kernel accesses are checked against it.
std::int64_t numbers_in(std::int64_t rows, std::int64_t stride, const AttentionInputs& in) {
  return rows == 0 ? 0 : (rows - 1) * stride + in.heads * in.head_size;
}
}  // namespace

Output output_of(const MutableRows& rows, const AttentionInputs& in) {
  const std::int64_t size = numbers_in(rows.rows, rows.stride, in);
  if (in.type == ElementType::fp32) return {{rows.data, size}, {}, rows.stride};
  return {{}, {reinterpret_cast<std::uint32_t*>(rows.bf16), size / 2}, rows.stride};
}

// Token-major: head n of row t at n*D + t*stride.
Operand<float> fp32_operand(const Rows& rows, const AttentionInputs& in) {
  return {{rows.data, numbers_in(rows.rows, rows.stride, in)}, in.head_size, rows.stride};
}

Operand<std::uint32_t> bf16_operand(const Rows& rows, const AttentionInputs& in) {
  return {{reinterpret_cast<const std::uint32_t*>(rows.bf16), numbers_in(rows.rows, rows.stride, in) / 2},
          in.head_size / 2,
          rows.stride / 2};
}

NumberRows numbers_of(const Rows& rows, const AttentionInputs& in) {
  const bool bf16 = in.type == ElementType::bf16;
  return {bf16 ? Span<const float>{} : fp32_operand(rows, in).values,
          bf16 ? bf16_operand(rows, in).values : Span<const std::uint32_t>{}, in.head_size, rows.stride};
}

Operand<std::uint32_t> operand_of(const Span<std::uint32_t>& converted, std::int64_t rows, const AttentionInputs& in) {
  // Head-major after conversion: a head's rows are contiguous, so copies of tiles are whole cache lines.
  const std::int64_t words = bf16_width(static_cast<int>(in.head_size)) / 2;
  return {simt::read_only(converted), rows * words, words};
}

void convert(const Rows& from, const AttentionInputs& in, const Span<std::uint32_t>& to) {
  if (in.type == ElementType::bf16) return;
  ConvertParams params;
  params.from = fp32_operand(from, in);
  params.to = to;
  params.heads = in.heads;
  params.rows = from.rows;
  params.head_size = static_cast<int>(in.head_size);
  params.width = bf16_width(params.head_size);
  launch_convert(params, simt::stream());
}

WorkList work_of(const AttentionInputs& in, const DevicePlan& plan) {
  WorkList work = plan.work;
  for (int t = 0; t < 2 && in.relative.rows() == 0; ++t) {
    work.types[t].label = {};
    work.types[t].distance = {};
  }
  return work;
}

TableViews table_views(const AttentionInputs& in) {
  TableViews views;
  if (!is_pairwise(in)) return views;
  const RelativeTable& given = in.relative;
  const std::int64_t rows = given.labels * given.heads(in.heads);
  const auto view = [&](const float* table, std::int64_t size) {
    return Span<const float>{table, table == nullptr ? 0 : rows * size};
  };
  views.rel = view(given.vectors, in.head_size);
  views.rel_k = view(given.key_vectors, in.head_size);
  views.w = view(given.products, in.head_size);
  views.rel_v = view(given.value_vectors, in.head_size);
  views.rel_bias = view(given.biases, 1);
  views.factor = view(given.factors, 1);
  return views;
}

void prepare(const AttentionInputs& in, const DevicePlan& plan, const CommonScratch& scratch) {
  // Set by kernels, read by check_range.
  simt::fill_zero(scratch.range.data, scratch.range.size * static_cast<std::int64_t>(sizeof(std::int32_t)));
  if (uses_bf16(in)) {
    convert(in.q, in, scratch.q);
    for (int t = 0; t < 2; ++t) {
      convert(in.keys[t].k, in, scratch.k[t]);
      convert(in.keys[t].v, in, scratch.v[t]);
    }
  }
  if (sizes_of(in).labels > 0) {
    TableParams params;
    params.sizes = sizes_of(in);
    params.q = numbers_of(in.q, in);
    // Rows of the tables: [R, N] or [R]; either part may be missing.
    const std::int64_t width = in.relative.labels * params.sizes.table_heads;
    params.rel = {in.relative.vectors, in.relative.vectors == nullptr ? 0 : width * in.head_size};
    params.rel_bias = {in.relative.biases, in.relative.biases == nullptr ? 0 : width};
    params.group_rows = plan.group_rows;
    params.group_sizes = plan.group_sizes;
    params.table = scratch.table;
    launch_table(params, simt::stream());
  }
  if (scratch.dropout_keys.size > 0) {
    // There is one stream per example, so the host derives them with etc_core/base/random.h.
    std::vector<std::uint64_t> keys;
    for (std::int64_t b = 0; b < scratch.dropout_keys.size; ++b) {
      keys.push_back(dropout_key(in.dropout.seed, static_cast<std::uint64_t>(in.dropout.sample_ordinals[b]),
                                 in.dropout.layer, in.tiles->op->dropout_site));
    }
    simt::copy_to_device(scratch.dropout_keys.data, keys.data(),
                         scratch.dropout_keys.size * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  }
}

}  // namespace etc::sparse::cuda
