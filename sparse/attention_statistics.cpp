#include "sparse/attention_statistics.h"

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention_checks.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

KernelSlot<void(const AttentionStatistics&)> attention_statistics_slot{"attention statistics"};
KernelSlot<std::int64_t(const AttentionStatistics&)> attention_statistics_scratch_slot{"attention statistics"};

namespace {

AttentionChecks checked_queries_and_keys(const AttentionInputs& in) {
  if (in.tiles == nullptr) fail("attention_statistics", "tiles: expected those of the batch, got null");
  const AttentionChecks checks{*in.tiles, in.heads, in.head_size};
  checks.sizes();
  checks.query_rows("q", in.q);
  for (int t = 0; t < kKeySets; ++t) checks.key_rows("k", t, in.keys[t].k);
  checks.scale(in.scale);
  checks.table(in.relative);
  return checks;
}

// Throws Error unless C belongs to this layer and the compared heads have the same pairs.
void check_scores(const AttentionStatistics& args, const AttentionChecks& checks) {
  const char* const op = args.inputs.tiles->op->name;
  for (int t = 0; t < kKeySets; ++t) {
    const TypeScores& scores = args.scores[static_cast<std::size_t>(t)];
    checks.scores(t, scores);
    if (scores.mode == ScoreMode::add_unkept) {
      fail(op, "statistics of layer {}: expected running scores that the layer kept (ScoreOptions::keep_last)",
           scores.layer);
    }
    if (args.head_shift != 0 && args.inputs.tiles->types[t].heads > 1) {
      fail(op, "statistics: head_shift: expected 0 where heads have tiles of their own, got {}", args.head_shift);
    }
  }
}

void check_outputs(const AttentionStatistics& args, const AttentionChecks& checks) {
  const char* const op = args.inputs.tiles->op->name;
  const std::int64_t queries = args.inputs.q.rows;
  checks.pointer("of_queries", args.of_queries, args.inputs.heads * queries);
  if (args.groups < 1 || args.groups > kMostQueryGroups) {
    fail(op, "statistics: groups: expected 1 to {}, got {}", kMostQueryGroups, args.groups);
  }
  const std::int64_t labels = args.inputs.relative.rows();
  for (const double* sums : args.label_mass) {
    if (sums != nullptr && labels == 0) fail(op, "statistics: label_mass: expected null without relative tables");
  }
  if (args.member_label >= 0 && (args.label_mass[1] == nullptr || args.member_label >= labels)) {
    fail(op, "statistics: member_label: expected one below R={} beside label_mass, got {}", labels, args.member_label);
  }
  if (args.reach < 0) fail(op, "statistics: reach: expected at least 0, got {}", args.reach);
  if (args.top_keys != nullptr && args.top < 1) fail(op, "statistics: top: expected at least 1, got {}", args.top);
}

}  // namespace

void attention_statistics(Device device, const AttentionStatistics& args) {
  const AttentionChecks checks = checked_queries_and_keys(args.inputs);
  if (args.before != nullptr) {
    checked_queries_and_keys(*args.before);
    if (args.before->tiles != args.inputs.tiles) {
      fail(args.inputs.tiles->op->name, "statistics: before: expected a layer of the same tiles");
    }
  }
  check_scores(args, checks);
  check_outputs(args, checks);
  checks.pointer("scratch", args.scratch, args.inputs.q.rows);
  const profiler::Scope profiled("attention_statistics", checks.work(args.before == nullptr ? 1 : 2));
  attention_statistics_slot(device, args);
}

std::int64_t attention_statistics_scratch_bytes(Device device, const AttentionStatistics& args) {
  checked_queries_and_keys(args.inputs);
  return attention_statistics_scratch_slot(device, args);
}

}  // namespace etc::sparse
