#include "sparse/labels/builders.h"

#include <cstring>

#include "etc_core/base/parallel.h"
#include "tests/sparse/labels/structures.h"
#include "tests/support/catch.h"

using namespace etc::sparse;
using etc::test::Ids;
using etc::test::side_inputs;
using etc::test::SideInputs;
using etc::test::structure_from_breakpoints;
using Labels = std::vector<std::uint8_t>;

namespace {

void require_equal(const SideInputs& got, const SideInputs& expected) {
  REQUIRE(got.l2l_mask == expected.l2l_mask);
  REQUIRE(got.l2g_mask == expected.l2g_mask);
  REQUIRE(got.g2g_mask == expected.g2g_mask);
  REQUIRE(got.g2l_mask == expected.g2l_mask);
  REQUIRE(got.l2l_ids == expected.l2l_ids);
  REQUIRE(got.l2g_ids == expected.l2g_ids);
  REQUIRE(got.g2g_ids == expected.g2g_ids);
  REQUIRE(got.g2l_ids == expected.g2l_ids);
}

Labels values(const etc::Buffer<std::uint8_t>& buffer) {
  return {buffer.begin(), buffer.end()};
}

// Label = id where the mask is 1.
Labels folded(const Ids& mask, const Ids& ids) {
  Labels labels;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    labels.push_back(mask[i] == 0 ? kMasked : ids.empty() ? 0 : static_cast<std::uint8_t>(ids[i]));
  }
  return labels;
}

Ids transposed(const Ids& matrix, std::size_t rows) {
  Ids out;
  const std::size_t columns = matrix.size() / rows;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < rows; ++row) out.push_back(matrix[row * columns + column]);
  }
  return out;
}

Ids row(const Ids& matrix, std::size_t columns, std::size_t number) {
  const auto begin = matrix.begin() + static_cast<std::ptrdiff_t>(number * columns);
  return {begin, begin + static_cast<std::ptrdiff_t>(columns)};
}

// All four combinations of hard flags at k = 2 and k = 0.
std::vector<LabelOptions> all_options(std::int64_t radius) {
  std::vector<LabelOptions> all;
  for (std::int64_t k : {2, 0}) {
    for (bool g2l : {false, true}) {
      for (bool l2g : {false, true}) all.push_back({radius, k, g2l, l2g});
    }
  }
  return all;
}

// Tokens that all see each other.
AttentionStructure one_segment(std::size_t long_tokens, std::size_t global_tokens) {
  return structure_from_example_ids(Ids(long_tokens, 0), Ids(global_tokens, 0), Ids(long_tokens, -1));
}

const Ids kLongBreakpoints{0, 0, 1, 0, 0, 1, 0}, kGlobalBreakpoints{0, 1, 1, 0}, kSentences{0, 0, 1, 2, 2, 2, 0};

}  // namespace

TEST_CASE("ids of distances are those of etc-core 4.3, in windows also beyond the ends", "[labels]") {
  REQUIRE(side_inputs(one_segment(0, 6), {1, 3}).g2g_ids == Ids{0, 1, 2, 3, 3, 3,  //
                                                                4, 0, 1, 2, 3, 3,  //
                                                                5, 4, 0, 1, 2, 3,  //
                                                                6, 5, 4, 0, 1, 2,  //
                                                                6, 6, 5, 4, 0, 1,  //
                                                                6, 6, 6, 5, 4, 0});
  REQUIRE(side_inputs(one_segment(0, 5), {1, 9}).g2g_ids == Ids{0,  1,  2,  3,  4,  //
                                                                10, 0,  1,  2,  3,  //
                                                                11, 10, 0,  1,  2,  //
                                                                12, 11, 10, 0,  1,  //
                                                                13, 12, 11, 10, 0});
  const Ids ids = side_inputs(one_segment(3, 0), {5, 3}).l2l_ids;
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(row(ids, 11, i) == Ids{6, 6, 6, 5, 4, 0, 1, 2, 3, 3, 3});
  REQUIRE(side_inputs(one_segment(1, 0), {4, 9}).l2l_ids == Ids{13, 12, 11, 10, 0, 1, 2, 3, 4});
  REQUIRE(side_inputs(one_segment(1, 0), {4, 4}).l2l_ids == Ids{8, 7, 6, 5, 0, 1, 2, 3, 4});
}

TEST_CASE("masks compare segments, which need not be contiguous; windows are those of etc-core 4.4", "[labels]") {
  AttentionStructure example = one_segment(8, 3);
  example.long_segments = {4, 3, 3, 3, 4, 1, 1, 1};
  example.global_segments = {4, 7, 4};
  const SideInputs inputs = side_inputs(example, {2, 0});
  REQUIRE(inputs.g2g_mask == Ids{1, 0, 1, 0, 1, 0, 1, 0, 1});
  REQUIRE(inputs.l2l_mask == Ids{0, 0, 1, 0, 0,  //
                                 0, 0, 1, 1, 1,  //
                                 0, 1, 1, 1, 0,  //
                                 1, 1, 1, 0, 0,  //
                                 0, 0, 1, 0, 0,  //
                                 0, 0, 1, 1, 1,  //
                                 0, 1, 1, 1, 0,  //
                                 1, 1, 1, 0, 0});
  REQUIRE(side_inputs(one_segment(2, 0), {3, 0}).l2l_mask == Ids{0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
}

TEST_CASE("example ids count breakpoints from the end and padding is 0", "[labels]") {
  REQUIRE(example_ids_from_breakpoints(Ids{0, 1, 0, 0, 1, 0, 0, 0, 1, 0}) == Ids{3, 3, 2, 2, 2, 1, 1, 1, 1, 0});
  REQUIRE(example_ids_from_breakpoints(Ids{}).empty());
}

TEST_CASE("the generic builder gives the worked example of etc-core 8.1", "[labels]") {
  const AttentionStructure example = structure_from_breakpoints(kLongBreakpoints, kGlobalBreakpoints, kSentences);
  const SideInputs soft = side_inputs(example, {2, 1, false, false});
  REQUIRE(soft.l2l_mask == Ids{0, 0, 1, 1, 1,  //
                               0, 1, 1, 1, 0,  //
                               1, 1, 1, 0, 0,  //
                               0, 0, 1, 1, 1,  //
                               0, 1, 1, 1, 0,  //
                               1, 1, 1, 0, 0,  //
                               0, 0, 1, 0, 0});
  REQUIRE(row(soft.l2l_ids, 5, 0) == Ids{2, 2, 0, 1, 1});
  REQUIRE(soft.g2g_mask == Ids{1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  REQUIRE(soft.g2g_ids == Ids{0, 1, 1, 1, 2, 0, 1, 1, 2, 2, 0, 1, 2, 2, 2, 0});
  REQUIRE(soft.l2g_mask == Ids{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  REQUIRE(soft.l2g_ids == Ids{4, 3, 3, 3, 4, 3, 3, 3, 3, 4, 3, 3, 3, 3, 4, 3, 3, 3, 4, 3, 3, 3, 4, 3, 4, 3, 3, 3});
  REQUIRE(soft.g2l_mask == Ids{1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1});
  REQUIRE(soft.g2l_ids == Ids{4, 4, 3, 3, 3, 3, 4, 3, 3, 4, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3});
  const SideInputs hard = side_inputs(example, {2, 1, true, true});
  REQUIRE(hard.g2l_mask == Ids{1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  REQUIRE(hard.l2g_mask == Ids{1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("fixed blocks give the worked example of etc-core 8.2", "[labels]") {
  const FixedBlocks blocks = fixed_block_structure(Ids{1, 1, 1, 1, 0, 0, 0}, 3, 9);
  REQUIRE(blocks.structure.global_segments == Ids{1, 1, 0});
  REQUIRE(blocks.structure.sentence_ids == Ids{0, 0, 0, 1, 1, 1, 2});
  REQUIRE(blocks.global_token_ids == Ids{9, 9, 0});
  const SideInputs inputs = side_inputs(blocks.structure, {2, 1, false, false});
  REQUIRE(inputs.l2g_mask == Ids{1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1});
}

TEST_CASE("fixed blocks equal the generic builder on what they derive", "[labels]") {
  const Ids mask{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
  const Ids sentences{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}, globals{1, 1, 0};
  for (const LabelOptions& options : all_options(3)) {
    require_equal(side_inputs(fixed_block_structure(mask, 4).structure, options),
                  side_inputs(structure_from_example_ids(mask, globals, sentences), options));
  }
}

TEST_CASE("the multihop builder gives the worked example of etc-core 8.3", "[labels]") {
  const Ids breakpoints{1, 1, 0, 0, 1, 0};
  const Ids sentences{-1, 1, 3, 3, 4, -1}, paragraphs{-1, -1, 2, 2, 2, -1}, linked{-1, -1, -1, 1, -1, -1};
  const Ids ignore_g2l{1, 0, 0, 0, 0, 0}, ignore_l2g{0, 1, 0, 0, 0, 0};
  const AttentionStructure example =
      multihop_structure({breakpoints, paragraphs, sentences, breakpoints, ignore_g2l, ignore_l2g, linked});
  const SideInputs hard = side_inputs(example, {2, 2, true, true});
  const SideInputs soft = side_inputs(example, {2, 2, false, false});
  REQUIRE(hard.l2l_mask == Ids{0, 0, 1, 0, 0,  //
                               0, 0, 1, 0, 0,  //
                               0, 0, 1, 1, 1,  //
                               0, 1, 1, 1, 0,  //
                               1, 1, 1, 0, 0,  //
                               0, 0, 1, 0, 0});
  REQUIRE(row(hard.l2l_ids, 5, 3) == Ids{4, 3, 0, 1, 2});
  const Ids full{1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0,
                 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1};
  REQUIRE(soft.l2g_mask == full);
  REQUIRE(soft.g2l_mask == full);
  REQUIRE(hard.l2g_ids == Ids{5, 5, 5, 5, 5, 5, 5, 6, 5, 5, 5, 5, 5, 5, 6, 6, 5, 5,
                              5, 6, 6, 6, 5, 5, 5, 5, 6, 5, 6, 5, 5, 5, 5, 5, 5, 5});
  REQUIRE(hard.g2l_mask == Ids{1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0,
                               0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  REQUIRE(hard.l2g_mask == Ids{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0,
                               0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  REQUIRE(hard.g2g_ids == Ids{0, 7, 7, 7, 7, 7, 7, 0, 7, 7, 7, 7, 7, 7, 0, 1, 2, 7,
                              7, 7, 3, 0, 1, 7, 7, 7, 4, 3, 0, 7, 7, 7, 7, 7, 7, 0});
}

TEST_CASE("the multihop builder gives the reference's own test case", "[labels]") {
  Ids long_breakpoints(15, 0), global_breakpoints(14, 0), linked(15, -1), ignore_g2l(14, 0), ignore_l2g(15, 0);
  for (std::size_t at : {3, 7, 11}) long_breakpoints[at] = 1;
  for (std::size_t at : {0, 4, 8, 12}) global_breakpoints[at] = 1;
  const Ids paragraphs{-1, -1, -1, -1, 5, 5, 5, 5, 9, 9, 9, 9, -1, -1, -1};
  const Ids sentences{1, 2, 3, 4, 6, 6, 7, 8, 10, 10, 11, 12, -1, -1, -1};
  linked[0] = linked[4] = linked[5] = 1;
  linked[6] = 2;
  ignore_g2l[0] = ignore_g2l[2] = ignore_l2g[0] = 1;
  const SideInputs hard = side_inputs(
      multihop_structure({long_breakpoints, paragraphs, sentences, global_breakpoints, ignore_g2l, ignore_l2g, linked}),
      {4, 2, true, true});
  REQUIRE(row(hard.l2g_mask, 14, 0) == Ids{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0});
  REQUIRE(row(hard.l2g_mask, 14, 6) == Ids{0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0});
  for (std::size_t i : {12, 13, 14}) REQUIRE(row(hard.l2g_mask, 14, i) == Ids(14, 0));
  REQUIRE(row(hard.g2l_mask, 15, 0) == Ids{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0});
  REQUIRE(row(hard.g2l_mask, 15, 5) == Ids{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0});
  REQUIRE(row(hard.g2l_mask, 15, 13) == Ids(15, 0));
  REQUIRE(row(hard.g2g_ids, 14, 1) == Ids{7, 0, 1, 2, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7});
  const Ids linked_row = row(hard.l2g_ids, 14, 4);
  REQUIRE(Ids(linked_row.begin(), linked_row.begin() + 8) == Ids{5, 6, 5, 5, 5, 6, 6, 5});
}

TEST_CASE("labels and side inputs equal the formulas pair by pair", "[labels]") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const etc::test::MultihopCase multihop = etc::test::random_multihop(random, trial % 3, trial % 4);
    const std::int64_t radius = 1 + trial % 9;  // often wider than the example
    Ids sides(multihop.sentence_ids.size(), 2);
    for (std::size_t i = sides.size() / 2; i < sides.size(); ++i) sides[i] = 5;
    Ids global_sides(multihop.global_breakpoints.size(), 2);
    global_sides.back() = 5;
    for (const LabelOptions& options : all_options(radius)) {
      const AttentionStructure paragraphs = multihop_structure(multihop.view());
      const SideInputs expected = etc::test::naive_multihop(multihop, options);
      require_equal(side_inputs(paragraphs, options), expected);
      const AttentionLabels labels = build_labels({&paragraphs, 1}, options);
      REQUIRE(values(labels.l2l) == folded(expected.l2l_mask, expected.l2l_ids));
      REQUIRE(values(labels.l2g) == folded(expected.l2g_mask, expected.l2g_ids));
      REQUIRE(values(labels.g2g) == folded(expected.g2g_mask, expected.g2g_ids));
      REQUIRE(values(labels.g2l) == folded(expected.g2l_mask, expected.g2l_ids));
      REQUIRE(labels.long_relative == (options.relative_pos_max_distance > 0));
      REQUIRE(labels.global_relative == labels.long_relative);
      require_equal(side_inputs(structure_from_example_ids(sides, global_sides, multihop.sentence_ids), options),
                    etc::test::naive_generic(sides, global_sides, multihop.sentence_ids, options));
    }
  }
}

TEST_CASE("breakpoints and example ids of the same packing give the same labels", "[labels]") {
  // These ids differ from those of the breakpoints; only equality of ids matters.
  const Ids long_ids{7, 7, 7, 3, 3, 3, 9}, global_ids{7, 7, 3, 9};
  for (const LabelOptions& options : all_options(2)) {
    require_equal(side_inputs(structure_from_breakpoints(kLongBreakpoints, kGlobalBreakpoints, kSentences), options),
                  side_inputs(structure_from_example_ids(long_ids, global_ids, kSentences), options));
  }
}

TEST_CASE("g2l ids are the transpose of l2g ids, and so are the masks without hard flags", "[labels]") {
  std::mt19937 random(3);
  const etc::test::MultihopCase multihop = etc::test::random_multihop(random, 2, 1);
  const AttentionStructure example = multihop_structure(multihop.view());
  const auto L = static_cast<std::size_t>(example.length());
  for (const LabelOptions& options : all_options(4)) {
    const SideInputs inputs = side_inputs(example, options);
    if (!inputs.l2g_ids.empty()) REQUIRE(inputs.g2l_ids == transposed(inputs.l2g_ids, L));
    if (!options.use_hard_g2l_mask && !options.use_hard_l2g_mask) {
      REQUIRE(inputs.g2l_mask == transposed(inputs.l2g_mask, L));
    }
  }
}

TEST_CASE("every token sees at least itself", "[labels]") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 10; ++trial) {
    const AttentionStructure example = multihop_structure(etc::test::random_multihop(random, trial, trial / 2).view());
    const AttentionLabels labels = build_labels({&example, 1}, {3, 2, true, true});
    const std::int64_t L = example.length(), G = example.globals();
    for (std::int64_t i = 0; i < L; ++i) REQUIRE(labels.l2l[i * 7 + 3] == 0);
    for (std::int64_t g = 0; g < G; ++g) REQUIRE(labels.g2g[g * G + g] == 0);
  }
}

TEST_CASE("links change no mask and ignore masks change no id", "[labels]") {
  std::mt19937 random(5);
  etc::test::MultihopCase multihop = etc::test::random_multihop(random, 2, 2);
  for (const LabelOptions& options : all_options(3)) {
    const SideInputs all = side_inputs(multihop_structure(multihop.view()), options);
    etc::test::MultihopCase without_links = multihop, without_ignore = multihop;
    without_links.linked.clear();
    without_ignore.ignore_g2l.clear();
    without_ignore.ignore_l2g.clear();
    const SideInputs unlinked = side_inputs(multihop_structure(without_links.view()), options);
    const SideInputs strict = side_inputs(multihop_structure(without_ignore.view()), options);
    REQUIRE(unlinked.l2g_mask == all.l2g_mask);
    REQUIRE(unlinked.g2l_mask == all.g2l_mask);
    REQUIRE(strict.l2g_ids == all.l2g_ids);
    REQUIRE(strict.g2l_ids == all.g2l_ids);
    if (options.relative_pos_max_distance > 0) REQUIRE(unlinked.l2g_ids != all.l2g_ids);
    if (options.use_hard_g2l_mask) REQUIRE(strict.g2l_mask != all.g2l_mask);
  }
}

TEST_CASE("a flat sequence is the generic builder on the input masks", "[labels]") {
  std::mt19937 random(6);
  const etc::test::MultihopCase multihop = etc::test::random_multihop(random, 3, 2);
  Ids long_mask(multihop.long_breakpoints.size(), 1), global_mask(multihop.global_breakpoints.size(), 1);
  std::fill(long_mask.end() - 3, long_mask.end(), 0);
  std::fill(global_mask.end() - 2, global_mask.end(), 0);
  for (const LabelOptions& options : all_options(5)) {
    require_equal(side_inputs(multihop_structure(multihop.view(true)), options),
                  side_inputs(structure_from_example_ids(long_mask, global_mask, multihop.sentence_ids), options));
  }
}

TEST_CASE("without a maximum distance labels only mask", "[labels]") {
  const AttentionStructure example = structure_from_breakpoints(kLongBreakpoints, kGlobalBreakpoints, kSentences);
  REQUIRE(side_inputs(example, {2, 0, false, false}).l2g_ids.empty());
  const AttentionLabels labels = build_labels({&example, 1}, {2, 0, true, false});
  REQUIRE_FALSE(labels.long_relative);
  REQUIRE_FALSE(labels.global_relative);
  for (std::uint8_t label : labels.g2l) REQUIRE((label == 0 || label == kMasked));
}

TEST_CASE("permuting paragraphs permutes the labels and changes nothing else", "[labels]") {
  // Two paragraphs of 2 long + 2 global and 3 long + 2 global tokens, in both orders, with matching sentence and
  // paragraph indices.
  const Ids a_long{0, 1, 0, 0, 1}, a_sentences{1, 1, 3, 3, 3}, a_paragraphs{0, 0, 2, 2, 2};
  const Ids b_long{0, 0, 1, 0, 1}, b_sentences{1, 1, 1, 3, 3}, b_paragraphs{0, 0, 0, 2, 2}, globals{0, 1, 0, 1};
  const std::size_t long_to[]{3, 4, 0, 1, 2}, global_to[]{2, 3, 0, 1};  // where tokens of order a are in order b
  for (bool hard : {false, true}) {
    const LabelOptions options{4, 2, hard, hard};
    const SideInputs a =
        side_inputs(multihop_structure({a_long, a_paragraphs, a_sentences, globals, {}, {}, {}}), options);
    const SideInputs b =
        side_inputs(multihop_structure({b_long, b_paragraphs, b_sentences, globals, {}, {}, {}}), options);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t g = 0; g < 4; ++g) {
        REQUIRE(a.l2g_mask[i * 4 + g] == b.l2g_mask[long_to[i] * 4 + global_to[g]]);
        REQUIRE(a.l2g_ids[i * 4 + g] == b.l2g_ids[long_to[i] * 4 + global_to[g]]);
        REQUIRE(a.g2l_mask[g * 5 + i] == b.g2l_mask[global_to[g] * 5 + long_to[i]]);
      }
      // The window of a token holds its own paragraph only, at unchanged distances.
      REQUIRE(row(a.l2l_mask, 9, i) == row(b.l2l_mask, 9, long_to[i]));
    }
    for (std::size_t g = 0; g < 4; ++g) {
      for (std::size_t h = 0; h < 4; ++h) {
        REQUIRE(a.g2g_ids[g * 4 + h] == b.g2g_ids[global_to[g] * 4 + global_to[h]]);
      }
    }
  }
}

TEST_CASE("appended padding is masked for every real token", "[labels]") {
  std::mt19937 random(8), again(8);
  const AttentionStructure bare = multihop_structure(etc::test::random_multihop(random, 0, 0).view());
  const AttentionStructure padded = multihop_structure(etc::test::random_multihop(again, 5, 3).view());
  const auto L = static_cast<std::size_t>(bare.length()), G = static_cast<std::size_t>(bare.globals());
  for (const LabelOptions& options : {LabelOptions{3, 2, false, false}, LabelOptions{3, 2, false, true}}) {
    AttentionStructure plain = bare, with = padded;
    plain.ignore_hard_l2g.clear();  // random per token, hence different with and without padding
    with.ignore_hard_l2g.clear();
    const AttentionLabels a = build_labels({&plain, 1}, options), b = build_labels({&with, 1}, options);
    const auto same_then_masked = [](const std::uint8_t* short_row, const std::uint8_t* long_row, std::size_t n,
                                     std::size_t extra) {
      REQUIRE(std::memcmp(short_row, long_row, n) == 0);
      for (std::size_t i = n; i < n + extra; ++i) REQUIRE(long_row[i] == kMasked);
    };
    for (std::size_t i = 0; i < L; ++i) {
      same_then_masked(a.l2l.data() + i * 7, b.l2l.data() + i * 7, 7, 0);
      same_then_masked(a.l2g.data() + i * G, b.l2g.data() + i * (G + 3), G, 3);
    }
    for (std::size_t g = 0; g < G; ++g) {
      same_then_masked(a.g2g.data() + g * G, b.g2g.data() + g * (G + 3), G, 3);
      same_then_masked(a.g2l.data() + g * L, b.g2l.data() + g * (L + 5), L, 5);
    }
  }
}

TEST_CASE("an example has the same labels alone, in a batch and for any thread count", "[labels]") {
  std::mt19937 random(9);
  std::vector<AttentionStructure> batch;
  for (int b = 0; b < 3; ++b) batch.push_back(multihop_structure(etc::test::random_multihop(random, b, 0).view()));
  batch.insert(batch.begin() + 1, AttentionStructure{});                          // an empty example
  batch.push_back(structure_from_example_ids(Ids(300, 1), Ids{}, Ids(300, -1)));  // many tasks, no globals
  const LabelOptions options{6, 3, true, false};
  Labels l2l, l2g, g2g, g2l;
  for (const AttentionStructure& example : batch) {
    const AttentionLabels alone = build_labels({&example, 1}, options);
    l2l.insert(l2l.end(), alone.l2l.begin(), alone.l2l.end());
    l2g.insert(l2g.end(), alone.l2g.begin(), alone.l2g.end());
    g2g.insert(g2g.end(), alone.g2g.begin(), alone.g2g.end());
    g2l.insert(g2l.end(), alone.g2l.begin(), alone.g2l.end());
  }
  for (int threads : {1, 2, 4}) {
    etc::set_thread_count(threads);
    const AttentionLabels together = build_labels(batch, options);
    REQUIRE(values(together.l2l) == l2l);
    REQUIRE(values(together.l2g) == l2g);
    REQUIRE(values(together.g2g) == g2g);
    REQUIRE(values(together.g2l) == g2l);
  }
  etc::set_thread_count(2);
}

TEST_CASE("a batch without examples has no labels", "[labels]") {
  const AttentionLabels labels = build_labels({}, {3, 2, false, false});
  REQUIRE(labels.l2l.empty());
  REQUIRE(labels.g2g.empty());
}

TEST_CASE("labels are charged to their purpose in the memory ledger", "[labels]") {
  const auto held = [] { return etc::memory_ledger::report().current[static_cast<int>(etc::Purpose::labels)]; };
  const auto before = held();
  const AttentionStructure example = structure_from_example_ids(Ids(64, 1), Ids(2, 1), Ids(64, 0));
  const AttentionLabels labels = build_labels({&example, 1}, {3, 2, false, false});
  REQUIRE(held() - before == 64 * 7 + 64 * 2 + 64 /* 2*2, rounded up to a line */ + 2 * 64);
}

TEST_CASE("a token whose sentence has no global token belongs to none", "[labels]") {
  const AttentionStructure example = structure_from_example_ids(Ids{1, 1}, Ids{1, 1}, Ids{0, 2});  // G = 2
  const SideInputs inputs = side_inputs(example, {2, 1, false, false});
  CHECK(inputs.l2g_ids == Ids{4, 3, 3, 3});
  CHECK(values(build_labels({&example, 1}, {2, 1, false, false}).l2g) == Labels{4, 3, 3, 3});
}

TEST_CASE("arrays of one side that differ in length are an error", "[labels]") {
  REQUIRE_THROWS_WITH(structure_from_example_ids(Ids(3), Ids(2), Ids(4)),
                      "labels: sentence_ids must match long_example_ids: long_example_ids [L=3], sentence_ids [L=4]");
  const Ids three(3), two(2);
  REQUIRE_THROWS_WITH(multihop_structure({three, three, three, two, three, {}, {}}),
                      Catch::Contains("ignore_hard_g2l must match global_paragraph_breakpoints") &&
                          Catch::Contains("[G=2]") && Catch::Contains("[G=3]"));
  REQUIRE_THROWS_WITH(multihop_structure({three, two, three, two, {}, {}, {}}),
                      Catch::Contains("long_paragraph_ids must match long_paragraph_breakpoints"));
  AttentionStructure broken = structure_from_example_ids(three, two, three);
  broken.linked_ids = two;
  REQUIRE_THROWS_WITH(build_labels({&broken, 1}, {1, 1, false, false}), Catch::Contains("linked_ids must match"));
}

TEST_CASE("impossible label options are errors", "[labels]") {
  const AttentionStructure example = structure_from_example_ids(Ids{1}, Ids{1}, Ids{0});
  REQUIRE_THROWS_WITH(build_labels({&example, 1}, {0, 1, false, false}),
                      "labels: local_radius: expected at least 1, got 0");
  REQUIRE_THROWS_WITH(build_labels({&example, 1}, {1, 126, false, false}),
                      "labels: relative_pos_max_distance: expected 0 … 125 (labels are one byte), got 126");
  REQUIRE_THROWS_WITH(side_inputs(example, {1, -1, false, false}), Catch::Contains("got -1"));
  REQUIRE_THROWS_WITH(fixed_block_structure(Ids{1}, 0), "labels: num_tokens_per_block: expected at least 1, got 0");
}

TEST_CASE("the largest distance still has its labels below the mask", "[labels]") {
  const Ids breakpoints{1, 1}, none{-1, -1};
  const AttentionStructure example = multihop_structure({breakpoints, none, none, breakpoints, {}, {}, {}});
  const AttentionLabels labels = build_labels({&example, 1}, {1, kMaxRelativeDistance, false, false});
  REQUIRE(values(labels.g2g) == Labels{0, 253, 253, 0});  // R+2 = 2*125+3
}
