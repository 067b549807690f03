#include "sparse/scores.h"

#include <algorithm>

#include "etc_core/base/half.h"
#include "etc_core/base/parallel.h"

namespace etc::sparse {

namespace {

// Elements of one head of example b in the external form.
std::int64_t example_pairs(const TypeTiles& tiles, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  const std::int64_t queries = tiles.query_offsets[at + 1] - tiles.query_offsets[at];
  if (tiles.window) return queries * tiles.width();
  return queries * (tiles.key_offsets[at + 1] - tiles.key_offsets[at]);
}

// Calls visit(internal index, external index) for every pair that exists in both forms.
template <typename Visit>
void for_each_pair(const TypeTiles& tiles, std::int64_t heads, Visit&& visit) {
  const bool window = tiles.window;
  std::int64_t example_base = 0;  // of example b, in the external form
  for (std::int64_t b = 0; b < tiles.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = tiles.query_offsets[at + 1] - tiles.query_offsets[at];
    const std::int64_t keys = tiles.key_offsets[at + 1] - tiles.key_offsets[at];
    const std::int64_t row = window ? tiles.width() : keys, first = tiles.first_position(b);
    // A window type is one external tensor over all tokens, the other types have one tensor per example.
    const std::int64_t head_stride = window ? tiles.queries() * row : queries * row;
    const std::int64_t base = window ? tiles.query_offsets[at] * row : example_base;
    example_base += heads * example_pairs(tiles, b);
    const std::int64_t groups = tiles.group_offsets[at + 1] - tiles.group_offsets[at];
    parallel_for(tiles.heads * groups, [&](std::int64_t number) {
      const std::int64_t group_in_example = number % groups, first_head = number / groups;
      const std::int64_t group = tiles.first_group(first_head) + tiles.group_offsets[at] + group_in_example;
      // The heads that these tiles belong to.
      const std::int64_t end_head = tiles.heads == 1 ? heads : first_head + 1;
      const std::int64_t first_query = group_in_example * kGroup;
      // Only stored pairs; the others keep the zeros with which the external form was filled.
      for (std::int64_t r = tiles.run_offsets[group]; r < tiles.run_offsets[group + 1]; ++r) {
        const TileRun& run = tiles.runs[r];
        for (std::int64_t j = 0; j < run.keys && run.first_key + j < keys; ++j) {
          for (std::int64_t i = 0; i < std::min<std::int64_t>(kGroup, queries - first_query); ++i) {
            const std::int64_t query = first_query + i, key = run.first_key + j;
            const std::int64_t place = window ? key - first - query + tiles.before : key;
            // A group's keys cover the union of its queries' windows.
            if (place < 0 || place >= row) continue;
            // The head loop is innermost: memory accesses are far apart, but the pair's indices are computed once.
            for (std::int64_t head = first_head; head < end_head; ++head) {
              visit((tiles.first_column(head) + run.column + j) * kGroup + i,
                    base + head * head_stride + query * row + place);
            }
          }
        }
      }
    });
  }
}

}  // namespace

// Whole columns, masked pairs included: [N, columns, kGroup].
std::int64_t score_elements(const TypeTiles& tiles, std::int64_t heads) {
  return (tiles.heads == 1 ? heads : 1) * tiles.columns * kGroup;
}

std::int64_t external_score_elements(const TypeTiles& tiles, std::int64_t heads) {
  std::int64_t pairs = 0;
  for (std::int64_t b = 0; b < tiles.examples(); ++b) pairs += example_pairs(tiles, b);
  return heads * pairs;
}

namespace {

template <typename Element, typename Value>
void export_elements(const TypeTiles& tiles, std::int64_t heads, const Element* inside, float* external,
                     const Value& value) {
  std::fill_n(external, external_score_elements(tiles, heads), 0.0f);
  for_each_pair(tiles, heads, [&](std::int64_t in, std::int64_t out) { external[out] = value(inside[in]); });
}

}  // namespace

void export_scores(const TypeTiles& tiles, std::int64_t heads, const ScoreElement* inside, float* external) {
  export_elements(tiles, heads, inside, external, [](ScoreElement element) { return score_to_float(element); });
}

void export_scores(const TypeTiles& tiles, std::int64_t heads, const HalfScore* inside, float* external) {
  export_elements(tiles, heads, inside, external, [](HalfScore half) { return float_from_half(half); });
}

void export_scores(const TypeTiles& tiles, std::int64_t heads, const float* inside, float* external) {
  export_elements(tiles, heads, inside, external, [](float gradient) { return gradient; });
}

}  // namespace etc::sparse
