// Parameters of the attention kernels: views of a batch's tiles on the device, the work list, operands.
//
// One set of kernels computes both operators. Type 0 is l2l or g2g, type 1 is l2g or g2l; what differs (which keys a
// query sees, whether its keys are split) is in the work list that the host builds (attention_plan.h).
//
// C++17: host and device read this header.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"
#include "sparse/attention_types.h"
#include "sparse/tile_run.h"

namespace etc::sparse::cuda {

using simt::Span;

inline constexpr int kWarpsPerBlock = 4;  // one group of queries each
inline constexpr int kBlockThreads = 32 * kWarpsPerBlock;
inline constexpr int kBlockQueries = kGroup * kWarpsPerBlock;
inline constexpr int kTileKeys = 64;                      // a step belongs to the key tile in which it starts
inline constexpr int kTileRows = kTileKeys + kRunStep;    // the last step may start at the last key
inline constexpr int kTileSteps = kTileKeys / kRunStep;   // of one group, at most
inline constexpr int kSplitTiles = 8;                     // key tiles of one split of a global query's keys
inline constexpr int kSplitEntries = 8 * kWarpsPerBlock;  // groups of queries of one split of a key tile
inline constexpr int kTableStride = 20;                   // floats per label in shared memory; avoids bank conflicts
inline constexpr int kRelativeRows = 128;                 // queries of one partial sum of the tables' gradients

// Why these sizes: 16 queries are one row of mma tiles and one group of the tiles' lists; four such warps share each
// copied key tile; 64 keys are 8 steps, whose scores (4 a lane and step) stay in 32 registers. With D = 64 in bf16 two
// tiles of keys and values and the relative terms of 32 labels take 51,712 bytes.

// Labels of a type by distance (distance_labels.h): of a pair, rows[clip(distance - first)].
struct DistanceView {
  Span<const std::int32_t> rows;    // [distances], by rising distance; empty: labels are listed, or there are none
  Span<const std::int64_t> shifts;  // [B]
  std::int64_t first = 0;
};

// One attention type of the batch, on the device (TypeTiles of visible_tiles.h).
struct TypeView {
  // As in TypeTiles: columns are keys of groups, runs are ranges of columns.
  Span<const std::int64_t> run_offsets;  // [groups + 1]
  Span<const TileRun> runs;
  Span<const std::uint16_t> visible;  // [columns]
  Span<const std::uint32_t> label;    // empty: no relative term
  Span<const std::uint8_t> mixed;     // [mixed columns, kGroup]
  std::int64_t columns = 0;
  DistanceView distance;  // read by pairwise terms only; others have such labels listed

  // Whether pairs have labels that select rows of the tables.
  constexpr bool labelled() const { return label.size > 0 || distance.rows.size > 0; }
};

// The entries of the lists below are plain numbers without pointers, since they are copied to the device as they are.

// A place in a group's runs: run (absolute) and key within it.
struct Cursor {
  std::int32_t run = 0, key = 0;
};

// Keys [first_key, first_key + kTileKeys) of one type; the tile has the steps that start there.
struct KeyTile {
  std::int32_t type = 0, first_key = 0;
};

// The work of one block: up to kWarpsPerBlock groups of one example over some of the key tiles they see.
struct QueryItem {
  std::int64_t query_row = 0;        // of the first query
  std::int64_t key_row[2] = {0, 0};  // of the example's first key, per type
  std::int32_t keys[2] = {0, 0};     // of the example
  std::int32_t example = 0, first_query = 0, queries = 0, first_group = 0, groups = 0;
  // In `tiles` and `cursors` of the work list.
  std::int32_t tile_begin = 0, tile_end = 0;
  std::int32_t slot = -1;  // of the partial result; -1: this item covers all keys of its queries
};

// The items that share the same queries; their slots are combined in order.
struct SplitQueries {
  std::int64_t query_row = 0;
  std::int32_t queries = 0, first_slot = 0, slots = 0, unused = 0;
};

// Backward: the work of one block on kTileKeys keys of one type, seen by some groups.
struct KeyItem {
  std::int64_t key_row = 0;                                     // of the first key
  std::int64_t query_row = 0;                                   // of the example's first query
  std::int32_t type = 0, example = 0, first_key = 0, keys = 0;  // keys: valid ones
  std::int32_t first_group = 0, queries = 0;                    // of the example
  std::int32_t example_keys[2] = {0, 0};
  // In `key_entries`.
  std::int32_t entry_begin = 0, entry_end = 0;
  std::int32_t slot = -1, unused = 0;
};

// One group of queries that sees some of a key item's keys.
struct KeyEntry {
  std::int32_t group = 0;  // absolute
  Cursor cursor;
};

struct SplitKeys {
  std::int64_t key_row = 0;
  std::int32_t type = 0, keys = 0, first_slot = 0, slots = 0;
};

// The rows of one tensor in any layout: head h of row t begins at h*head_stride + t*row_stride.
// Element: float, or a word of two bf16.
template <typename Element>
struct Operand {
  Span<const Element> values;
  std::int64_t head_stride = 0, row_stride = 0;
};

// The same for kernels that read single numbers of either type: component d of head h of row t is number
// h*head_stride + t*row_stride + d.
struct NumberRows {
  Span<const float> values;         // fp32; empty if `pairs` is used
  Span<const std::uint32_t> pairs;  // two bf16 numbers per word
  std::int64_t head_stride = 0, row_stride = 0;
};

// Gradients and outputs are token-major, as the tensors of the caller are.
struct Output {
  Span<float> values;         // [rows, row_stride]; empty if `pairs` is used
  Span<std::uint32_t> pairs;  // [rows, row_stride / 2], two bf16 numbers per word
  std::int64_t row_stride = 0;
};

// Running scores of one type, for forward and backward. C and dC have the CPU's layout: the 16 queries of a key are
// contiguous.
struct ScoreView {
  ScoreMode mode = ScoreMode::none;                           // forward
  ScoreGradientMode gradient_mode = ScoreGradientMode::none;  // backward
  bool rewind = false;
  float logit_scale = 1.0f;
  // C and dC of all heads: [N, columns, kGroup]
  Span<std::int32_t> running;
  Span<float> gradient;
};

// Dropout parameters: one stream of random bits per example.
struct DropoutView {
  Span<const std::uint64_t> keys;  // [B] streams; empty: no dropout
  std::uint32_t threshold = 0;
  float kept_scale = 1.0f;
};

// Sizes, common to all attention kernels.
struct AttentionSizes {
  std::int64_t heads = 0, queries = 0;  // N, rows of q
  int head_size = 0;                    // D
  bool pairwise = false;                // terms are PairwiseTerms
  int labels = 0;                       // R of LabelTerms; 0: no relative term, or pairwise ones
  int table_rows = 0;                   // R of PairwiseTerms, 0 without them
  std::int64_t table_heads = 1;         // N, or 1 where all heads share the tables
  float scale = 1.0f;                   // 1/sqrt(D)
  // What is kept in a block's shared memory, decided at launch.
  int shared_labels = 0;  // R, or 0: relative terms (and their gradients) stay in global memory
  int buffers = 2;        // key tiles in shared memory: 2, or 1 without prefetch
};

// Relative tables as pairwise terms read them (pairwise_terms.h); each may be empty.
struct TableViews {
  Span<const float> rel, rel_k, w, rel_v;  // [R, table_heads, D]
  Span<const float> rel_bias, factor;      // [R, table_heads]
};

// First column of each table in a row of partial sums of the tables' gradients; -1: absent. Vectors take D columns.
struct TableColumns {
  int rel = -1, rel_k = -1, product = -1, rel_v = -1, bias = -1;  // product: for w, and for factor
  int width = 0;
};

// Pairwise terms, backward: partial sums of the tables' gradients.
struct TablePartials {
  TableColumns columns;
  std::int64_t items = 1;  // work items of one part, processed by one block in turn
  Span<float> sums;        // [parts, N, R, width]
};

// If every head has its own tiles: the head of each entry of these lists. Empty if heads share the lists and block y is
// the head. Read only by the kernels of pairwise terms.
struct HeadLists {
  Span<const std::int32_t> items, split_queries, key_items, split_keys;
};

// The lists of attention_plan.h, on the device.
struct WorkList {
  TypeView types[2];
  // One block per item: forward, and backward by queries.
  Span<const QueryItem> items;
  Span<const KeyTile> tiles;
  Span<const Cursor> cursors;  // [tiles, kWarpsPerBlock]: where each warp's group begins
  // Queries whose keys were split.
  Span<const SplitQueries> split_queries;
  // One block per item: backward by keys.
  Span<const KeyItem> key_items;
  Span<const KeyEntry> key_entries;
  Span<const SplitKeys> split_keys;
  HeadLists own_heads;
};

// Parameters are copied to the device by value with the launch: kernels read them from constant memory.
template <typename Element>
struct ForwardParams {
  AttentionSizes sizes;
  WorkList work;
  // k, v: by key set.
  Operand<Element> q, k[2], v[2];
  Span<const float> table;  // [N, groups, R, kGroup]: relative terms, scaled
  TableViews tables;        // of pairwise terms
  ScoreView scores[2];
  DropoutView dropout;
  Output out;
  Span<float> lse;           // [N, queries]
  Span<float> slots;         // [slots, N, kBlockQueries, D + 2]: partial outputs, maximum, sum
  Span<std::int32_t> range;  // [2]: per type, raised to 1 if a score leaves the range of C
};

// Rows as bf16, padded with zeros: [N, rows, width] from [rows, N, D].
struct ConvertParams {
  Operand<float> from;
  Span<std::uint32_t> to;  // [N, rows, width / 2]
  std::int64_t heads = 0, rows = 0;
  int head_size = 0, width = 0;
};

// table[n][g][r][i] = (q_i·rel[r] + rel_bias[r]) / sqrt(D)
struct TableParams {
  AttentionSizes sizes;
  NumberRows q;
  Span<const float> rel, rel_bias;       // [R, table_heads, D], [R, table_heads]; either may be empty
  Span<const std::int64_t> group_rows;   // [groups]: first query of each group
  Span<const std::int32_t> group_sizes;  // [groups]: its queries
  Span<float> table;                     // [N, groups, R, kGroup]
};

// max = max_n max_n, out = sum_n 2^(max_n - max) out_n / sum_n 2^(max_n - max) sum_n over a query's slots n
struct CombineParams {
  AttentionSizes sizes;
  Span<const SplitQueries> split_queries;
  Span<const float> slots;  // [slots, N, kBlockQueries, D + 2]
  float kept_scale = 1.0f;
  Output out;
  Span<float> lse;                     // [N, queries]
  Span<const std::int32_t> own_heads;  // as HeadLists
};

// For both backward kernels: by keys (dk, dv), then by queries (dq, dC, C, dtable).
template <typename Element>
struct BackwardParams {
  AttentionSizes sizes;
  WorkList work;
  Operand<Element> q, dout, k[2], v[2];
  Span<const float> table;  // [N, groups, R, kGroup]
  TableViews tables;        // of pairwise terms
  TablePartials partials;
  ScoreView scores[2];
  DropoutView dropout;
  Span<const float> lse, delta;  // [N, queries]
  Output dq, dk[2], dv[2];
  Span<float> dtable;       // [N, queries, R] =: sums of dC/sqrt(D) over the keys with each label
  Span<float> query_slots;  // [slots, N, kBlockQueries, D + R]: partial dq and dtable
  Span<float> key_slots;    // [slots, N, kTileKeys, 2 D]: partial dk and dv
};

// delta[n][t] = dout_t·out_t of head n
struct DeltaParams {
  AttentionSizes sizes;
  NumberRows out, dout;
  Span<float> delta;  // [N, queries]
};

// dq, dtable = the sums of a query's slots, in their order
struct SumQueriesParams {
  AttentionSizes sizes;
  Span<const SplitQueries> split_queries;
  Span<const float> slots;  // [slots, N, kBlockQueries, D + R]
  Output dq;
  Span<float> dtable;                  // [N, queries, R]
  Span<const std::int32_t> own_heads;  // as HeadLists
};

// dk, dv = the sums of a key's slots, in their order
struct SumKeysParams {
  AttentionSizes sizes;
  Span<const SplitKeys> split_keys;
  Span<const float> slots;  // [slots, N, kTileKeys, 2 D]
  Output dk[2], dv[2];
  Span<const std::int32_t> own_heads;  // as HeadLists
};

// Gradients that the relative terms add to the queries and the tables.
struct RelativeParams {
  AttentionSizes sizes;
  NumberRows q;
  Span<const float> rel;     // [R, table_heads, D]
  Span<const float> dtable;  // [N, queries, R]
  Output dq;                 // += dtable·rel
  Span<float> partial;       // [parts, N, R, D + 1] =: sums over kRelativeRows queries of dtable·q, and of dtable
};

// One table's gradient += the partial sums of its columns, in order of the parts, for each head that shares it in turn.
struct TableSumParams {
  std::int64_t heads = 0, table_heads = 0, rows = 0;  // N, heads of the table, R
  Span<const float> partial;                          // [parts, N, R, width]
  std::int64_t parts = 0;
  int width = 0, first = 0, columns = 0;  // columns of a row of sums: all, the table's first, the table's number
  bool folded = false;                    // the table has one number per row: the sum of the columns
  Span<float> gradient;                   // += [R, table_heads, columns]; folded: [R, table_heads]
};

}  // namespace etc::sparse::cuda
