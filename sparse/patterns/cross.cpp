#include "sparse/patterns/cross.h"

#include "etc_core/base/profiler.h"
#include "sparse/patterns/key_ranges.h"
#include "sparse/tile_builder.h"

namespace etc::sparse {

AttentionTiles build_cross_tiles(const CrossSequences& in) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = kCrossAttention;
  check_relative_labels(op.name, in.examples, 0);
  const std::vector<std::int64_t> queries = checked_offsets(op.name, "query_offsets", in.query_offsets, in.examples);
  const std::vector<std::int64_t> keys = checked_offsets(op.name, "key_offsets", in.key_offsets, in.examples);
  const std::vector<std::int64_t> no_keys(queries.size(), 0);
  const auto all = [&](const PatternQuery& query, std::vector<KeyInterval>& seen) {
    const auto b = static_cast<std::size_t>(query.example);
    seen.push_back({0, keys[b + 1] - keys[b]});
  };
  const auto none = [](const PatternQuery&, std::vector<KeyInterval>&) {};
  return {&op,
          {build_key_ranges({op.types[0], queries, keys, 1, all}),
           build_key_ranges({op.types[1], queries, no_keys, 1, none})},
          {}};
}

}  // namespace etc::sparse
