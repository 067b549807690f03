#include "etc_core/nn/attention_analysis.h"

namespace etc {

namespace {

void run_statistics(sparse::AttentionStatistics args, Device device) {
  Bytes scratch(sparse::attention_statistics_scratch_bytes(device, args), Purpose::scratch, device);
  args.scratch = scratch.data();
  sparse::attention_statistics(device, args);
}

}  // namespace

sparse::AttentionStatistics AttentionAnalysis::arguments(const WatchedAttention& watched, LayerStatistics& result) {
  const sparse::AttentionInputs& in = watched.inputs;
  sparse::AttentionStatistics args;
  args.inputs = in;
  args.scores = watched.scores;
  args.reach = settings_.reach;
  args.top = settings_.top;
  if (settings_.groups_of && (watched.layer == 0 || groups_.count(in.tiles->op) == 0)) {
    groups_[in.tiles->op] = settings_.groups_of(in.tiles->op);
  }
  const auto groups = groups_.find(in.tiles->op);
  if (groups != groups_.end()) {
    args.groups = groups->second.groups;
    if (!groups->second.of_queries.empty()) args.query_groups = groups->second.of_queries.data();
  }
  result.op = in.tiles->op;
  result.layer = watched.layer;
  result.heads = in.heads;
  result.queries = in.q.rows;
  result.labels = in.relative.rows();
  result.groups = args.groups;
  const auto sized = [](std::int64_t size) { return std::vector<double>(static_cast<std::size_t>(size)); };
  const std::int64_t rows = result.heads * result.queries;
  result.of_queries = sized(rows * sparse::kQueryStatistics);
  args.of_queries = result.of_queries.data();
  for (std::size_t t = 0; t < sparse::kKeySets; ++t) {
    if (watched.scores[t].running != nullptr) result.carries = true;
    if (!settings_.label_mass || result.labels == 0 || !in.tiles->types[t].labelled()) continue;
    result.label_mass[t] = sized(result.heads * args.groups * result.labels);
    args.label_mass[t] = result.label_mass[t].data();
  }
  if (args.label_mass[1] != nullptr) args.member_label = settings_.member_label;
  if (settings_.distance_mass) {
    result.distance_mass = sized(result.heads * args.groups * (2 * args.reach + 1));
    args.distance_mass = result.distance_mass.data();
  }
  result.top.resize(static_cast<std::size_t>(rows * args.top));
  if (args.top > 0) args.top_keys = result.top.data();
  return args;
}

void AttentionAnalysis::compare_all_heads(sparse::AttentionStatistics args, LayerStatistics& result) const {
  const std::int64_t N = result.heads, queries = result.queries;
  result.jsd_of_heads.resize(static_cast<std::size_t>(N * N * queries));
  std::vector<double> shifted(result.of_queries.size());
  for (std::int64_t shift = 0; shift < N; ++shift) {
    const std::vector<double>* from = &result.of_queries;
    if (shift > 0) {
      args.head_shift = shift;
      args.of_queries = shifted.data();
      args.label_mass[0] = args.label_mass[1] = args.distance_mass = nullptr;
      args.member_label = -1;
      args.top_keys = nullptr;
      run_statistics(args, Device::cpu);
      from = &shifted;
    }
    for (std::int64_t row = 0; row < N * queries; ++row) {
      const std::int64_t head = row / queries, before = (head + shift) % N;
      const std::int64_t at = row * sparse::kQueryStatistics + static_cast<int>(sparse::QueryStatistic::jsd);
      result.jsd_of_heads[static_cast<std::size_t>((head * N + before) * queries + row % queries)] =
          (*from)[static_cast<std::size_t>(at)];
    }
  }
}

void AttentionAnalysis::operator()(const WatchedAttention& watched) {
  LayerStatistics result;
  sparse::AttentionStatistics args = arguments(watched, result);
  if (watched.layer == 0) before_.erase(result.op);  // left over from another pass
  const auto before = before_.find(result.op);
  // Layers with different pairs (random blocks drawn per layer) cannot be compared.
  if (before != before_.end() && before->second.inputs.tiles == watched.inputs.tiles) {
    args.before = &before->second.inputs;
    for (const sparse::TypeScores& scores : before->second.scores) {
      if (scores.running != nullptr) args.logit_scale_before = scores.logit_scale;
    }
    result.compared = true;
  }
  run_statistics(args, watched.kept.front().device());
  if (result.compared && settings_.all_heads) compare_all_heads(args, result);
  if (settings_.divergences) before_[result.op] = watched;
  sink_(result);
}

}  // namespace etc
