#include "sparse/performer_projection.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/random.h"

namespace etc::sparse {

namespace {

constexpr std::uint64_t kStream = 0x706572666f726dull;  // distinct from all other uses of a seed

// (0, 1) on a grid of 2^-53, from two words.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 21) ^ (low >> 11);
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

// Standard normal number `column` of row `row` of a stream (Box-Muller transform).
double normal(std::uint64_t stream, std::uint32_t kind, std::int64_t row, std::int64_t column) {
  const Philox4 bits = philox({static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(row), kind, 0}, stream);
  const double radius = std::sqrt(-2.0 * std::log(uniform(bits[0], bits[1])));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(bits[2], bits[3]));
}

double dot(const double* a, const double* b, std::int64_t size) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < size; ++c) sum += a[c] * b[c];
  return sum;
}

// Makes row `last` of `rows` orthogonal to the rows before it, with length 1.
void orthonormalise(std::vector<double>& rows, std::int64_t last, std::int64_t size) {
  double* const own = rows.data() + last * size;  // [D]
  // One pass leaves rounding errors along the other rows; two passes are enough.
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t before = 0; before < last; ++before) {
      const double* const other = rows.data() + before * size;  // [D]
      const double share = dot(own, other, size);
      for (std::int64_t c = 0; c < size; ++c) own[c] -= share * other[c];
    }
    const double length = std::sqrt(dot(own, own, size));
    for (std::int64_t c = 0; c < size; ++c) own[c] /= length;
  }
}

}  // namespace

void draw_projection(const PerformerDraw& draw, float* projection) {
  const std::int64_t size = draw.head_size;
  if (draw.features < 1 || size < 1) {
    fail("performer", "projection: expected m >= 1 features of D >= 1, got m={}, D={}", draw.features, size);
  }
  const std::uint64_t stream = mix_key(mix_key(mix_key(draw.seed, kStream), static_cast<std::uint64_t>(draw.layer)),
                                       static_cast<std::uint64_t>(draw.redraw));
  std::vector<double> rows(static_cast<std::size_t>(size * size));  // of one block
  for (std::int64_t r = 0; r < draw.features; ++r) {
    const std::int64_t in_block = r % size;
    double* const own = rows.data() + in_block * size;  // [D]
    for (std::int64_t c = 0; c < size; ++c) own[c] = normal(stream, 0, r, c);
    orthonormalise(rows, in_block, size);
    double norm = std::sqrt(static_cast<double>(size));
    if (draw.norms == PerformerDraw::Norms::chi) {
      double squares = 0.0;
      for (std::int64_t c = 0; c < size; ++c) squares += std::pow(normal(stream, 1, r, c), 2);
      norm = std::sqrt(squares);
    }
    for (std::int64_t c = 0; c < size; ++c) projection[r * size + c] = static_cast<float>(norm * own[c]);
  }
}

std::int64_t redraws(std::int64_t step, std::int64_t period) {
  if (period < 0) fail("performer", "redraw period: expected at least 0 steps, got {}", period);
  return period == 0 ? 0 : step / period;
}

}  // namespace etc::sparse
