#include "tasks/analyze/visible_keys.h"

namespace etc::analyze {

std::vector<std::int32_t> visible_keys(const sparse::TypeTiles& tiles) {
  std::vector<std::int32_t> keys(static_cast<std::size_t>(tiles.queries()));
  for (std::size_t b = 0; b + 1 < tiles.query_offsets.size(); ++b) {
    std::int64_t first = tiles.query_offsets[b];  // query of the group
    for (std::int64_t group = tiles.group_offsets[b]; group < tiles.group_offsets[b + 1]; ++group) {
      for (std::int64_t r = tiles.run_offsets[group]; r < tiles.run_offsets[group + 1]; ++r) {
        const sparse::TileRun& run = tiles.runs[r];
        for (std::int64_t column = run.column; column < run.column + run.keys; ++column) {
          // Lanes beyond the example's last query see nothing.
          for (unsigned seen = tiles.visible[column]; seen != 0; seen &= seen - 1) {
            ++keys[static_cast<std::size_t>(first + __builtin_ctz(seen))];
          }
        }
      }
      first += sparse::kGroup;
    }
  }
  return keys;
}

}  // namespace etc::analyze
