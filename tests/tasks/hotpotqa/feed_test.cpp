// Features → encoder input: labels against the reference's masks and ids, and what is refused.
#include "tasks/hotpotqa/feed.h"

#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tests/support/catch.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/hotpotqa/examples.h"
#include "tests/tasks/multihop_golden.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::hotpotqa;
using test::differences;

namespace {

using Numbers = std::vector<std::int64_t>;

std::string message_of(const data::Example& example) {
  try {
    check_example(example, test::tiny_hotpotqa_model(), "dev.h5");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The record from which a golden group's inputs were derived, prepared with the settings of the group.
data::LoadedExample prepared(const test::GoldenFile& file, const std::string& group, std::size_t index,
                             const std::filesystem::path& data) {
  PrepareConfig config = test::hotpotqa_config(Parity::reference, file.int_attribute(group, "long_seq_len"),
                                               file.int_attribute(group, "global_seq_len"));
  config.is_training = config.labels_required = file.int_attribute(group, "is_training") != 0;
  config.special_ids = published_special_ids(file.string_attribute(group, "tokenizer") == "sentencepiece");
  const HotpotqaPreparation preparation(config,
                                        test::shared_tokenizer(data / "vocab" / file.string_attribute(group, "vocab")));
  const auto record = file.read<std::int64_t>(group + "/record_index").values[index];
  const auto& records = test::shared_raw_records(data / "hotpotqa" / file.string_attribute(group, "source_file"),
                                                 data::RecordLayout::array);
  return {record, 0, preparation.convert(records.at(static_cast<std::size_t>(record))).examples.at(0)};
}

// The whole golden matrices, which are larger than the record, follow the formulas.
void require_formulas(const test::GoldenFile& file, const std::string& group, const std::string& index,
                      const test::GoldenInputs& inputs) {
  const auto i = static_cast<std::size_t>(std::stoll(index));
  const bool with_flat = group == "wp_L512_G64_train";
  test::Names names = test::kCommonInputs;
  if (with_flat) {
    names.insert({"flat_l2l_att_mask", "flat_g2g_relative_att_ids", "flat_l2g_att_mask_hard", "flat_g2l_att_mask_hard",
                  "flat_l2g_relative_att_ids"});
  }
  test::require_names(file, group + "/derived/" + index, names);
  test::PaddedRecord record = test::padded_record(file, group, i);
  const std::int64_t cls = published_special_ids(test::is_sentencepiece(file, group)).cls;
  const auto global_ids = file.read_ragged<std::int64_t>(group + "/features/global_token_ids");
  for (const std::int64_t id : global_ids[i]) {
    record.exempt.push_back(id == cls ? 1 : 0);
  }
  test::require_common_inputs(inputs, record);
  if (!with_flat) return;
  const test::InputFormulas f(record, true);
  test::require_formula(inputs, "flat_l2l_att_mask", f.L(), 2 * record.radius + 1,
                        [&](auto l, auto c) { return f.l2l_mask(l, c); });
  test::require_formula(inputs, "flat_g2g_relative_att_ids", f.G(), f.G(),
                        [&](auto g, auto h) { return f.g2g_ids(g, h); });
  test::require_formula(inputs, "flat_l2g_att_mask_hard", f.L(), f.G(),
                        [&](auto l, auto g) { return f.l2g_hard(l, g); });
  test::require_formula(inputs, "flat_g2l_att_mask_hard", f.G(), f.L(),
                        [&](auto g, auto l) { return f.g2l_hard(g, l); });
  test::require_formula(inputs, "flat_l2g_relative_att_ids", f.L(), f.G(),
                        [&](auto l, auto g) { return f.l2g_ids(l, g); });
}

// Our labels of the record equal the part of the golden matrices that belongs to it.
void require_labels(EtcConfig model, const data::LoadedExample& example, const test::GoldenInputs& d) {
  const std::vector<data::LoadedExample> examples = {example};
  const auto build = [&](bool hard_g2l, bool hard_l2g, bool flat) {
    model.use_hard_g2l_mask = hard_g2l;
    model.use_hard_l2g_mask = hard_l2g;
    return feed(examples, model, {flat, true}, "here").labels;
  };
  const auto& l2g_ids = d.at("l2g_relative_att_ids");
  const auto soft = build(false, false, false);
  CHECK(differences(soft.l2l, d.L, d.W, d.at("l2l_att_mask"), false, d.at("l2l_relative_att_ids"), false) == 0);
  CHECK(differences(soft.g2g, d.G, d.G, d.at("g2g_att_mask"), false, d.at("g2g_relative_att_ids"), false) == 0);
  CHECK(differences(soft.l2g, d.L, d.G, d.at("l2g_att_mask"), false, l2g_ids, false) == 0);
  CHECK(differences(soft.g2l, d.G, d.L, d.at("l2g_att_mask"), true, l2g_ids, true) == 0);
  const auto hard = build(true, true, false);
  CHECK(differences(hard.l2g, d.L, d.G, d.at("l2g_att_mask_hard"), false, l2g_ids, false) == 0);
  CHECK(differences(hard.g2l, d.G, d.L, d.at("g2l_att_mask_hard"), false, l2g_ids, true) == 0);
  if (!d.has("flat_l2l_att_mask")) return;
  const auto flat = build(true, true, true);
  const auto& flat_ids = d.at("flat_l2g_relative_att_ids");
  const auto& long_ids = d.at("l2l_relative_att_ids");
  CHECK(differences(flat.l2l, d.L, d.W, d.at("flat_l2l_att_mask"), false, long_ids, false) == 0);
  CHECK(differences(flat.g2g, d.G, d.G, d.at("g2g_att_mask"), false, d.at("flat_g2g_relative_att_ids"), false) == 0);
  CHECK(differences(flat.l2g, d.L, d.G, d.at("flat_l2g_att_mask_hard"), false, flat_ids, false) == 0);
  CHECK(differences(flat.g2l, d.G, d.L, d.at("flat_g2l_att_mask_hard"), false, flat_ids, true) == 0);
}

}  // namespace

TEST_CASE("the labels of HotpotQA's feed equal the reference's masks and ids", "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden file with HotpotQA model inputs");
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      if (file.string_attribute(group, "answer_encoding") == "bio") continue;  // labels only
      test::require_derived_records(file, group);
      for (const std::string& index : file.groups(group + "/derived")) {
        INFO(path.filename().string() << ":" << group << "/derived/" << index);
        const test::GoldenInputs inputs(file, group, index);
        require_formulas(file, group, index, inputs);
        require_labels(test::golden_label_model(file, group),
                       prepared(file, group, static_cast<std::size_t>(std::stoll(index)), *data), inputs);
      }
      file.require_all_read(group + "/derived");
    }
  }
}

TEST_CASE("the worked layout gives the visible pairs and labels of its table", "[tasks][hotpotqa]") {
  const std::vector<data::LoadedExample> examples = {test::hotpotqa_example(test::worked_hotpotqa_record("z1"))};
  const EtcConfig model = test::tiny_hotpotqa_model();  // k = 2, hard g2l
  const EncoderInput input = feed(examples, model, {}, "here");
  REQUIRE(input.long_offsets == Numbers{0, 14});
  REQUIRE(input.global_offsets == Numbers{0, 11});
  const auto row = [](const auto& labels, int index, int cols) {
    return std::vector<int>(labels.begin() + index * cols, labels.begin() + (index + 1) * cols);
  };
  const int m = sparse::kMasked;
  CHECK(row(input.labels.g2g, 0, 11) == std::vector<int>{0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7});
  CHECK(row(input.labels.g2g, 1, 11) == std::vector<int>{7, 0, 1, 2, 7, 7, 7, 7, 7, 7, 7});
  CHECK(row(input.labels.g2g, 6, 11) == std::vector<int>{7, 7, 7, 7, 4, 3, 0, 1, 7, 7, 7});
  CHECK(row(input.labels.g2g, 10, 11) == std::vector<int>{7, 7, 7, 7, 7, 7, 7, 7, 4, 3, 0});
  CHECK(row(input.labels.g2l, 0, 14) == std::vector<int>(14, 5));  // the exempt CLS sees all, linked to none
  CHECK(row(input.labels.g2l, 4, 14) == std::vector<int>{m, m, m, m, 6, 6, 6, 6, 6, 6, m, m, m, m});
  CHECK(row(input.labels.g2l, 7, 14) == std::vector<int>{m, m, m, m, m, m, m, m, 6, 6, m, m, m, m});
  CHECK(row(input.labels.l2l, 4, 9) == std::vector<int>{m, m, m, m, 0, 1, 2, 2, 2});
  CHECK(row(input.labels.l2l, 0, 9) == std::vector<int>{m, m, m, m, 0, m, m, m, m});

  const EncoderInput alone = feed(examples, model, {false, false}, "here");  // without global attention
  CHECK(row(alone.labels.l2g, 5, 11) == std::vector<int>(11, m));
  CHECK(row(alone.labels.g2g, 6, 11) == std::vector<int>{m, m, m, m, m, m, 0, m, m, m, m});
  CHECK(row(alone.labels.g2l, 0, 14) == std::vector<int>(14, m));
  CHECK(row(alone.labels.g2l, 7, 14) == row(input.labels.g2l, 7, 14));
  CHECK(row(alone.labels.l2l, 4, 9) == row(input.labels.l2l, 4, 9));
}

TEST_CASE("HotpotQA examples that contradict themselves are refused by file, example and feature",
          "[tasks][hotpotqa]") {
  const data::Example good = test::hotpotqa_example(test::worked_hotpotqa_record("z1")).features;
  CHECK(message_of(good).empty());
  const auto damaged = [&](const char* feature, std::size_t position, std::int64_t value) {
    data::Example example = good;
    std::get<Numbers>(example.at(feature)).at(position) = value;
    return message_of(example);
  };
  const auto with_number = [&](const char* feature, std::int64_t value) {
    data::Example example = good;
    example[feature] = value;
    return message_of(example);
  };
  CHECK(damaged("long_sentence_ids", 4, 11) ==
        "feed: dev.h5: example w: long_sentence_ids: expected -1 … 10 at position 4, got 11 (the file is damaged; run "
        "`etc prepare` again)");
  CHECK_THAT(damaged("global_token_ids", 0, 3), Catch::Contains("expected the CLS token 101 like the long side's"));
  CHECK_THAT(damaged("long_token_ids", 3, 128),
             Catch::Contains("long_token_ids: expected token ids below vocab_size=128"));
  CHECK_THAT(damaged("long_token_ids", 3, -1), Catch::Contains("long_token_ids: expected 0"));
  CHECK_THAT(damaged("global_paragraph_ids", 3, 2), Catch::Contains("expected -1 … 1 at position 3, got 2"));
  CHECK_THAT(damaged("supporting_facts", 3, 2), Catch::Contains("supporting_facts: expected 0 … 1"));
  CHECK_THAT(damaged("long_tokens_to_unigrams", 3, -2), Catch::Contains("long_tokens_to_unigrams"));
  CHECK_THAT(damaged("span_ends", 0, 12), Catch::Contains("span_ends: expected at least 13 at position 0, got 12"));
  CHECK_THAT(damaged("long_paragraph_breakpoints", 13, 0), Catch::Contains("expected 1 at the last position"));
  CHECK_THAT(with_number("answer_types", 3), Catch::Contains("answer_types: expected -1 … 2, got 3"));
  CHECK_THAT(with_number("answer_begins", -2), Catch::Contains("answer_begins"));
  CHECK_THAT(with_number("answer_ends", 12), Catch::Contains("answer_ends: expected 13"));
  CHECK_THAT(damaged("global_true_sentence_ids", 7, -2), Catch::Contains("global_true_sentence_ids: expected -1"));
  for (const char* feature : {"global_sentence_ids", "global_true_sentence_ids"}) {
    CHECK_THAT(damaged(feature, 0, 1), Catch::Contains("expected -1 at position 0, which belongs to no paragraph"));
  }
  data::Example example = good;
  std::get<std::vector<std::string>>(example.at("global_text")).pop_back();
  CHECK_THAT(message_of(example), Catch::Contains("global_text: expected G=11 strings, got 10"));
  example = good;
  std::get<Numbers>(example.at("gold_sf_sentences")).pop_back();
  CHECK_THAT(message_of(example), Catch::Contains("gold_sf_sentences: expected 2 numbers"));
}
