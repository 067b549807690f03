#include "etc_core/nn/position_tables.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"

namespace etc {

namespace {

constexpr double kBase = 10000.0;

// The angle of pair i at position 1.
double frequency(SinusoidLayout layout, std::int64_t i, std::int64_t columns) {
  if (layout != SinusoidLayout::halves_t2t) {
    return std::pow(kBase, -2.0 * static_cast<double>(i) / static_cast<double>(columns));
  }
  // If there is only one pair, it has the angle of the first pair.
  const std::int64_t last = std::max<std::int64_t>(1, columns / 2 - 1);
  return std::pow(kBase, -static_cast<double>(i) / static_cast<double>(last));
}

}  // namespace

std::vector<float> sinusoids(SinusoidLayout layout, const std::vector<std::int64_t>& positions, std::int64_t columns) {
  if (columns < 1) fail("sinusoids", "columns: expected at least 1, got {}", columns);
  const bool interleaved = layout == SinusoidLayout::interleaved;
  // With an odd number of columns, the last column is a sine if interleaved; in the other layouts it stays 0.
  const std::int64_t pairs = interleaved ? (columns + 1) / 2 : columns / 2;
  std::vector<float> table;
  for (const std::int64_t position : positions) {
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * frequency(layout, i, columns);
      const std::int64_t sine = interleaved ? 2 * i : i, cosine = interleaved ? 2 * i + 1 : pairs + i;
      row[static_cast<std::size_t>(sine)] = static_cast<float>(std::sin(angle));
      if (cosine < columns) row[static_cast<std::size_t>(cosine)] = static_cast<float>(std::cos(angle));
    }
    table.insert(table.end(), row.begin(), row.end());
  }
  return table;
}

std::vector<float> nezha_table(NezhaRows rows, std::int64_t k, std::int64_t columns) {
  if (k < 0) fail("nezha_table", "clip: expected at least 0, got {}", k);
  std::vector<std::int64_t> positions;
  const std::int64_t first = rows == NezhaRows::index ? 0 : -k;
  for (std::int64_t row = 0; row <= 2 * k; ++row) positions.push_back(first + row);
  return sinusoids(SinusoidLayout::interleaved, positions, columns);
}

}  // namespace etc
