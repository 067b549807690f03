// Features → encoder input: labels against the reference's masks and ids, and what is refused.
#include "tasks/wikihop/feed.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/multihop_golden.h"
#include "tests/tasks/wikihop/examples.h"

namespace {

using etc::data::LoadedExample;
using etc::sparse::kMasked;
using etc::test::differences;
using etc::test::GoldenFile;
using Numbers = std::vector<std::int64_t>;

// One record of one configuration with the model inputs the reference made of it.
struct Case {
  LoadedExample example;
  etc::EtcConfig model;
  etc::test::GoldenInputs derived;
  std::string name;
};

Case read_case(const GoldenFile& file, const std::string& group, const std::string& index) {
  Case c;
  c.name = file.path().filename().string() + ":" + group + "/derived/" + index;
  const auto i = static_cast<std::size_t>(std::stoll(index));
  const auto extra = [&](const char* name) { return file.read<std::int64_t>(group + "/extra/" + name).values[i]; };
  c.derived = etc::test::GoldenInputs(file, group, index);
  auto& features = c.example.features;
  for (const std::string& name : file.groups(group + "/features")) {
    if (name == "label_id" || name == "is_real_example") continue;
    if (name == "example_id" || name == "query" || name == "ground_truth_answer" || name == "candidates") continue;
    Numbers row = file.read_ragged<std::int64_t>(group + "/features/" + name)[i];
    row.resize(static_cast<std::size_t>(name.starts_with("global") ? c.derived.G
                                                                   : c.derived.L));  // the golden padding is cut off
    features[name] = row;
  }
  features["id"] = file.read_strings(group + "/id")[i];
  features["candidates"] = file.read_ragged_strings(group + "/features/candidates")[i];
  features["num_candidates"] = extra("num_candidates");
  features["label_id"] = static_cast<std::int64_t>(file.read_ragged<double>(group + "/features/label_id")[i][0]);
  c.model = etc::test::golden_label_model(file, group);
  return c;
}

std::string message_of(const etc::data::Example& example, const etc::EtcConfig& model) {
  try {
    etc::wikihop::check_example(example, model, "dev.h5");
  } catch (const etc::Error& error) {
    return error.what();
  }
  return "";
}

// The whole golden matrices, which are larger than the record, follow the formulas.
void require_formulas(const GoldenFile& file, const std::string& group, const std::string& index, const Case& c) {
  namespace test = etc::test;
  const auto i = static_cast<std::size_t>(std::stoll(index));
  test::Names names = test::kCommonInputs;
  names.insert({"g2l_att_mask_hard_no_exempt", "l2g_relative_att_ids_unlinked"});
  test::require_names(file, group + "/derived/" + index, names);
  test::PaddedRecord record = test::padded_record(file, group, i);
  record.linked_ids = file.read_ragged<std::int64_t>(group + "/features/l2g_linked_ids")[i];
  const auto types = file.read_ragged<std::int64_t>(group + "/features/global_token_type_ids");
  for (const std::int64_t type : types[i]) {
    record.exempt.push_back(type == 5 || type == 6 ? 1 : 0);  // query and candidates
  }
  test::require_common_inputs(c.derived, record);
  const test::InputFormulas f(record, false);
  test::require_formula(c.derived, "g2l_att_mask_hard_no_exempt", f.G(), f.L(),
                        [&](auto g, auto l) { return f.g2l_hard_no_exempt(g, l); });
  test::require_formula(c.derived, "l2g_relative_att_ids_unlinked", f.L(), f.G(),
                        [&](auto l, auto g) { return f.l2g_ids_unlinked(l, g); });
}

// Our labels of the record equal the part of the golden matrices that belongs to it.
void require_labels(Case& c) {
  const auto& d = c.derived;
  const std::vector<LoadedExample> examples = {c.example};
  const auto build = [&](bool hard_g2l, bool hard_l2g, bool exempt, bool linked) {
    c.model.use_hard_g2l_mask = hard_g2l;
    c.model.use_hard_l2g_mask = hard_l2g;
    etc::wikihop::FeedOptions options;
    options.candidate_ignore_hard_g2l = options.query_ignore_hard_g2l = exempt;
    options.enable_l2g_linking = linked;
    return etc::wikihop::feed(examples, c.model, options, c.name);
  };
  const auto& ids = d.at("l2g_relative_att_ids");
  const auto& unlinked = d.at("l2g_relative_att_ids_unlinked");
  const etc::EncoderInput soft = build(false, false, true, true);
  CHECK(differences(soft.labels.l2l, d.L, d.W, d.at("l2l_att_mask"), false, d.at("l2l_relative_att_ids"), false) == 0);
  CHECK(differences(soft.labels.g2g, d.G, d.G, d.at("g2g_att_mask"), false, d.at("g2g_relative_att_ids"), false) == 0);
  CHECK(differences(soft.labels.l2g, d.L, d.G, d.at("l2g_att_mask"), false, ids, false) == 0);
  CHECK(differences(soft.labels.g2l, d.G, d.L, d.at("l2g_att_mask"), true, ids, true) == 0);
  const etc::EncoderInput hard = build(true, true, true, false);
  CHECK(differences(hard.labels.l2g, d.L, d.G, d.at("l2g_att_mask_hard"), false, unlinked, false) == 0);
  CHECK(differences(hard.labels.g2l, d.G, d.L, d.at("g2l_att_mask_hard"), false, unlinked, true) == 0);
  const etc::EncoderInput nobody = build(true, false, false, true);
  CHECK(differences(nobody.labels.g2l, d.G, d.L, d.at("g2l_att_mask_hard_no_exempt"), false, ids, true) == 0);
  CHECK(soft.token_ids.size() == static_cast<std::size_t>(d.L));
  CHECK(soft.global_offsets == Numbers{0, d.G});
}

TEST_CASE("the labels of the feed equal the reference's masks and ids", "[tasks][golden]") {
  const auto files = etc::test::golden_named("wikihop_features", ".h5");
  if (files.empty()) return etc::test::skip("no golden file with WikiHop model inputs");
  for (const auto& path : files) {
    const GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      if (group == "sentences") continue;
      etc::test::require_derived_records(file, group);
      for (const std::string& index : file.groups(group + "/derived")) {
        Case c = read_case(file, group, index);
        INFO(c.name);
        require_formulas(file, group, index, c);
        require_labels(c);
      }
      file.require_all_read(group + "/derived");
    }
  }
}

TEST_CASE("the worked layout gives the visible pairs and labels of its table", "[tasks]") {
  etc::EtcConfig model = etc::test::tiny_model();
  model.relative_pos_max_distance = 2;
  model.use_hard_g2l_mask = true;
  const std::vector<LoadedExample> examples = {etc::test::worked_example(0)};
  const etc::EncoderInput input = etc::wikihop::feed(examples, model, {}, "here");
  const auto row = [](const auto& labels, int index, int cols) {
    return std::vector<int>(labels.begin() + index * cols, labels.begin() + (index + 1) * cols);
  };
  const int m = kMasked;
  CHECK(row(input.labels.g2g, 4, 9) == std::vector<int>{7, 7, 7, 7, 0, 1, 2, 7, 7});
  CHECK(row(input.labels.g2g, 5, 9) == std::vector<int>{7, 7, 7, 7, 3, 0, 1, 7, 7});
  CHECK(row(input.labels.g2g, 0, 9) == std::vector<int>{0, 7, 7, 7, 7, 7, 7, 7, 7});
  CHECK(row(input.labels.g2g, 3, 9) == std::vector<int>{7, 7, 3, 0, 7, 7, 7, 7, 7});
  CHECK(row(input.labels.g2l, 0, 14) == std::vector<int>{6, 5, 5, 5, 5, 5, 5, 6, 5, 5, 5, 5, 5, 5});
  CHECK(row(input.labels.g2l, 1, 14) == std::vector<int>{5, 6, 6, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6});
  CHECK(row(input.labels.g2l, 4, 14) == std::vector<int>{m, m, m, m, m, 6, 6, 6, 6, 6, m, m, m, m});
  CHECK(row(input.labels.g2l, 8, 14) == std::vector<int>{m, m, m, m, m, m, m, m, m, m, 6, 6, 6, 6});
}

TEST_CASE("without global attention a global token reads its own tokens and nothing reads it", "[tasks]") {
  etc::EtcConfig model = etc::test::tiny_model();
  model.relative_pos_max_distance = 2;
  const std::vector<LoadedExample> examples = {etc::test::worked_example(0)};
  const int m = kMasked;
  const std::vector<int> own[9] = {
      {0}, {1, 2}, {3}, {4}, {5, 6, 7, 8, 9}, {5, 6, 7}, {8, 9}, {10, 11, 12, 13}, {10, 11, 12, 13}};
  for (const bool hard_g2l : {false, true}) {  // no token is exempt, whatever the model and the task are set to
    for (const bool flat : {false, true}) {
      CAPTURE(hard_g2l, flat);
      model.use_hard_g2l_mask = hard_g2l;
      etc::wikihop::FeedOptions options;
      options.flat_sequence = flat;
      const etc::EncoderInput with = etc::wikihop::feed(examples, model, options, "here");
      options.global_attention = false;
      const etc::EncoderInput without = etc::wikihop::feed(examples, model, options, "here");
      CHECK(std::equal(with.labels.l2l.begin(), with.labels.l2l.end(), without.labels.l2l.begin()));
      CHECK(std::all_of(without.labels.l2g.begin(), without.labels.l2g.end(), [&](int label) { return label == m; }));
      for (int g = 0; g < 9; ++g) {
        for (int h = 0; h < 9; ++h) CHECK(int{without.labels.g2g[9 * g + h]} == (g == h ? 0 : m));
        // With flat_sequence there are no documents, so their two global tokens own no long tokens.
        const bool document = g == 4 || g == 7;
        for (int i = 0; i < 14; ++i) {
          const bool owns = std::count(own[g].begin(), own[g].end(), i) > 0 && !(flat && document);
          CAPTURE(g, i);
          CHECK(int{without.labels.g2l[14 * g + i]} == (owns ? 6 : m));
        }
      }
    }
  }
}

TEST_CASE("examples that contradict themselves or the model are refused by file, example and feature", "[tasks]") {
  const etc::EtcConfig model = etc::test::tiny_model();
  const etc::data::Example good = etc::test::worked_example(0).features;
  CHECK(message_of(good, model).empty());
  const auto damaged = [&](const char* feature, std::size_t position, std::int64_t value) {
    etc::data::Example example = good;
    std::get<Numbers>(example.at(feature))[position] = value;
    return message_of(example, model);
  };
  CHECK(damaged("long_sentence_ids", 4, 9) ==
        "feed: dev.h5: example worked_0: long_sentence_ids: expected -1 … 8 at position 4, got 9 (the file is damaged; "
        "run `etc prepare` again)");
  CHECK(damaged("long_paragraph_ids", 13, -2).find("long_paragraph_ids: expected -1") != std::string::npos);
  CHECK(damaged("long_token_ids", 0, model.vocab_size).find("long_token_ids: expected token ids below") !=
        std::string::npos);
  CHECK(damaged("global_token_ids", 8, -1).find("global_token_ids") != std::string::npos);
  CHECK(damaged("long_paragraph_breakpoints", 13, 0).find("expected 1 at the last position") != std::string::npos);
  CHECK(damaged("global_paragraph_breakpoints", 8, 0).find("expected 1 at the last position") != std::string::npos);
  CHECK(damaged("long_paragraph_breakpoints", 1, 2).find("expected 0 … 1") != std::string::npos);
  CHECK(damaged("l2g_linked_ids", 0, 2).find("l2g_linked_ids: expected -1 … 1") != std::string::npos);
  CHECK(damaged("global_token_type_ids", 1, 5)
            .find("expected type 6 at the first C=2 positions only, got 5 at "
                  "position 1") != std::string::npos);
  CHECK(damaged("global_token_type_ids", 3, 6).find("got 6 at position 3") != std::string::npos);

  etc::data::Example example = good;
  SECTION("more candidates than global tokens") {
    example["num_candidates"] = std::int64_t{10};
    CHECK(message_of(example, model).find("expected 1 … G=9 candidates") != std::string::npos);
  }
  SECTION("a label beyond the candidates") {
    example["label_id"] = std::int64_t{2};
    CHECK(message_of(example, model).find("label_id: expected -1 … 1, got 2") != std::string::npos);
  }
  SECTION("lengths that differ") {
    std::get<Numbers>(example["l2g_linked_ids"]).pop_back();
    CHECK(message_of(example, model).find("l2g_linked_ids: expected 14 numbers") != std::string::npos);
  }
  SECTION("as many strings as candidates") {
    example["candidates"] = std::vector<std::string>{"one"};
    CHECK(message_of(example, model).find("candidates: expected C=2 strings, got 1") != std::string::npos);
  }
  SECTION("no tokens") {
    for (auto& [name, value] : example) {
      if (auto* numbers = std::get_if<Numbers>(&value)) numbers->clear();
    }
    CHECK(message_of(example, model).find("expected at least one token") != std::string::npos);
  }
}

TEST_CASE("a batch is its examples one after the other", "[tasks]") {
  const etc::EtcConfig model = etc::test::tiny_model();
  const std::vector<LoadedExample> one = {etc::test::worked_example(0)};
  const std::vector<LoadedExample> two = {etc::test::worked_example(7), etc::test::worked_example(9)};
  const etc::EncoderInput alone = etc::wikihop::feed(one, model, {}, "here");
  const etc::EncoderInput both = etc::wikihop::feed(two, model, {}, "here");
  CHECK(both.long_offsets == Numbers{0, 14, 28});
  CHECK(both.global_offsets == Numbers{0, 9, 18});
  CHECK(both.sample_ordinals == Numbers{7, 9});
  CHECK(both.labels.g2l.size() == 2 * alone.labels.g2l.size());
  for (std::int64_t i = 0; i < alone.labels.l2g.size(); ++i) {
    REQUIRE(both.labels.l2g[i] == alone.labels.l2g[i]);
    REQUIRE(both.labels.l2g[alone.labels.l2g.size() + i] == alone.labels.l2g[i]);
  }
}

}  // namespace
