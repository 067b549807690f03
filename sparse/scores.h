// Storage of one type's running scores C (and their gradient dC), and conversion to the external form.
//
// Internal form: [N, columns, kGroup], columns as in visible_tiles.h: one 64-byte cache line holds one key against the
// 16 queries of a group; invisible tiles are not stored. In the external form (tests,
// `etc encode`, analysis) rows are queries, and examples follow one another:
//   l2l [N, T, W] · l2g per example [N, L, G] · g2g per example [N, G, G] · g2l per example [N, G, L]
// Pairs that are not stored internally, and window entries outside the example, are 0 in the external form.
#pragma once

#include <cstdint>

#include "sparse/attention_types.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Elements of the internal form, in either number type.
std::int64_t score_elements(const TypeTiles& tiles, std::int64_t heads);

// Elements of the external form.
std::int64_t external_score_elements(const TypeTiles& tiles, std::int64_t heads);

// external = C. Masked pairs within visible tiles are copied as stored: their values are finite but have no meaning.
void export_scores(const TypeTiles& tiles, std::int64_t heads, const ScoreElement* inside, float* external);
void export_scores(const TypeTiles& tiles, std::int64_t heads, const HalfScore* inside, float* external);
// The same for gradients (dC).
void export_scores(const TypeTiles& tiles, std::int64_t heads, const float* inside, float* external);

}  // namespace etc::sparse
