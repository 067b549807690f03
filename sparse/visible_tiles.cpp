#include "sparse/visible_tiles.h"

#include <algorithm>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/offsets.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/profiler.h"
#include "sparse/etc_attention.h"
#include "sparse/self_attention.h"
#include "sparse/tile_builder.h"
#include "sparse/tile_sample.h"

namespace etc::sparse {

namespace {

// Labels of one group as columns: columns[key][query], kMasked where a pair does not exist.
struct GroupLabels {
  std::int64_t first_key = 0, keys = 0;  // existing keys that the group may see
  std::vector<std::uint8_t> columns;     // [keys rounded up to steps, kGroup]
};

// Position of a group.
struct GroupPlace {
  std::int64_t example, first_query, queries, example_keys;  // counted within the example
  std::int64_t first_position;                               // TypeTiles::first_position of the example
};

GroupLabels gather_labels(const TypeTiles& tiles, const GroupPlace& place, const TypeLabels& own,
                          std::int64_t label_base, std::int64_t relative_labels) {
  const std::uint8_t* const labels = own.labels;
  const bool window = tiles.window;
  GroupLabels group;
  // A group's keys are the union of its queries' keys: for a window at most its width + 15.
  const std::int64_t first = place.first_position + place.first_query;  // the first query's own key
  const std::int64_t end_key =
      window ? std::min(place.example_keys, first + place.queries + tiles.after) : place.example_keys;
  group.first_key = window ? std::max<std::int64_t>(0, first - tiles.before) : 0;
  group.keys = std::max<std::int64_t>(0, end_key - group.first_key);
  // Steps are whole; columns beyond the last key stay masked.
  const std::int64_t rounded = round_up(group.keys, kRunStep);
  group.columns.assign(static_cast<std::size_t>(rounded * kGroup), kMasked);
  for (std::int64_t i = 0; i < place.queries; ++i) {
    const std::int64_t query = place.first_query + i;
    const std::int64_t begin = window ? std::max(group.first_key, first + i - tiles.before) : 0;
    const std::int64_t end = window ? std::min(place.example_keys, first + i + tiles.after + 1) : place.example_keys;
    std::uint8_t* column = group.columns.data() + (begin - group.first_key) * kGroup + i;
    // Without labels all keys in reach are visible; the label 0 is not used.
    if (labels == nullptr) {
      for (std::int64_t j = begin; j < end; ++j, column += kGroup) *column = 0;
      continue;
    }
    const std::uint8_t* row = labels + label_base + query * (window ? tiles.width() : place.example_keys);
    // Rows of a window are indexed by distance: shift the pointer so that row[key] is the label of a key.
    if (window) row += tiles.before - first - i;
    for (std::int64_t j = begin; j < end; ++j, column += kGroup) {
      const std::uint8_t label = row[j];
      if (label >= relative_labels && label != kMasked && relative_labels > 0) {
        fail(own.names.op, "labels.{}: example {}, {} {}, {} {}: expected a label below R={} or 255 (masked), got {}",
             tiles.type.name, place.example, own.names.query, query, own.names.key, j, relative_labels, label);
      }
      *column = label;
    }
  }
  return group;
}

// Appends one column to the list: which queries see the key, and with which label.
void append_column(GroupTiles& out, const std::uint8_t* column, bool relative) {
  // One pass finds the visible queries and whether they all have the same label.
  std::uint32_t visible = 0;
  std::uint8_t lowest = kMasked, highest = 0;
  for (int i = 0; i < kGroup; ++i) {
    const bool sees = column[i] != kMasked;
    visible |= static_cast<std::uint32_t>(sees) << i;
    lowest = std::min(lowest, column[i]);
    highest = std::max(highest, sees ? column[i] : std::uint8_t{0});
  }
  out.visible.push_back(static_cast<std::uint16_t>(visible));
  out.visible_pairs += __builtin_popcount(visible);
  if (!relative) return;
  if (visible == 0 || lowest == highest) {
    out.label.push_back(visible == 0 ? 0u : lowest);
    return;
  }
  // Labels from kFirstMixed on are rows of `mixed`, relative to the group; concatenate makes them relative to the type.
  out.label.push_back(kFirstMixed + static_cast<std::uint32_t>(out.mixed.size()) / kGroup);
  for (int i = 0; i < kGroup; ++i) out.mixed.push_back(column[i] == kMasked ? std::uint8_t{0} : column[i]);
}

// Cuts a group's columns into runs of whole steps.
GroupTiles build_group(const GroupLabels& labels, bool relative, bool split_keys) {
  GroupTiles out;
  const std::int64_t steps = static_cast<std::int64_t>(labels.columns.size()) / (kGroup * kRunStep);
  bool open = false;  // whether the last run may grow
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::uint8_t* columns = labels.columns.data() + step * kGroup * kRunStep;
    // An invisible step ends the run; it is neither computed nor stored.
    const bool seen = std::any_of(columns, columns + kGroup * kRunStep, [](std::uint8_t l) { return l != kMasked; });
    if (!seen) {
      open = false;
      continue;
    }
    const std::int64_t key = labels.first_key + step * kRunStep;
    // With split keys a run also ends at a split boundary, so that each run belongs to one task.
    if (!open || (split_keys && key % kKeySplit == 0)) {
      out.runs.push_back({static_cast<std::int64_t>(out.visible.size()), static_cast<std::int32_t>(key), 0});
    }
    open = true;
    out.runs.back().keys += kRunStep;
    for (int j = 0; j < kRunStep; ++j) append_column(out, columns + j * kGroup, relative);
  }
  return out;
}

template <typename T>
void append(Buffer<T>& to, std::int64_t& used, const std::vector<T>& from) {
  if (!from.empty()) std::memcpy(to.data() + used, from.data(), from.size() * sizeof(T));
  used += static_cast<std::int64_t>(from.size());
}

// Allocates the lists for `groups` groups, `runs` runs, `mixed_columns` mixed columns and tiles.columns columns.
void make_room(TypeTiles& tiles, std::int64_t groups, std::int64_t runs, std::int64_t mixed_columns) {
  tiles.run_offsets = Buffer<std::int64_t>(groups + 1, Purpose::labels);
  tiles.runs = Buffer<TileRun>(runs, Purpose::labels);
  tiles.visible = Buffer<std::uint16_t>(tiles.columns, Purpose::labels);
  tiles.label = Buffer<std::uint32_t>(tiles.relative ? tiles.columns : 0, Purpose::labels);
  tiles.mixed = Buffer<std::uint8_t>(mixed_columns * kGroup, Purpose::labels);
}

}  // namespace

void concatenate(TypeTiles& tiles, const std::vector<GroupTiles>& groups) {
  std::int64_t runs = 0, mixed = 0;
  // Sizes first, so that each list is a single allocation.
  for (const GroupTiles& group : groups) {
    runs += static_cast<std::int64_t>(group.runs.size());
    mixed += static_cast<std::int64_t>(group.mixed.size());
    tiles.columns += static_cast<std::int64_t>(group.visible.size());
    tiles.visible_pairs += group.visible_pairs;
    tiles.max_group_runs = std::max(tiles.max_group_runs, static_cast<std::int64_t>(group.runs.size()));
    tiles.max_group_columns = std::max(tiles.max_group_columns, static_cast<std::int64_t>(group.visible.size()));
  }
  make_room(tiles, static_cast<std::int64_t>(groups.size()), runs, mixed / kGroup);
  std::int64_t run = 0, column = 0, labels_used = 0, mixed_used = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    tiles.run_offsets[static_cast<std::int64_t>(g)] = run;
    // Column numbers were relative to the group.
    for (TileRun r : groups[g].runs) {
      r.column += column;
      tiles.runs[run++] = r;
    }
    const std::uint32_t mixed_base = static_cast<std::uint32_t>(mixed_used / kGroup);
    for (std::uint32_t label : groups[g].label) {
      tiles.label[labels_used++] = label < kFirstMixed ? label : label + mixed_base;
    }
    append(tiles.visible, column, groups[g].visible);
    append(tiles.mixed, mixed_used, groups[g].mixed);
  }
  // End of the last group.
  tiles.run_offsets[static_cast<std::int64_t>(groups.size())] = run;
}

namespace {

// Concatenates the lists of consecutive ranges of groups.
void join(TypeTiles& tiles, std::vector<TypeTiles> stretches) {
  std::int64_t groups = 0, runs = 0, mixed = 0;
  for (const TypeTiles& part : stretches) {
    groups += part.run_offsets.size() - 1;
    runs += part.runs.size();
    mixed += part.mixed.size() / kGroup;
    tiles.columns += part.columns;
    tiles.visible_pairs += part.visible_pairs;
    tiles.max_group_runs = std::max(tiles.max_group_runs, part.max_group_runs);
    tiles.max_group_columns = std::max(tiles.max_group_columns, part.max_group_columns);
  }
  make_room(tiles, groups, runs, mixed);
  std::int64_t group = 0, run = 0, column = 0, row = 0;
  for (TypeTiles& stretch : stretches) {
    const TypeTiles part = std::move(stretch);  // freed before the next one is copied
    for (std::int64_t g = 0; g + 1 < part.run_offsets.size(); ++g)
      tiles.run_offsets[group++] = run + part.run_offsets[g];
    for (std::int64_t r = 0; r < part.runs.size(); ++r) {
      tiles.runs[run + r] = part.runs[r];
      tiles.runs[run + r].column += column;
    }
    for (std::int64_t c = 0; c < part.label.size(); ++c) {
      const std::uint32_t label = part.label[c];
      tiles.label[column + c] = label < kFirstMixed ? label : label + static_cast<std::uint32_t>(row);
    }
    std::copy_n(part.visible.data(), part.columns, tiles.visible.data() + column);
    std::copy_n(part.mixed.data(), part.mixed.size(), tiles.mixed.data() + row * kGroup);
    run += part.runs.size();
    column += part.columns;
    row += part.mixed.size() / kGroup;
  }
  tiles.run_offsets[group] = run;
}

// How many groups from `first` on are built at a time. The number is small if groups have many columns, since until the
// groups are joined their lists exist twice in memory, and the ledger does not count the second copy.
std::int64_t stretch_length(const TypeTiles& tiles, const std::vector<GroupPlace>& places, std::int64_t first) {
  constexpr std::int64_t kColumns = 1 << 20;  // 6 bytes of list each
  std::int64_t length = 0, columns = 0;
  for (std::int64_t g = first; g < std::ssize(places); ++g, ++length) {
    const std::int64_t keys = places[static_cast<std::size_t>(g)].example_keys;
    columns += tiles.window ? std::min(keys, tiles.width() + kGroup) : keys;
    if (length > 0 && columns > kColumns) break;
  }
  return length;
}

// Allocates lists without contents; every group gets the sizes of the sample's middle group (tile_sample.h).
void take_sizes(TypeTiles& tiles, const std::vector<GroupPlace>& places, const GroupSizes& sample, bool split_keys) {
  std::int64_t runs = 0, mixed_columns = 0;
  for (const GroupPlace& place : places) {
    GroupSizes group = sample;
    if (sample.whole) {
      const std::int64_t keys = place.example_keys;
      group.columns = round_up(keys, kRunStep);
      group.runs = split_keys ? ceil_div(keys, kKeySplit) : 1;
      group.visible_pairs = place.queries * keys;
    }
    runs += group.runs;
    mixed_columns += group.mixed_columns;
    tiles.columns += group.columns;
    tiles.visible_pairs += group.visible_pairs;
    tiles.max_group_runs = std::max(tiles.max_group_runs, group.runs);
    tiles.max_group_columns = std::max(tiles.max_group_columns, group.columns);
  }
  make_room(tiles, static_cast<std::int64_t>(places.size()), runs, mixed_columns);
}

TypeTiles build_type(const TypeLabels& own, std::int64_t relative_labels, bool split_keys) {
  TypeTiles tiles;
  const std::vector<std::int64_t>&query_offsets = own.query_offsets, &key_offsets = own.key_offsets;
  tiles.type = own.type;
  tiles.window = own.window;
  tiles.before = own.before;
  tiles.after = own.after;
  tiles.query_offsets = query_offsets;
  tiles.key_offsets = key_offsets;
  tiles.relative_labels = relative_labels;
  tiles.relative = own.labels != nullptr && relative_labels > 0;
  tiles.group_offsets.push_back(0);
  std::vector<GroupPlace> places;
  std::vector<std::int64_t> label_bases(1, 0);  // of each example
  for (std::int64_t b = 0; b < tiles.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = query_offsets[at + 1] - query_offsets[at],
                       keys = key_offsets[at + 1] - key_offsets[at];
    for (std::int64_t q = 0; q < queries; q += kGroup) {
      // Groups never cross examples, so the last group of an example may be short.
      places.push_back({b, q, std::min<std::int64_t>(kGroup, queries - q), keys, tiles.first_position(b)});
    }
    tiles.group_offsets.push_back(static_cast<std::int64_t>(places.size()));
    label_bases.push_back(label_bases.back() + queries * (own.window ? tiles.width() : keys));
  }
  if (const GroupSizes* sample = sampled_group(own.type)) {
    take_sizes(tiles, places, *sample, split_keys);
    return tiles;
  }
  // Groups are independent and concatenate keeps their order, so the result does not depend on threads.
  std::vector<TypeTiles> stretches;
  std::int64_t first = 0;
  do {
    std::vector<GroupTiles> groups(static_cast<std::size_t>(stretch_length(tiles, places, first)));
    parallel_for(std::ssize(groups), [&](std::int64_t g) {
      const GroupPlace& place = places[static_cast<std::size_t>(first + g)];
      const std::int64_t base = label_bases[static_cast<std::size_t>(place.example)];
      groups[static_cast<std::size_t>(g)] =
          build_group(gather_labels(tiles, place, own, base, relative_labels), tiles.relative, split_keys);
    });
    first += std::ssize(groups);
    TypeTiles& stretch = stretches.emplace_back();
    stretch.relative = tiles.relative;
    concatenate(first == std::ssize(places) && stretches.size() == 1 ? tiles : stretch, groups);
  } while (first < std::ssize(places));
  if (stretches.size() > 1) join(tiles, std::move(stretches));
  return tiles;
}

struct Offsets {
  std::vector<std::int64_t> longs, globals;
};

Offsets check(const char* op, const LabelTensors& in) {
  check_relative_labels(op, in.examples, in.relative_labels);
  return {checked_offsets(op, "long_offsets", in.long_offsets, in.examples),
          checked_offsets(op, "global_offsets", in.global_offsets, in.examples)};
}

}  // namespace

std::vector<std::int64_t> checked_offsets(const char* op, const char* name, const std::int64_t* offsets,
                                          std::int64_t examples) {
  check_batch_offsets(op, name, offsets, examples);
  return {offsets, offsets + examples + 1};
}

void check_relative_labels(const char* op, std::int64_t examples, std::int64_t relative_labels) {
  if (examples < 0) fail(op, "examples: expected B >= 0, got {}", examples);
  if (relative_labels < 0 || relative_labels > kMasked) {
    fail(op, "relative labels: expected R from 0 to 255, got {} (relative_clip at most {}, or no listed labels)",
         relative_labels, (kMasked - 1) / 2);
  }
}

AttentionTiles tiles_of(const AttentionOperator& op, std::int64_t relative_labels, const TypeLabels& first,
                        const TypeLabels& second) {
  const bool split_keys = op.partition == Partition::keys;
  return {&op, {build_type(first, relative_labels, split_keys), build_type(second, relative_labels, split_keys)}, {}};
}

AttentionTiles build_long_tiles(const LabelTensors& in) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = kLongAttention;
  const Offsets offsets = check(op.name, in);
  if (in.radius < 0) fail(op.name, "radius: expected at least 0, got {}", in.radius);
  return tiles_of(
      op, in.relative_labels,
      {op.types[0], {op.name, "long", "key"}, offsets.longs, offsets.longs, in.l2l, true, in.radius, in.radius},
      {op.types[1], {op.name, "long", "global"}, offsets.longs, offsets.globals, in.l2g, false});
}

AttentionTiles build_global_tiles(const LabelTensors& in) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = kGlobalAttention;
  const Offsets offsets = check(op.name, in);
  return tiles_of(op, in.relative_labels,
                  {op.types[0], {op.name, "global", "key"}, offsets.globals, offsets.globals, in.g2g, false},
                  {op.types[1], {op.name, "global", "long"}, offsets.globals, offsets.longs, in.g2l, false});
}

std::int64_t self_radius(const SequenceLabels& in) {
  if (in.radius != SequenceLabels::kFull) return in.radius;
  std::int64_t longest = 1;
  for (std::int64_t b = 0; b < in.examples; ++b) longest = std::max(longest, in.offsets[b + 1] - in.offsets[b]);
  return longest - 1;
}

AttentionTiles build_self_tiles(const SequenceLabels& in) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = *in.op;
  check_relative_labels(op.name, in.examples, in.relative_labels);
  const std::vector<std::int64_t> offsets = checked_offsets(op.name, "offsets", in.offsets, in.examples);
  if (in.radius < SequenceLabels::kFull) fail(op.name, "radius: expected at least 0, got {}", in.radius);
  const std::vector<std::int64_t> no_keys(offsets.size(), 0);
  const std::int64_t radius = self_radius(in);
  return tiles_of(op, in.relative_labels,
                  {op.types[0], {op.name, "query", "key"}, offsets, offsets, in.labels, true, radius, radius},
                  {op.types[1], {op.name, "query", "key"}, offsets, no_keys, nullptr, false});
}

}  // namespace etc::sparse
