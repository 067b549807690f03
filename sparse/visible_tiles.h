// The list of pairs that a batch's attention computes, in the order in which the kernels visit them. It is built once
// per batch from the label tensors and shared by all heads, layers, forward and backward.
//
// Queries form groups of kGroup consecutive queries of one example, counted from its first. A *column* is one key seen
// by one group: kGroup pairs. A *run* is a sequence of consecutive keys of one group. A step of kRunStep keys that no
// query of the group sees belongs to no run and is neither computed nor stored. Score storage (scores.h) has one cache
// line of kGroup elements per column, so this list also defines its layout. The meaning of labels is in labels/, the
// arithmetic in cpu/.
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
  // The queries are the last tokens of the keys' sequence (all of it, or the segment after a memory). A query sees at
  // most the keys from `before` positions before its own key to `after` positions after it.
  bool window = false;
  std::int64_t before = 0, after = 0;       // of a window
  std::vector<std::int64_t> query_offsets;  // [B+1]
  std::vector<std::int64_t> key_offsets;    // [B+1]
  std::vector<std::int64_t> group_offsets;  // [B+1]: example b owns groups group_offsets[b] …
  std::int64_t heads = 1;            // heads with separate tiles, stored one head after another; 1: all heads share
  Buffer<std::int64_t> run_offsets;  // [heads*groups+1]: group g owns runs run_offsets[g] …, by first_key
  Buffer<TileRun> runs;
  Buffer<std::uint16_t> visible;     // [columns]: bit i is set when query i of the group sees this key
  Buffer<std::uint32_t> label;       // [columns]: the label of all visible pairs, or kFirstMixed + row of mixed
  Buffer<std::uint8_t> mixed;        // [mixed columns, kGroup]: one label per query (0 where masked)
  bool relative = false;             // listed labels select table rows; otherwise label and mixed are empty
  DistanceLabels distance;           // labels by distance (any pattern), instead of listed labels
  std::int64_t relative_labels = 0;  // R the labels were checked against
  std::int64_t columns = 0;
  std::int64_t visible_pairs = 0;      // of all heads with separate tiles; the measure of useful work
  std::int64_t max_group_columns = 0;  // of any group
  std::int64_t max_group_runs = 0;
  // [heads*groups+1] or empty: number of key splits that the preceding groups see. Partial results are allocated for
  // these (group, split) pairs only; runs must not cross splits.
  Buffer<std::int64_t> split_offsets;

  std::int64_t examples() const { return static_cast<std::int64_t>(query_offsets.size()) - 1; }
  std::int64_t queries() const { return query_offsets.back(); }
  std::int64_t keys() const { return key_offsets.back(); }
  // Whether pairs have labels that select rows of the relative tables.
  bool labelled() const { return relative || distance.used(); }
  // The number of a head's group 0, and a head's first column in the type's scores.
  std::int64_t first_group(std::int64_t head) const { return heads == 1 ? 0 : head * group_offsets.back(); }
  std::int64_t first_column(std::int64_t head) const { return heads == 1 ? head * columns : 0; }
  // Visible pairs of all heads of a model.
  std::int64_t pairs_of(std::int64_t model_heads) const { return visible_pairs * (model_heads / heads); }
  // Columns of a window's external form.
  std::int64_t width() const { return before + after + 1; }
  // Position of example b's first query among the keys: after the memory, if any.
  std::int64_t first_position(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = query_offsets[at + 1] - query_offsets[at],
                       keys = key_offsets[at + 1] - key_offsets[at];
    return window ? keys - queries : 0;
  }
};

// The tiles of one operator: both key sets, with the same queries.
struct AttentionTiles {
  const AttentionOperator* op = nullptr;
  TypeTiles types[kKeySets];
  // Data that a device's backend derives from the tiles at their first use, of a backend-specific type. It lives as
  // long as the batch. The backend's kernels fill it in; calls must not be concurrent.
  mutable std::array<std::shared_ptr<const void>, kDeviceCount> plans{};
};

// ETC's label tensors of a ragged batch (labels/labels.h builds them); null: everything visible, no relative term.
struct LabelTensors {
  std::int64_t examples = 0;                     // B
  const std::int64_t* long_offsets = nullptr;    // [B+1]
  const std::int64_t* global_offsets = nullptr;  // [B+1]
  std::int64_t radius = 0;                       // W = 2*radius+1
  std::int64_t relative_labels = 0;              // R; 0: labels only mask, whatever their value
  const std::uint8_t* l2l = nullptr;             // [T, W]; entries outside the example are ignored
  const std::uint8_t* l2g = nullptr;             // per example [L, G], one after the other
  const std::uint8_t* g2g = nullptr;             // per example [G, G]
  const std::uint8_t* g2l = nullptr;             // per example [G, L]
};

// The tiles of ETC's long and of its global attention (etc_attention.h). Throws Error when offsets do not start at 0 or
// are not monotone, radius < 0, R > 255, or a label is neither below R nor kMasked (naming example, query and key).
// Cost: one pass over the labels, in parallel over groups; about 0.4 bytes per pair, charged to `labels`.
AttentionTiles build_long_tiles(const LabelTensors& labels);
AttentionTiles build_global_tiles(const LabelTensors& labels);

// Gives the pairs of a type labels by distance, whichever builder made the tiles. R becomes the largest row plus 1.
// The distance of query i and key j is j - i + shifts[b], both counted from the first of their example. Without shifts
// it follows from the tiles: in a window the shift is -first_position (-M after a memory of M keys), otherwise 0.
// Throws Error when the type has listed labels, when the map is empty or has rows from kMostLabels on, or when the
// number of shifts is not the number of examples.
void label_by_distance(TypeTiles& tiles, const DistanceMap& map, std::vector<std::int64_t> shifts = {});

}  // namespace etc::sparse
