// Which pairs a batch's attention computes, in the order the kernels walk them; built once per batch from the label
// tensors and shared by all heads, layers, forward and backward.
//
// Queries come in groups of kGroup consecutive queries of one example, counted from its first. A *column* is one key
// seen by one group: kGroup pairs. A *run* is a row of consecutive keys of one group; stretches of kRunStep keys that
// no query of the group sees belong to no run: they are neither computed nor stored. Score storage (scores.h) has one
// line of kGroup elements per column, so this list is its layout, too. Not here: what labels mean (labels/), arithmetic
// (cpu/).
//
//   keys of an example   0       8       16      24      32      40            steps of 8
//   group 0 (queries 0-15)       [==== run of 16 ====]   [ run of 8 ]          24 columns: 24 lines of scores
//   group 1 (queries 16-31)              [ run of 8 ]                           8 columns
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/base/buffer.h"
#include "sparse/attention_types.h"
#include "sparse/distance_labels.h"
#include "sparse/tile_run.h"

namespace etc::sparse {

// One attention type of a batch.
struct TypeTiles {
  AttentionType type;
  // Queries are the last of the keys' sequence (all of it, or the segment behind a memory) and see the keys from
  // `before` their own to `after` it at most.
  bool window = false;
  std::int64_t before = 0, after = 0;       // of a window
  std::vector<std::int64_t> query_offsets;  // [B+1]
  std::vector<std::int64_t> key_offsets;    // [B+1]
  std::vector<std::int64_t> group_offsets;  // [B+1]: example b owns groups group_offsets[b] …
  std::int64_t heads = 1;            // with tiles of their own, one head's groups after the other's; 1: all share
  Buffer<std::int64_t> run_offsets;  // [heads*groups+1]: group g owns runs run_offsets[g] …, by first_key
  Buffer<TileRun> runs;
  Buffer<std::uint16_t> visible;     // [columns]: bit i is set when query i of the group sees this key
  Buffer<std::uint32_t> label;       // [columns]: the label of all visible pairs, or kFirstMixed + row of mixed
  Buffer<std::uint8_t> mixed;        // [mixed columns, kGroup]: one label per query (0 where masked)
  bool relative = false;             // labels select table rows; label and mixed are empty otherwise
  DistanceLabels distance;           // labels by distance, of any pattern, instead of listed ones
  std::int64_t relative_labels = 0;  // R the labels were checked against
  std::int64_t columns = 0;
  std::int64_t visible_pairs = 0;      // of all heads with tiles of their own: what useful work is counted by
  std::int64_t max_group_columns = 0;  // of any group
  std::int64_t max_group_runs = 0;
  // [heads*groups+1] or empty: splits of kKeySplit keys that the groups before see. Where runs end with splits, partial
  // results need places for these alone.
  Buffer<std::int64_t> split_offsets;

  std::int64_t examples() const { return static_cast<std::int64_t>(query_offsets.size()) - 1; }
  std::int64_t queries() const { return query_offsets.back(); }
  std::int64_t keys() const { return key_offsets.back(); }
  // Whether pairs have labels that select rows of the relative tables.
  bool labelled() const { return relative || distance.used(); }
  // The number that group 0 of a head has, and its first column in a type's scores.
  std::int64_t first_group(std::int64_t head) const { return heads == 1 ? 0 : head * group_offsets.back(); }
  std::int64_t first_column(std::int64_t head) const { return heads == 1 ? head * columns : 0; }
  // Of all of a model's heads.
  std::int64_t pairs_of(std::int64_t model_heads) const { return visible_pairs * (model_heads / heads); }
  // Of a window: columns of its external form.
  std::int64_t width() const { return before + after + 1; }
  // Where the first query of example b stands among its keys: behind the memory, where there is one.
  std::int64_t first_position(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = query_offsets[at + 1] - query_offsets[at],
                       keys = key_offsets[at + 1] - key_offsets[at];
    return window ? keys - queries : 0;
  }
};

// The tiles of one operator: of both its key sets, with the same queries.
struct AttentionTiles {
  const AttentionOperator* op = nullptr;
  TypeTiles types[kKeySets];
  // What a device's backend makes of them when it first computes with them, of a type of its own: lives as long as the
  // batch. Filled by the backend's kernels, one call at a time.
  mutable std::array<std::shared_ptr<const void>, kDeviceCount> plans{};
};

// ETC's label tensors of a ragged batch (see labels/labels.h for who makes them); null: everything visible, no relative
// term.
struct LabelTensors {
  std::int64_t examples = 0;                     // B
  const std::int64_t* long_offsets = nullptr;    // [B+1]
  const std::int64_t* global_offsets = nullptr;  // [B+1]
  std::int64_t radius = 0;                       // W = 2*radius+1
  std::int64_t relative_labels = 0;              // R; 0: labels only mask, whatever their value
  const std::uint8_t* l2l = nullptr;             // [T, W]; entries outside the example are not looked at
  const std::uint8_t* l2g = nullptr;             // per example [L, G], one after the other
  const std::uint8_t* g2g = nullptr;             // per example [G, G]
  const std::uint8_t* g2l = nullptr;             // per example [G, L]
};

// The tiles of ETC's long and of its global attention (etc_attention.h). Throws Error when offsets do not start at 0 or
// are not monotone, radius < 0, R > 255, or a label is neither below R nor kMasked (naming example, query and key).
// Cost: one pass over the labels, in parallel over groups; about 0.4 bytes per pair, charged to `labels`.
AttentionTiles build_long_tiles(const LabelTensors& labels);
AttentionTiles build_global_tiles(const LabelTensors& labels);

// Gives the pairs of a type labels by distance, of whatever builder the tiles are; R is one more than the largest row.
// Position of key j less that of query i: j - i + shifts[b], both counted from the first of their example; no shifts:
// as in a window the queries are its last tokens (first_position), -M behind a memory of M keys; else 0.
// Throws Error when the type has listed labels, the map has no distances or rows from kMostLabels on, or shifts are not
// one per example.
void label_by_distance(TypeTiles& tiles, const DistanceMap& map, std::vector<std::int64_t> shifts = {});

}  // namespace etc::sparse
