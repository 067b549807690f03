#include "sparse/patterns/causal.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/tile_builder.h"

namespace etc::sparse {

namespace {

const std::int64_t* keys_of(const CausalSequence& in) {
  return in.key_offsets == nullptr ? in.offsets : in.key_offsets;
}

}  // namespace

std::int64_t causal_reach(const CausalSequence& in) {
  if (in.reach != CausalSequence::kAll) return in.reach;
  const std::int64_t* const offsets = keys_of(in);  // [B+1]
  std::int64_t longest = 1;
  for (std::int64_t b = 0; b < in.examples; ++b) longest = std::max(longest, offsets[b + 1] - offsets[b]);
  return longest - 1;
}

AttentionTiles build_causal_tiles(const CausalSequence& in) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = *in.op;
  check_relative_labels(op.name, in.examples, in.relative_labels);
  const std::vector<std::int64_t> queries = checked_offsets(op.name, "offsets", in.offsets, in.examples);
  const std::vector<std::int64_t> keys = checked_offsets(op.name, "key_offsets", keys_of(in), in.examples);
  if (in.reach < CausalSequence::kAll) fail(op.name, "reach: expected at least 0, got {}", in.reach);
  for (std::size_t b = 0; b + 1 < queries.size(); ++b) {
    const std::int64_t own = queries[b + 1] - queries[b], seen = keys[b + 1] - keys[b];
    if (seen < own) {
      fail(op.name, "key_offsets: example {}: expected the memory and all {} tokens of the segment, got {} keys", b,
           own, seen);
    }
  }
  const std::vector<std::int64_t> no_keys(queries.size(), 0);
  const TypeNames names{op.name, "query", "key"};
  return tiles_of(op, in.relative_labels,
                  {op.types[0], names, queries, keys, in.labels, true, causal_reach(in), /*after=*/0},
                  {op.types[1], names, queries, no_keys, nullptr, false});
}

}  // namespace etc::sparse
