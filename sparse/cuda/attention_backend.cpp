// Forward: scratch, and the order of the kernels.
//   convert (bf16)   q, k, v to [N, rows, D]
//   table            relative terms of every query and label, where there is a table (and no pairwise terms)
//   forward          out and lse, or partial results of split keys
//   combine          partial results to out and lse
// All run on one stream: each kernel reads results of the one before, and the host waits for none of them.
#include "sparse/cuda/attention_backend.h"

#include <array>

#include "etc_core/base/cuda/late_checks.h"
#include "sparse/attention_checks.h"
#include "sparse/cuda/attention_plan.h"
#include "sparse/cuda/backend_support.h"
#include "sparse/cuda/launch.h"
#include "sparse/scores.h"

namespace etc::sparse::cuda {

namespace {

// Scratch of a forward call.
struct ForwardScratch {
  CommonScratch common;
  // [slots, N, kBlockQueries, D + 2]: partial outputs with their maximum and sum; none without split keys
  Span<float> slots;

  // With a null carver this only counts bytes, so size and layout cannot disagree.
  ForwardScratch(simt::Carver& carver, const AttentionInputs& in, const DevicePlan& plan) : common(carver, in, plan) {
    slots = carver.take<float>(plan.query_slots * in.heads * kBlockQueries * (in.head_size + 2));
  }
};

// Element: float, or std::uint32_t for pairs of bf16.
template <typename Element>
void forward_with(const AttentionForward& args, const DevicePlan& plan, const ForwardScratch& scratch) {
  ForwardParams<Element> params;
  params.sizes = sizes_of(args.inputs);
  params.work = work_of(args.inputs, plan);
  params.q = operand<Element>(args.inputs, args.inputs.q, scratch.common.q);
  for (int t = 0; t < 2; ++t) {
    params.k[t] = operand<Element>(args.inputs, args.inputs.keys[t].k, scratch.common.k[t]);
    params.v[t] = operand<Element>(args.inputs, args.inputs.keys[t].v, scratch.common.v[t]);
  }
  params.table = simt::read_only(scratch.common.table);
  params.tables = table_views(args.inputs);
  params.dropout = dropout_view(args.inputs, scratch.common);
  for (int t = 0; t < 2; ++t) {
    params.scores[t].mode = args.scores[t].mode;
    params.scores[t].logit_scale = args.scores[t].logit_scale;
    params.scores[t].running = {args.scores[t].running, score_elements(args.inputs.tiles->types[t], args.inputs.heads)};
  }
  params.out = output_of(args.out, args.inputs);
  params.lse = {args.lse, args.inputs.heads * args.inputs.q.rows};
  params.slots = scratch.slots;
  params.range = scratch.common.range;
  launch_forward(params, simt::stream());
}

// Scores out of the range of C are an error of the call that computed them, reported when the host next reads data.
void check_range(const AttentionForward& args, const CommonScratch& scratch) {
  // Data for the error message, since the call's arguments no longer exist when the error is found.
  struct Made {
    const char* op;
    AttentionType type;
    std::int64_t layer;
    bool any;
  };
  std::array<Made, kKeySets> made;
  for (std::size_t t = 0; t < 2; ++t) {
    const TypeScores& scores = args.scores[t];
    made[t] = {args.inputs.tiles->op->name, args.inputs.tiles->types[t].type, scores.layer,
               scores.mode != ScoreMode::none && scores.mode != ScoreMode::read};
  }
  // No new scores were computed that could be out of range.
  if (!made[0].any && !made[1].any) return;
  simt::check_later(scratch.range.data, [made](const std::array<std::int32_t, 2>& out_of_range) {
    for (std::size_t t = 0; t < 2; ++t) {
      if (made[t].any && out_of_range[t] != 0) fail_scores_out_of_range(made[t].op, made[t].type, made[t].layer);
    }
  });
}

}  // namespace

void forward(const AttentionForward& args) {
  const AttentionInputs& in = args.inputs;
  check_supported(in);
  // No query: nothing to write. A launch with no block is an error.
  if (in.q.rows == 0) return;
  const auto plan = plan_of(*in.tiles);
  simt::Carver carver(args.scratch);
  const ForwardScratch scratch(carver, in, *plan);
  prepare(in, *plan, scratch.common);
  if (uses_bf16(in)) {
    forward_with<std::uint32_t>(args, *plan, scratch);
  } else {
    forward_with<float>(args, *plan, scratch);
  }
  // Results of split keys, added in order.
  if (plan->query_slots > 0) {
    const float kept_scale = dropout_view(in, scratch.common).kept_scale;
    launch_combine({sizes_of(in),
                    plan->work.split_queries,
                    simt::read_only(scratch.slots),
                    kept_scale,
                    output_of(args.out, in),
                    {args.lse, in.heads * in.q.rows},
                    plan->work.own_heads.split_queries},
                   simt::stream());
  }
  check_range(args, scratch.common);
}

std::int64_t forward_scratch_bytes(const AttentionInputs& in) {
  const auto plan = plan_of(*in.tiles);
  simt::Carver counter(nullptr);
  const ForwardScratch scratch(counter, in, *plan);
  return counter.used();
}

}  // namespace etc::sparse::cuda
