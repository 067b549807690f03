// Code shared by the tile builders: checks of offsets, and building the lists of one type from its labels. Callers of
// the builders do not need this header.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Names used in messages: the operator, and a type's queries and keys.
struct TypeNames {
  const char* op;
  const char* query;
  const char* key;
};

// Input for building one type's tiles.
struct TypeLabels {
  AttentionType type;
  TypeNames names;
  const std::vector<std::int64_t>& query_offsets;
  const std::vector<std::int64_t>& key_offsets;
  const std::uint8_t* labels;  // external form; null: everything visible
  bool window;
  std::int64_t before = 0, after = 0;  // of a window (TypeTiles)
};

// One group's part of a type's lists; column numbers are relative to the group.
struct GroupTiles {
  std::vector<TileRun> runs;
  std::vector<std::uint16_t> visible;
  std::vector<std::uint32_t> label;  // row numbers of `mixed` are relative to the group, too
  std::vector<std::uint8_t> mixed;
  std::int64_t visible_pairs = 0;
};

// Concatenates all groups' lists, in group order, into a type whose lists are empty.
void concatenate(TypeTiles& tiles, const std::vector<GroupTiles>& groups);

// A copy of offsets [B+1]. Throws Error unless they start at 0 and do not decrease.
std::vector<std::int64_t> checked_offsets(const char* op, const char* name, const std::int64_t* offsets,
                                          std::int64_t examples);

// Throws Error unless B >= 0 and 0 <= R <= 255.
void check_relative_labels(const char* op, std::int64_t examples, std::int64_t relative_labels);

// Both types of an operator with the same relative labels.
AttentionTiles tiles_of(const AttentionOperator& op, std::int64_t relative_labels, const TypeLabels& first,
                        const TypeLabels& second);

}  // namespace etc::sparse
