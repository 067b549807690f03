#include "sparse/labels/labels.h"

#include <algorithm>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"

namespace etc::sparse {

namespace {

constexpr std::int64_t kRowsPerTask = 64;

// One attention type of a padded batch: [B, queries, keys].
struct TypeArrays {
  const char* name;        // "l2l"
  const char* query_name;  // "long" | "global"
  const char* key_name;    // "long", "global" or "window column"
  std::int64_t queries, keys;
  const std::int32_t* mask;
  const std::int32_t* ids;
  std::int64_t radius;  // l2l: column w is the key at query + w - radius; -1: every column is a key
};

[[noreturn]] void fail_at(const TypeArrays& type, std::int64_t row, std::int64_t key, std::int64_t relative_labels) {
  const std::int64_t at = row * type.keys + key;
  const std::string where = fmt::format("labels: {}: example {}, {} {}, {} {}", type.name, row / type.queries,
                                        type.query_name, row % type.queries, type.key_name, key);
  if (type.mask != nullptr && (type.mask[at] & ~1) != 0)
    fail(where, "expected a mask of 0 or 1, got {}", type.mask[at]);
  fail(where, "expected a relative id in [0, R={}), got {}", relative_labels, type.ids[at]);
}

// Writes one row of labels. Returns the first key whose mask or id is invalid, or -1.
std::int64_t convert_row(const TypeArrays& type, std::int64_t row, std::int64_t relative_labels, std::uint8_t* out) {
  const std::int64_t query = row % type.queries;
  const bool window = type.radius >= 0;
  const std::int64_t first = window ? std::max<std::int64_t>(0, type.radius - query) : 0;
  const std::int64_t last = window ? std::min(type.keys, type.radius + type.queries - query) : type.keys;
  std::fill(out, out + first, kMasked);
  std::fill(out + last, out + type.keys, kMasked);
  const std::int32_t* mask = type.mask != nullptr ? type.mask + row * type.keys : nullptr;
  const std::int32_t* ids = type.ids != nullptr ? type.ids + row * type.keys : nullptr;
  for (std::int64_t key = first; key < last; ++key) {
    const std::int32_t visible = mask != nullptr ? mask[key] : 1;
    const std::int32_t id = ids != nullptr ? ids[key] : 0;
    if ((visible & ~1) != 0) return key;
    if (visible == 1 && ids != nullptr && (id < 0 || id >= relative_labels)) return key;
    out[key] = visible == 1 ? static_cast<std::uint8_t>(id) : kMasked;
  }
  return -1;
}

Buffer<std::uint8_t> convert(const TypeArrays& type, std::int64_t batch, std::int64_t relative_labels) {
  if (type.mask == nullptr && type.ids == nullptr) return {};
  const std::int64_t rows = batch * type.queries;
  Buffer<std::uint8_t> labels(rows * type.keys, Purpose::labels);  // [B*queries, keys]
  const std::int64_t tasks = ceil_div(rows, kRowsPerTask);
  // Each task records its first bad pair, so that the message names the first one of all, independent of thread timing.
  std::vector<std::pair<std::int64_t, std::int64_t>> bad(static_cast<std::size_t>(tasks), {-1, -1});
  parallel_for(tasks, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::int64_t row = task * kRowsPerTask; row < end; ++row) {
      const std::int64_t key = convert_row(type, row, relative_labels, labels.data() + row * type.keys);
      if (key < 0) continue;
      bad[static_cast<std::size_t>(task)] = {row, key};
      return;
    }
  });
  for (const auto& [row, key] : bad) {
    if (row >= 0) fail_at(type, row, key, relative_labels);
  }
  return labels;
}

void check_side(const char* a, const std::int32_t* a_ids, const char* b, const std::int32_t* b_ids) {
  if ((a_ids == nullptr) == (b_ids == nullptr)) return;
  fail("labels", "{} and {} share one softmax: expected relative ids for both or for neither, got only {}", a, b,
       a_ids != nullptr ? a : b);
}

}  // namespace

AttentionLabels labels_from_masks_and_ids(const MasksAndIds& arrays, std::int64_t relative_labels) {
  if (arrays.batch < 0 || arrays.length < 0 || arrays.globals < 0 || arrays.radius < 1) {
    fail("labels", "expected sizes of at least 0 and a radius of at least 1, got {}, radius {}",
         shape_text({{"B", arrays.batch}, {"L", arrays.length}, {"G", arrays.globals}}), arrays.radius);
  }
  if (relative_labels < 0 || relative_labels > kMaxRelativeLabels) {
    fail("labels", "relative_vocab_size: expected 0 … {} (labels are one byte), got {}", kMaxRelativeLabels,
         relative_labels);
  }
  check_side("l2l", arrays.l2l_ids, "l2g", arrays.l2g_ids);
  check_side("g2g", arrays.g2g_ids, "g2l", arrays.g2l_ids);
  if (relative_labels == 0 && (arrays.l2l_ids != nullptr || arrays.g2g_ids != nullptr)) {
    fail("labels", "relative ids are given, but the model has no relative vectors (relative_vocab_size is null)");
  }

  const std::int64_t L = arrays.length, G = arrays.globals, W = 2 * arrays.radius + 1;
  AttentionLabels labels;
  labels.l2l = convert({"l2l", "long", "window column", L, W, arrays.l2l_mask, arrays.l2l_ids, arrays.radius},
                       arrays.batch, relative_labels);
  labels.l2g =
      convert({"l2g", "long", "global", L, G, arrays.l2g_mask, arrays.l2g_ids, -1}, arrays.batch, relative_labels);
  labels.g2g =
      convert({"g2g", "global", "global", G, G, arrays.g2g_mask, arrays.g2g_ids, -1}, arrays.batch, relative_labels);
  labels.g2l =
      convert({"g2l", "global", "long", G, L, arrays.g2l_mask, arrays.g2l_ids, -1}, arrays.batch, relative_labels);
  labels.long_relative = arrays.l2l_ids != nullptr;
  labels.global_relative = arrays.g2g_ids != nullptr;
  return labels;
}

}  // namespace etc::sparse
