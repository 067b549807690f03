#include "sparse/visible_tiles.h"

#include <algorithm>

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

// Sizes of the lists of several groups, which are known before the lists are copied: each list is a single allocation.
struct ListSizes {
  std::int64_t groups = 0, max_group_runs = 0, max_group_columns = 0;
  GroupSizes sums;

  void add(const GroupSizes& group) { add(1, group, group.runs, group.columns); }
  void add(const TypeTiles& part) {
    add(part.run_offsets.size() - 1, {part.columns, part.runs.size(), part.mixed.size() / kGroup, part.visible_pairs},
        part.max_group_runs, part.max_group_columns);
  }

 private:
  void add(std::int64_t more_groups, const GroupSizes& lists, std::int64_t most_runs, std::int64_t most_columns) {
    groups += more_groups;
    sums.columns += lists.columns;
    sums.runs += lists.runs;
    sums.mixed_columns += lists.mixed_columns;
    sums.visible_pairs += lists.visible_pairs;
    max_group_runs = std::max(max_group_runs, most_runs);
    max_group_columns = std::max(max_group_columns, most_columns);
  }
};

// Sets the sizes of a type and allocates its lists.
void make_room(TypeTiles& tiles, const ListSizes& sizes) {
  tiles.columns = sizes.sums.columns;
  tiles.visible_pairs = sizes.sums.visible_pairs;
  tiles.max_group_runs = sizes.max_group_runs;
  tiles.max_group_columns = sizes.max_group_columns;
  tiles.run_offsets = Buffer<std::int64_t>(sizes.groups + 1, Purpose::labels);
  tiles.runs = Buffer<TileRun>(sizes.sums.runs, Purpose::labels);
  tiles.visible = Buffer<std::uint16_t>(sizes.sums.columns, Purpose::labels);
  tiles.label = Buffer<std::uint32_t>(tiles.relative ? sizes.sums.columns : 0, Purpose::labels);
  tiles.mixed = Buffer<std::uint8_t>(sizes.sums.mixed_columns * kGroup, Purpose::labels);
}

// Appends lists of groups to those of a type that has room for them. In the lists, numbers of columns and of rows of
// `mixed` begin at 0.
class ListAppender {
 public:
  explicit ListAppender(TypeTiles& tiles) : tiles_(tiles) {}

  std::int64_t runs() const { return run_; }  // so far

  template <typename Lists>  // GroupTiles or TypeTiles
  void append(const Lists& lists) {
    for (TileRun run : lists.runs) {
      run.column += column_;
      tiles_.runs[run_++] = run;
    }
    const auto first_mixed = static_cast<std::uint32_t>(mixed_ / kGroup);
    std::transform(lists.label.begin(), lists.label.end(), tiles_.label.data() + (tiles_.relative ? column_ : 0),
                   [&](std::uint32_t label) { return label < kFirstMixed ? label : label + first_mixed; });
    std::copy(lists.visible.begin(), lists.visible.end(), tiles_.visible.data() + column_);
    std::copy(lists.mixed.begin(), lists.mixed.end(), tiles_.mixed.data() + mixed_);
    column_ += static_cast<std::int64_t>(lists.visible.size());
    mixed_ += static_cast<std::int64_t>(lists.mixed.size());
  }

 private:
  TypeTiles& tiles_;
  std::int64_t run_ = 0, column_ = 0, mixed_ = 0;
};

}  // namespace

void concatenate(TypeTiles& tiles, const std::vector<GroupTiles>& groups) {
  ListSizes sizes;
  for (const GroupTiles& group : groups) {
    sizes.add(
        {std::ssize(group.visible), std::ssize(group.runs), std::ssize(group.mixed) / kGroup, group.visible_pairs});
  }
  make_room(tiles, sizes);
  ListAppender appender(tiles);
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    tiles.run_offsets[g] = appender.runs();
    appender.append(groups[static_cast<std::size_t>(g)]);
  }
  tiles.run_offsets[std::ssize(groups)] = appender.runs();
}

namespace {

// Concatenates the lists of consecutive ranges of groups.
void join(TypeTiles& tiles, std::vector<TypeTiles> ranges) {
  ListSizes sizes;
  for (const TypeTiles& range : ranges) sizes.add(range);
  make_room(tiles, sizes);
  ListAppender appender(tiles);
  std::int64_t group = 0;
  for (TypeTiles& range : ranges) {
    const TypeTiles part = std::move(range);  // freed before the next one is copied
    for (std::int64_t g = 0; g + 1 < part.run_offsets.size(); ++g) {
      tiles.run_offsets[group++] = appender.runs() + part.run_offsets[g];
    }
    appender.append(part);
  }
  tiles.run_offsets[group] = appender.runs();
}

// How many groups from `first` on are built at a time. The number is small if groups have many columns, since until the
// groups are joined their lists exist twice in memory, and the ledger does not count the second copy.
std::int64_t range_length(const TypeTiles& tiles, const std::vector<GroupPlace>& places, std::int64_t first) {
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
  ListSizes sizes;
  for (const GroupPlace& place : places) {
    GroupSizes group = sample;
    if (sample.whole) {
      const std::int64_t keys = place.example_keys;
      group.columns = round_up(keys, kRunStep);
      group.runs = split_keys ? ceil_div(keys, kKeySplit) : 1;
      group.visible_pairs = place.queries * keys;
    }
    sizes.add(group);
  }
  make_room(tiles, sizes);
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
  std::vector<TypeTiles> ranges;
  std::int64_t first = 0;
  do {
    std::vector<GroupTiles> groups(static_cast<std::size_t>(range_length(tiles, places, first)));
    parallel_for(std::ssize(groups), [&](std::int64_t g) {
      const GroupPlace& place = places[static_cast<std::size_t>(first + g)];
      const std::int64_t base = label_bases[static_cast<std::size_t>(place.example)];
      groups[static_cast<std::size_t>(g)] =
          build_group(gather_labels(tiles, place, own, base, relative_labels), tiles.relative, split_keys);
    });
    first += std::ssize(groups);
    TypeTiles& range = ranges.emplace_back();
    range.relative = tiles.relative;
    concatenate(first == std::ssize(places) && ranges.size() == 1 ? tiles : range, groups);
  } while (first < std::ssize(places));
  if (ranges.size() > 1) join(tiles, std::move(ranges));
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
