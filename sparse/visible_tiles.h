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
  bool window = false;                      // queries and keys are one sequence, pairs at most `radius` apart
  std::int64_t radius = 0;                  // of a window
  std::vector<std::int64_t> query_offsets;  // [B+1]
  std::vector<std::int64_t> key_offsets;    // [B+1]
  std::vector<std::int64_t> group_offsets;  // [B+1]: example b owns groups group_offsets[b] …
  Buffer<std::int64_t> run_offsets;         // [groups+1]: group g owns runs run_offsets[g] …, in order of first_key
  Buffer<TileRun> runs;
  Buffer<std::uint16_t> visible;     // [columns]: bit i is set when query i of the group sees this key
  Buffer<std::uint32_t> label;       // [columns]: the label of all visible pairs, or kFirstMixed + row of mixed
  Buffer<std::uint8_t> mixed;        // [mixed columns, kGroup]: one label per query (0 where masked)
  bool relative = false;             // labels select table rows; label and mixed are empty otherwise
  DistanceLabels distance;           // labels by distance, of any pattern, instead of listed ones
  std::int64_t relative_labels = 0;  // R the labels were checked against
  std::int64_t columns = 0;
  std::int64_t visible_pairs = 0;      // of one head: what useful work is counted by
  std::int64_t max_group_columns = 0;  // of any group
  std::int64_t max_group_runs = 0;

  std::int64_t examples() const { return static_cast<std::int64_t>(query_offsets.size()) - 1; }
  std::int64_t queries() const { return query_offsets.back(); }
  std::int64_t keys() const { return key_offsets.back(); }
  // Whether pairs have labels that select rows of the relative tables.
  bool labelled() const { return relative || distance.used(); }
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
// Position of key j less that of query i: j - i + shifts[b], both counted from the first of their example; no shifts: 0
// (a memory of M keys before the queries' own: -M).
// Throws Error when the type has listed labels, the map has no distances or rows from kMostLabels on, or shifts are not
// one per example.
void label_by_distance(TypeTiles& tiles, const DistanceMap& map, std::vector<std::int64_t> shifts = {});

}  // namespace etc::sparse
