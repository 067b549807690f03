// Visible tiles, score storage and its external forms.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sparse/etc_attention.h"
#include "sparse/scores.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

sparse::LabelTensors tensors(const std::vector<std::int64_t>& longs, const std::vector<std::int64_t>& globals,
                             std::int64_t radius, std::int64_t relative_labels = 0) {
  sparse::LabelTensors labels;
  labels.examples = static_cast<std::int64_t>(longs.size()) - 1;
  labels.long_offsets = longs.data();
  labels.global_offsets = globals.data();
  labels.radius = radius;
  labels.relative_labels = relative_labels;
  return labels;
}

// A visible pair: query row, key within the example and label in one number, since there are millions of them.
std::uint64_t packed(std::int64_t query, std::int64_t key, std::int64_t label) {
  return (static_cast<std::uint64_t>(query) << 40) | (static_cast<std::uint64_t>(key) << 8) |
         static_cast<std::uint64_t>(label);
}

std::string unpacked(std::uint64_t pair) {
  return fmt::format("query {}, key {}, label {}", pair >> 40, (pair >> 8) & 0xffffffffu, pair & 0xffu);
}

// Every visible pair of a type, in order.
std::vector<std::uint64_t> visible_pairs(const sparse::TypeTiles& tiles) {
  std::vector<std::uint64_t> pairs;
  pairs.reserve(static_cast<std::size_t>(tiles.visible_pairs));
  for (std::int64_t b = 0; b < tiles.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    for (std::int64_t group = tiles.group_offsets[at]; group < tiles.group_offsets[at + 1]; ++group) {
      const std::int64_t first = tiles.query_offsets[at] + (group - tiles.group_offsets[at]) * sparse::kGroup;
      for (std::int64_t r = tiles.run_offsets[group]; r < tiles.run_offsets[group + 1]; ++r) {
        const sparse::TileRun run = tiles.runs[r];
        for (std::int64_t j = 0; j < run.keys; ++j) {
          for (int i = 0; i < sparse::kGroup; ++i) {
            if (((tiles.visible[run.column + j] >> i) & 1) == 0) continue;
            std::int64_t label = 0;
            if (tiles.relative) {
              const std::uint32_t code = tiles.label[run.column + j];
              label =
                  code < sparse::kFirstMixed ? code : tiles.mixed[(code - sparse::kFirstMixed) * sparse::kGroup + i];
            }
            pairs.push_back(packed(first + i, run.first_key + j, label));
          }
        }
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

// The same from the external label tensor.
std::vector<std::uint64_t> labelled_pairs(const AttentionCase& c, const Structure& s, sparse::AttentionType type) {
  const sparse::TypeTiles& tiles = s.tiles(type);
  const auto& labels = s.labels[type.index];
  const bool window = type == sparse::kL2l;
  std::vector<std::uint64_t> pairs;
  std::size_t at = 0;
  for (std::size_t b = 0; b < c.lengths.size(); ++b) {
    const std::int64_t keys = tiles.key_offsets[b + 1] - tiles.key_offsets[b];
    for (std::int64_t query = tiles.query_offsets[b]; query < tiles.query_offsets[b + 1]; ++query) {
      const std::int64_t in_example = query - tiles.query_offsets[b];
      for (std::int64_t column = 0; column < (window ? 2 * c.radius + 1 : keys); ++column) {
        const std::int64_t key = window ? in_example + column - c.radius : column;
        const std::uint8_t label = labels.empty() ? std::uint8_t{0} : labels[at++];
        if (key < 0 || key >= keys || label == sparse::kMasked) continue;
        pairs.push_back(packed(query, key, tiles.relative ? label : 0));
      }
    }
  }
  return pairs;
}

// The first place where the pairs differ; empty: they are equal, and no pair is listed twice.
std::string difference(const std::vector<std::uint64_t>& got, const std::vector<std::uint64_t>& expected) {
  const auto twice = std::adjacent_find(got.begin(), got.end(), [](auto a, auto b) { return a >> 8 == b >> 8; });
  if (twice != got.end()) return "twice: " + unpacked(*twice);
  const auto at = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
  if (at.first == got.end() && at.second == expected.end()) return "";
  return fmt::format("expected {}, got {}", at.second == expected.end() ? "no more" : unpacked(*at.second),
                     at.first == got.end() ? "no more" : unpacked(*at.first));
}

}  // namespace

TEST_CASE("tiles hold exactly the visible pairs, each once, with their labels", "[sparse]") {
  const std::vector<AttentionCase> cases = {
      {"none", {40, 0, 7}, {3, 5, 0}, 6, 1, 4, 0, Labels::none},
      {"document", {100}, {9}, 20, 1, 4, 12, Labels::document},
      {"hard", {300, 5}, {33, 2}, 7, 1, 4, 12, Labels::hard},
      {"scattered", {90, 31}, {20, 18}, 13, 1, 4, 40, Labels::scattered},
      {"keys beyond a split", {1100}, {3}, 2, 1, 4, 8, Labels::scattered},
      {"lists built in several ranges", {40000}, {500}, 2, 1, 4, 12, Labels::hard},
  };
  for (const AttentionCase& c : cases) {
    const Structure structure(c);
    for (const sparse::AttentionType& type : sparse::kEtcTypes) {
      INFO(c.name << " " << type.name);
      const auto pairs = visible_pairs(structure.tiles(type));
      CHECK(difference(pairs, labelled_pairs(c, structure, type)) == "");
      CHECK(structure.tiles(type).visible_pairs == static_cast<std::int64_t>(pairs.size()));
    }
  }
}

TEST_CASE("tiles nobody sees are not stored", "[sparse]") {
  const AttentionCase hard{"hard", {2048}, {64}, 4, 1, 4, 12, Labels::hard};
  const Structure structure(hard);
  // Each group of 16 global tokens sees 16 sentences of 32 tokens.
  CHECK(structure.tiles(sparse::kG2l).columns == 4 * 16 * 32);
}

TEST_CASE("every visible pair's score has a place of its own in the external form", "[sparse]") {
  const AttentionCase c{"scattered", {50, 20}, {18, 3}, 5, 2, 4, 8, Labels::document};
  const Structure structure(c);
  for (const sparse::AttentionType& type : sparse::kEtcTypes) {
    const sparse::TypeTiles& tiles = structure.tiles(type);
    std::vector<float> inside(static_cast<std::size_t>(sparse::score_elements(tiles, c.heads)));
    std::iota(inside.begin(), inside.end(), 1.0f);
    std::vector<float> external(static_cast<std::size_t>(sparse::external_score_elements(tiles, c.heads)));
    sparse::export_scores(tiles, c.heads, inside.data(), external.data());
    std::erase(external, 0.0f);
    std::sort(external.begin(), external.end());
    CHECK(std::adjacent_find(external.begin(), external.end()) == external.end());
    CHECK(std::ssize(external) >= c.heads * tiles.visible_pairs);
  }
}

TEST_CASE("a label at or above R is an error naming the pair", "[sparse]") {
  const std::vector<std::int64_t> longs = {0, 20, 40}, globals = {0, 3, 6};
  sparse::LabelTensors labels = tensors(longs, globals, 1, 32);
  std::vector<std::uint8_t> l2g(20 * 3 * 2, 0), g2l(20 * 3 * 2, 0), l2l(40 * 3, 0);
  labels.l2g = l2g.data();
  l2g[60 + 17 * 3 + 2] = 40;
  CHECK_THROWS_WITH(
      sparse::build_long_tiles(labels),
      Equals("long_attention: labels.l2g: example 1, long 17, global 2: expected a label below R=32 or 255 "
             "(masked), got 40"));
  l2g[60 + 17 * 3 + 2] = 31;
  CHECK_NOTHROW(sparse::build_long_tiles(labels));
  labels.g2l = g2l.data();
  g2l[20 + 5] = 254;
  CHECK_THROWS_WITH(
      sparse::build_global_tiles(labels),
      Equals("global_attention: labels.g2l: example 0, global 1, long 5: expected a label below R=32 or 255 "
             "(masked), got 254"));
  labels.l2l = l2l.data();
  l2l[19 * 3 + 2] = 200;  // the key after the last one of example 0 does not exist, so its label is ignored
  CHECK_NOTHROW(sparse::build_long_tiles(labels));
  l2l[19 * 3 + 1] = 32;
  CHECK_THROWS_WITH(sparse::build_long_tiles(labels), Contains("labels.l2l: example 0, long 19, key 19"));
}

TEST_CASE("impossible batches are errors", "[sparse]") {
  const std::vector<std::int64_t> good = {0, 4, 9}, late = {1, 4, 9}, falling = {0, 57, 40};
  CHECK_THROWS_WITH(sparse::build_long_tiles(tensors(late, good, 1)),
                    Equals("long_attention: long_offsets: expected to start at 0, got 1"));
  CHECK_THROWS_WITH(sparse::build_global_tiles(tensors(good, falling, 1)),
                    Equals("global_attention: global_offsets: expected non-decreasing, got 40 after 57 at 2"));
  CHECK_THROWS_WITH(sparse::build_long_tiles(tensors(good, good, -1)),
                    Equals("long_attention: radius: expected at least 0, got -1"));
  CHECK_THROWS_WITH(sparse::build_long_tiles(tensors(good, good, 1, 256)),
                    Equals("long_attention: relative labels: expected R from 0 to 255, got 256 (relative_clip at "
                           "most 127, or no listed labels)"));
  sparse::LabelTensors missing = tensors(good, good, 1);
  missing.long_offsets = nullptr;
  CHECK_THROWS_WITH(sparse::build_long_tiles(missing), Contains("expected [B+1=3] offsets, got null"));
  missing = tensors(good, good, 1);
  missing.examples = -1;
  CHECK_THROWS_WITH(sparse::build_long_tiles(missing), Contains("expected B >= 0, got -1"));
}
