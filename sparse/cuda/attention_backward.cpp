// Backward: scratch, and the order of the kernels.
//   convert (bf16), table   as forward
//   delta                   dout·out of every query
//   keys                    dk, dv; reads C and dC as written by the layer above
//   queries                 dq, dC, C rewound (this layer's scores subtracted), label sums
//   sums                    partial dk, dv, dq and label sums of split items
//   relative, tables        adds label sums to dq and the tables' gradients; for pairwise terms adds their partial sums
#include "etc_core/base/integers.h"
#include "sparse/cuda/attention_backend.h"
#include "sparse/cuda/attention_plan.h"
#include "sparse/cuda/backend_support.h"
#include "sparse/cuda/launch.h"
#include "sparse/cuda/table_sums.h"
#include "sparse/scores.h"

namespace etc::sparse::cuda {

namespace {

// Scratch of a backward call.
struct BackwardScratch {
  CommonScratch common;
  Span<std::uint32_t> dout;  // bf16
  Span<float> delta;         // [N, queries]
  Span<float> dtable;        // [N, queries, R]
  Span<float> partial;       // partial sums of the tables: for LabelTerms
  Span<float> table_sums;    // and for pairwise terms
  Span<float> query_slots, key_slots;

  BackwardScratch(simt::Carver& carver, const AttentionInputs& in, const DevicePlan& plan) : common(carver, in, plan) {
    const std::int64_t queries = in.tiles->types[0].queries(), size = in.head_size;
    // Without a table, labels need no scratch.
    const std::int64_t labels = sizes_of(in).labels;
    dout = carver.take<std::uint32_t>(converted_words(queries, in));
    delta = carver.take<float>(in.heads * queries);
    dtable = carver.take<float>(in.heads * queries * labels);
    partial = carver.take<float>(relative_parts(queries) * in.heads * labels * (size + 1));
    table_sums = carver.take<float>(table_sum_floats(in, plan));
    query_slots = carver.take<float>(plan.query_slots * in.heads * kBlockQueries * (size + labels));
    key_slots = carver.take<float>(plan.key_slots * in.heads * kTileKeys * 2 * size);
  }
};

// Element: float, or std::uint32_t for pairs of bf16.
template <typename Element>
void gradients_with(const AttentionBackward& args, const DevicePlan& plan, const BackwardScratch& scratch) {
  const AttentionInputs& in = args.inputs;
  BackwardParams<Element> params;
  params.sizes = sizes_of(in);
  params.work = work_of(in, plan);
  params.q = operand<Element>(in, in.q, scratch.common.q);
  params.dout = operand<Element>(in, args.dout, scratch.dout);
  for (int t = 0; t < 2; ++t) {
    params.k[t] = operand<Element>(in, in.keys[t].k, scratch.common.k[t]);
    params.v[t] = operand<Element>(in, in.keys[t].v, scratch.common.v[t]);
    params.dk[t] = output_of(args.dkeys[t].dk, in);
    params.dv[t] = output_of(args.dkeys[t].dv, in);
    const TypeScoreGradients& scores = args.scores[t];
    // C and dC of all heads; empty if the type carries no scores.
    const std::int64_t elements = score_elements(in.tiles->types[t], in.heads);
    params.scores[t].gradient_mode = scores.mode;
    params.scores[t].rewind = scores.mode != ScoreGradientMode::none && scores.rewind;
    params.scores[t].logit_scale = scores.logit_scale;
    params.scores[t].running = {scores.running, elements};
    params.scores[t].gradient = {scores.gradient, elements};
  }
  params.table = simt::read_only(scratch.common.table);
  params.tables = table_views(in);
  params.partials = {table_columns(in), items_of_part(in), scratch.table_sums};
  params.dropout = dropout_view(in, scratch.common);
  params.lse = {args.lse, in.heads * in.q.rows};
  params.delta = simt::read_only(scratch.delta);
  params.dq = output_of(args.dq, in);
  params.dtable = scratch.dtable;
  params.query_slots = scratch.query_slots;
  params.key_slots = scratch.key_slots;
  launch_backward(params, simt::stream());
}

// From dtable to dq, and partial sums of the tables.
void relative_gradients(const AttentionBackward& args, const BackwardScratch& scratch) {
  const AttentionInputs& in = args.inputs;
  const AttentionSizes sizes = sizes_of(in);
  const std::int64_t vectors =
      in.relative.vectors == nullptr ? 0 : in.relative.labels * sizes.table_heads * in.head_size;
  launch_relative({sizes,
                   numbers_of(in.q, in),
                   {in.relative.vectors, vectors},
                   simt::read_only(scratch.dtable),
                   output_of(args.dq, in),
                   scratch.partial},
                  simt::stream());
}

}  // namespace

void backward(const AttentionBackward& args) {
  const AttentionInputs& in = args.inputs;
  check_supported(in);
  // Keys without queries still get gradients of zero. Without queries and keys nothing is written.
  if (in.q.rows == 0 && in.keys[1].k.rows == 0) return;
  const auto plan = plan_of(*in.tiles);
  simt::Carver carver(args.scratch);
  const BackwardScratch scratch(carver, in, *plan);
  prepare(in, *plan, scratch.common);
  // delta = dout·out comes first, because both backward kernels read it.
  launch_delta({sizes_of(in), numbers_of(args.out, in), numbers_of(args.dout, in), scratch.delta}, simt::stream());
  if (uses_bf16(in)) {
    convert(args.dout, in, scratch.dout);
    gradients_with<std::uint32_t>(args, *plan, scratch);
  } else {
    gradients_with<float>(args, *plan, scratch);
  }
  // Adds the partial sums of keys that very many groups see, then those of queries whose keys were split.
  if (plan->key_slots > 0) {
    launch_sum_keys({sizes_of(in),
                     plan->work.split_keys,
                     simt::read_only(scratch.key_slots),
                     {output_of(args.dkeys[0].dk, in), output_of(args.dkeys[1].dk, in)},
                     {output_of(args.dkeys[0].dv, in), output_of(args.dkeys[1].dv, in)},
                     plan->work.own_heads.split_keys},
                    simt::stream());
  }
  if (plan->query_slots > 0) {
    launch_sum_queries({sizes_of(in), plan->work.split_queries, simt::read_only(scratch.query_slots),
                        output_of(args.dq, in), scratch.dtable, plan->work.own_heads.split_queries},
                       simt::stream());
  }
  // Last, because dtable is complete only now; its share is added to dq.
  if (in.q.rows == 0) return;
  if (sizes_of(in).labels > 0) {
    relative_gradients(args, scratch);
    sum_tables(args, {relative_parts(in.q.rows), label_columns(in), simt::read_only(scratch.partial)});
  }
  if (is_pairwise(in)) {
    const std::int64_t parts = ceil_div(plan->work.items.size, items_of_part(in));
    sum_tables(args, {parts, table_columns(in), simt::read_only(scratch.table_sums)});
  }
}

std::int64_t backward_scratch_bytes(const AttentionInputs& in) {
  const auto plan = plan_of(*in.tiles);
  simt::Carver counter(nullptr);
  const BackwardScratch scratch(counter, in, *plan);
  return counter.used();
}

}  // namespace etc::sparse::cuda
