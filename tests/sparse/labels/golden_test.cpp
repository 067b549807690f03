// The labels that the library builds must hold exactly the ids and masks of the reference.
#include <algorithm>
#include <functional>

#include "etc_core/base/json.h"
#include "sparse/labels/builders.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/labels/relative_ids.h"
#include "tests/sparse/labels/side_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

using namespace etc::sparse;
using etc::test::GoldenFile;
using Ids = std::vector<std::int32_t>;

namespace {

// Calls check(file, group) for every group of every file of a kind. Without files reports "skipped" and returns false.
void for_each_group(const std::string& kind,
                    const std::function<void(const GoldenFile& file, const std::string& group)>& check) {
  const auto paths = etc::test::golden_files_of_kind(kind);
  if (paths.empty()) etc::test::skip("no golden file of kind " + kind);
  for (const auto& path : paths) {
    const GoldenFile file(path);
    const std::vector<std::string> groups = file.groups();
    CHECK(!groups.empty());
    for (const std::string& group : groups) {
      CAPTURE(path, group);
      check(file, group);
      file.require_all_read(group);
    }
  }
}

using Array = etc::test::GoldenArray<std::int32_t>;

// Row b of an array [B, …].
Ids row(const Array& array, std::int64_t b) {
  REQUIRE(b < array.shape.at(0));
  const auto size = static_cast<std::int64_t>(array.values.size()) / array.shape.at(0);
  return {array.values.begin() + b * size, array.values.begin() + (b + 1) * size};
}

// An array [batch, …].
Array of_batch(const GoldenFile& file, const std::string& path, std::int64_t batch) {
  const Array array = file.read<std::int32_t>(path);
  CAPTURE(path);
  REQUIRE(array.shape.at(0) == batch);
  return array;
}

bool flag(const GoldenFile& file, const std::string& group, const std::string& name) {
  const std::int64_t stored = file.int_attribute(group, name);
  CAPTURE(name);
  REQUIRE((stored == 0 || stored == 1));
  return stored == 1;
}

// Labels of n tokens that all see each other: their windows if there is a radius, else all pairs.
std::vector<std::uint8_t> labels_of_distances(std::int64_t n, std::int64_t radius, const LabelOptions& options) {
  const auto count = static_cast<std::size_t>(n), tokens = radius > 0 ? count : 0, globals = radius > 0 ? 0 : count;
  const AttentionStructure example = structure_from_example_ids(Ids(tokens, 0), Ids(globals, 0), Ids(tokens, -1));
  const AttentionLabels labels = build_labels({&example, 1}, options);
  const auto& of = radius > 0 ? labels.l2l : labels.g2g;
  return {of.begin(), of.end()};
}

DistanceMap distance_map(const GoldenFile& file, const std::string& group) {
  const std::int64_t k = file.int_attribute(group, "max_distance");
  return flag(file, group, "ignore_direction") ? undirected_distances(k) : etc_distances(k);
}

// The ids of a group without segments: those of the labels, or where these have none, the rows of a map.
Ids distance_ids(const GoldenFile& file, const std::string& group, std::int64_t n) {
  const std::int64_t k = file.int_attribute(group, "max_distance");
  const std::int64_t radius = file.has_attribute(group, "local_radius") ? file.int_attribute(group, "local_radius") : 0;
  const LabelOptions options{std::max<std::int64_t>(radius, 1), k};
  constexpr std::int64_t kMost = 125;  // larger ones do not fit the labels
  if (!flag(file, group, "ignore_direction") && k <= kMost) {
    const std::vector<std::uint8_t> labels = labels_of_distances(n, radius, options);
    return radius > 0 ? etc::test::window_ids(labels, options) : Ids(labels.begin(), labels.end());
  }
  const DistanceMap map = distance_map(file, group);
  Ids ids;
  for (std::int64_t query = 0; query < n; ++query) {
    const std::int64_t first = radius > 0 ? -radius : -query, count = radius > 0 ? 2 * radius + 1 : n;
    for (std::int64_t distance = first; distance < first + count; ++distance) {
      ids.push_back(static_cast<std::int32_t>(map.rows.at(static_cast<std::size_t>(std::clamp(distance, -k, k) + k))));
    }
  }
  return ids;
}

// The ids of global tokens in paragraphs, where the library has one id for another paragraph.
Ids paragraph_ids(const Ids& paragraphs, std::int64_t k) {
  AttentionStructure example = structure_from_example_ids({}, Ids(paragraphs.size(), 0), {});
  example.global_paragraphs = paragraphs;
  const AttentionLabels labels = build_labels({&example, 1}, {1, k});
  return {labels.g2g.begin(), labels.g2g.end()};
}

// The library takes breakpoints at the last token of each segment.
Ids ending_breakpoints(const GoldenFile& file, const std::string& group, Ids breakpoints) {
  if (flag(file, group, "use_starting_breakpoints")) {
    std::rotate(breakpoints.begin(), breakpoints.begin() + 1, breakpoints.end());
    breakpoints.back() = 0;
  }
  return breakpoints;
}

Ids mask_of(const GoldenFile& file, const std::string& group, const Ids& input) {
  const std::string op = file.string_attribute(group, "op");
  const bool local = op == "local_segmented" || op == "local_breakpoints";
  const bool breakpoints = op == "breakpoints" || op == "local_breakpoints";
  if (!local && !breakpoints && op != "segmented" && op != "input_mask") FAIL("unknown op " << op);
  const Ids segments = breakpoints ? example_ids_from_breakpoints(ending_breakpoints(file, group, input)) : input;
  const AttentionStructure example = structure_from_example_ids(segments, segments, Ids(segments.size(), -1));
  const etc::test::SideInputs inputs =
      etc::test::side_inputs(example, {local ? file.int_attribute(group, "local_radius") : 1, 0});
  return local ? inputs.l2l_mask : inputs.g2g_mask;
}

// A builder and its inputs: arrays in `folder`, flags as attributes of `flags`.
struct Builder {
  const GoldenFile& file;
  std::string kind, folder, flags;
  std::int64_t batch;  // examples

  Ids array(const std::string& name, std::int64_t b) const {
    const std::string path = folder + "/" + name;
    return file.has(path) ? row(of_batch(file, path, batch), b) : Ids{};
  }

  // global_token_ids: filled by the fixed-block builder.
  AttentionStructure structure(std::int64_t b, Ids& global_token_ids) const {
    if (kind == "generic_breakpoints") {
      return etc::test::structure_from_breakpoints(array("long_breakpoints", b), array("global_breakpoints", b),
                                                   array("sentence_ids", b));
    }
    if (kind == "generic_example_ids") {
      return structure_from_example_ids(array("long_example_ids", b), array("global_example_ids", b),
                                        array("sentence_ids", b));
    }
    if (kind == "fixed_block") {
      FixedBlocks blocks =
          fixed_block_structure(array("input_mask", b), file.int_attribute(flags, "num_tokens_per_block"),
                                static_cast<std::int32_t>(file.int_attribute(flags, "global_token_id")));
      global_token_ids = blocks.global_token_ids;
      return blocks.structure;
    }
    if (kind != "multihop") FAIL("unknown builder " << kind);
    const Ids long_breakpoints = array("long_paragraph_breakpoints", b), paragraphs = array("long_paragraph_ids", b);
    const Ids sentences = array("long_sentence_ids", b), globals = array("global_paragraph_breakpoints", b);
    const Ids g2l = array("ignore_hard_g2l_mask", b), l2g = array("ignore_hard_l2g_mask", b);
    const Ids linked = array("l2g_linked_ids", b);
    return multihop_structure(
        {long_breakpoints, paragraphs, sentences, globals, g2l, l2g, linked, flag(file, flags, "flat_sequence")});
  }
};

std::int64_t examples_of(const GoldenFile& file, const std::string& masks) {
  return file.read<std::int32_t>(masks + "/l2l_att_mask").shape.at(0);
}

// Compares masks and ids of all examples with `expected` (a folder), then labels built in both ways with each other.
void check_builder(const Builder& builder, const LabelOptions& options, const std::string& expected) {
  const GoldenFile& file = builder.file;
  const std::int64_t batch = builder.batch;
  const bool relative = options.relative_pos_max_distance > 0;
  std::vector<AttentionStructure> examples;
  for (std::int64_t b = 0; b < batch; ++b) {
    CAPTURE(b);
    Ids global_token_ids;
    examples.push_back(builder.structure(b, global_token_ids));
    const etc::test::SideInputs got = etc::test::side_inputs(examples.back(), options);
    const auto same = [&](const std::string& name, const Ids& values) {
      CAPTURE(name);
      const std::string path = expected + "/" + name;
      REQUIRE(file.has(path) == !values.empty());
      if (!values.empty()) REQUIRE(row(of_batch(file, path, batch), b) == values);
    };
    same("l2l_att_mask", got.l2l_mask);
    same("l2g_att_mask", got.l2g_mask);
    same("g2g_att_mask", got.g2g_mask);
    same("g2l_att_mask", got.g2l_mask);
    same("l2l_relative_att_ids", got.l2l_ids);
    same("l2g_relative_att_ids", got.l2g_ids);
    same("g2g_relative_att_ids", got.g2g_ids);
    same("g2l_relative_att_ids", got.g2l_ids);
    const std::string tokens = expected + "/global_token_ids";
    if (!global_token_ids.empty() && file.has(tokens))
      REQUIRE(row(of_batch(file, tokens, batch), b) == global_token_ids);
  }

  // The explicit arrays, passed as B examples of exactly L and G tokens, must give the same labels as the builders.
  const auto array = [&](const std::string& name) {
    return file.has(expected + "/" + name) ? file.read<std::int32_t>(expected + "/" + name).values : Ids{};
  };
  const Ids masks[]{array("l2l_att_mask"), array("l2g_att_mask"), array("g2g_att_mask"), array("g2l_att_mask")};
  const Ids ids[]{array("l2l_relative_att_ids"), array("l2g_relative_att_ids"), array("g2g_relative_att_ids"),
                  array("g2l_relative_att_ids")};
  const auto pointer = [](const Ids& values) { return values.empty() ? nullptr : values.data(); };
  const AttentionLabels given = labels_from_masks_and_ids(
      {batch, examples[0].length(), examples[0].globals(), options.local_radius, masks[0].data(), masks[1].data(),
       masks[2].data(), masks[3].data(), pointer(ids[0]), pointer(ids[1]), pointer(ids[2]), pointer(ids[3])},
      2 * options.relative_pos_max_distance + 4);
  const AttentionLabels built = build_labels(examples, options);
  const auto equal = [](const etc::Buffer<std::uint8_t>& a, const etc::Buffer<std::uint8_t>& b) {
    REQUIRE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  };
  equal(given.l2l, built.l2l);
  equal(given.l2g, built.l2g);
  equal(given.g2g, built.g2g);
  equal(given.g2l, built.g2l);
  REQUIRE(given.long_relative == relative);
  REQUIRE(built.global_relative == relative);
}

}  // namespace

TEST_CASE("relative ids equal the reference's", "[labels][golden]") {
  for_each_group("relative_ids", [](const GoldenFile& file, const std::string& group) {
    const std::int64_t k = file.int_attribute(group, "max_distance");
    const Array ids = file.read<std::int32_t>(group + "/ids");
    REQUIRE(ids.shape.size() == 3);
    const std::int64_t batch = ids.shape[0], n = ids.shape[1];
    if (file.has(group + "/segment_ids")) {
      const auto value = static_cast<std::int32_t>(file.int_attribute(group, "overwrite_value"));
      for (std::int64_t b = 0; b < batch; ++b) {
        REQUIRE(paragraph_ids(Ids(static_cast<std::size_t>(n), 0), k) ==
                row(of_batch(file, group + "/rel_att_ids", batch), b));
        const Ids segments = row(of_batch(file, group + "/segment_ids", batch), b), expected = row(ids, b);
        const Ids got = paragraph_ids(segments, k);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const bool other = segments[i / segments.size()] != segments[i % segments.size()];
          REQUIRE((got[i] == other_paragraph_id(k)) == other);
          REQUIRE(expected.at(i) == (other ? value : got[i]));
        }
      }
      return;
    }
    CHECK(file.int_attribute(group, "batch_size") == batch);
    CHECK(file.int_attribute(group, "seq_len") == n);
    const Ids got = distance_ids(file, group, n);
    for (std::int64_t b = 0; b < batch; ++b) REQUIRE(got == row(ids, b));
    if (file.has_attribute(group, "local_radius")) return;
    const DistanceMap map = distance_map(file, group);
    REQUIRE(1 + *std::max_element(map.rows.begin(), map.rows.end()) ==
            file.int_attribute(group, "relative_vocab_size"));
    REQUIRE(map.rows.back() == file.int_attribute(group, "right_pad_value"));
    REQUIRE(map.rows.front() == file.int_attribute(group, "left_pad_value"));
  });
}

TEST_CASE("masks equal the reference's", "[labels][golden]") {
  for_each_group("masks", [](const GoldenFile& file, const std::string& group) {
    const Array input = file.read<std::int32_t>(group + "/input");
    const Array mask = of_batch(file, group + "/mask", input.shape.at(0));
    for (std::int64_t b = 0; b < input.shape[0]; ++b) {
      REQUIRE(mask_of(file, group, row(input, b)) == row(mask, b));
    }
  });
}

TEST_CASE("the builders' masks and ids equal the reference's", "[labels][golden]") {
  for_each_group("side_inputs", [](const GoldenFile& file, const std::string& group) {
    const LabelOptions options{file.int_attribute(group, "local_radius"),
                               file.int_attribute(group, "relative_pos_max_distance"),
                               flag(file, group, "use_hard_g2l_mask"), flag(file, group, "use_hard_l2g_mask")};
    check_builder({file, file.string_attribute(group, "kind"), group + "/builder", group, examples_of(file, group)},
                  options, group);
  });
}

TEST_CASE("the builders give the masks and ids that the reference's models were run with", "[labels][golden]") {
  const auto paths = etc::test::golden_files_of_kind("etc");
  if (paths.empty()) return etc::test::skip("no golden file of kind etc");
  for (const auto& path : paths) {
    const GoldenFile file(path);
    if (!file.has("builder") || !file.has("inputs/l2l_att_mask")) continue;
    CAPTURE(path);
    const etc::Json config = etc::parse_json(file.string_attribute("", "config_json"), path.string());
    const LabelOptions options{config.at("local_radius").get<std::int64_t>(),
                               config.at("relative_pos_max_distance").get<std::int64_t>(),
                               config.at("use_hard_g2l_mask").get<bool>(), config.at("use_hard_l2g_mask").get<bool>()};
    check_builder({file, file.string_attribute("builder", "kind"), "builder", "builder", examples_of(file, "inputs")},
                  options, "inputs");
    file.require_all_read("builder");
  }
}
