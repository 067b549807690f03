// What builders of tiles share: checks of offsets, and the lists of one type from its labels. For builders, not for
// those who call them.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

// What messages call an operator and the two ends of a pair of a type.
struct TypeNames {
  const char* op;
  const char* query;
  const char* key;
};

// What sets one type apart from the others of a batch.
struct TypeLabels {
  AttentionType type;
  TypeNames names;
  const std::vector<std::int64_t>& query_offsets;
  const std::vector<std::int64_t>& key_offsets;
  const std::uint8_t* labels;  // external form; null: everything visible
  bool window;
  std::int64_t before = 0, after = 0;  // of a window (TypeTiles)
};

// What one group contributes to a type's lists; columns are counted within it.
struct GroupTiles {
  std::vector<TileRun> runs;
  std::vector<std::uint16_t> visible;
  std::vector<std::uint32_t> label;  // rows of `mixed` likewise
  std::vector<std::uint8_t> mixed;
  std::int64_t visible_pairs = 0;
};

// All groups' lists one after the other, in the order of the groups, into a type that has none yet.
void concatenate(TypeTiles& tiles, const std::vector<GroupTiles>& groups);

// A copy of offsets [B+1] that start at 0 and do not fall; anything else is an Error.
std::vector<std::int64_t> checked_offsets(const char* op, const char* name, const std::int64_t* offsets,
                                          std::int64_t examples);

// Throws Error unless B >= 0 and 0 <= R <= 255.
void check_relative_labels(const char* op, std::int64_t examples, std::int64_t relative_labels);

// Both types of an operator with the same relative labels.
AttentionTiles tiles_of(const AttentionOperator& op, std::int64_t relative_labels, const TypeLabels& first,
                        const TypeLabels& second);

}  // namespace etc::sparse
