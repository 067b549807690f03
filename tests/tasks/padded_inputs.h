// Masks and relative ids of one example with the reference's padding, made from its features as task-nq 3 and
// task-openkp 3 say. Golden arrays are compared with them as a whole, because the engine's labels have no padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

struct PaddedInputs {
  std::vector<std::int64_t> long_ids, global_ids;  // example ids: 1 real, 0 padding
  std::vector<std::int64_t> owners;                // global token of each long one
  std::int64_t radius = 0, distance = 0;           // local radius, largest relative distance

  std::int64_t L() const { return std::ssize(long_ids); }
  std::int64_t G() const { return std::ssize(global_ids); }
};

// Requires a golden array [rows, cols] to hold value(row, column) everywhere.
inline void require_matrix(const GoldenFile& file, const std::string& name, std::int64_t rows, std::int64_t cols,
                           const std::function<std::int64_t(std::int64_t, std::int64_t)>& value) {
  CAPTURE(name);
  const auto golden = file.read<std::int64_t>(name);
  REQUIRE(golden.shape == std::vector<std::int64_t>{rows, cols});
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    if (golden.values[static_cast<std::size_t>(i)] == value(i / cols, i % cols)) continue;
    CAPTURE(i / cols, i % cols);
    REQUIRE(golden.values[static_cast<std::size_t>(i)] == value(i / cols, i % cols));
  }
}

// Requires all masks and relative ids of the group to be those of the inputs.
inline void require_masks_and_ids(const GoldenFile& file, const std::string& group, const PaddedInputs& in) {
  const auto at = [&](const std::string& name) { return group + "/" + name; };
  const auto of = [](const std::vector<std::int64_t>& all, std::int64_t i) { return all[static_cast<std::size_t>(i)]; };
  const std::int64_t L = in.L(), G = in.G(), W = 2 * in.radius + 1;
  const auto by_distance = [&](std::int64_t delta) {
    return delta >= 0 ? std::min(delta, in.distance) : in.distance + std::min(-delta, in.distance);
  };
  const auto sees = [&](std::int64_t i, std::int64_t g) { return of(in.long_ids, i) == of(in.global_ids, g); };
  const auto owned = [&](std::int64_t i, std::int64_t g) { return of(in.owners, i) == g; };
  const auto link = [&](std::int64_t i, std::int64_t g) { return 2 * in.distance + (owned(i, g) ? 2 : 1); };

  require_matrix(file, at("l2l_att_mask"), L, W, [&](std::int64_t i, std::int64_t w) {
    const std::int64_t j = i + w - in.radius;
    return j >= 0 && j < L && of(in.long_ids, i) == of(in.long_ids, j);
  });
  require_matrix(file, at("l2l_relative_att_ids"), L, W,
                 [&](std::int64_t, std::int64_t w) { return by_distance(w - in.radius); });
  require_matrix(file, at("g2g_att_mask"), G, G,
                 [&](std::int64_t g, std::int64_t h) { return of(in.global_ids, g) == of(in.global_ids, h); });
  require_matrix(file, at("g2g_relative_att_ids"), G, G,
                 [&](std::int64_t g, std::int64_t h) { return by_distance(h - g); });
  require_matrix(file, at("l2g_att_mask"), L, G, sees);
  require_matrix(file, at("l2g_att_mask_hard"), L, G,
                 [&](std::int64_t i, std::int64_t g) { return sees(i, g) && owned(i, g); });
  require_matrix(file, at("l2g_relative_att_ids"), L, G, link);
  require_matrix(file, at("g2l_att_mask"), G, L, [&](std::int64_t g, std::int64_t i) { return sees(i, g); });
  require_matrix(file, at("g2l_att_mask_hard"), G, L,
                 [&](std::int64_t g, std::int64_t i) { return sees(i, g) && owned(i, g); });
  require_matrix(file, at("g2l_relative_att_ids"), G, L, [&](std::int64_t g, std::int64_t i) { return link(i, g); });
}

}  // namespace etc::test
