// From prepared pre-training examples to encoder input.
#include "tasks/pretrain/feed.h"

#include <algorithm>
#include <set>

#include "tasks/feed/features.h"
#include "tasks/pretrain/schema.h"
#include "tests/support/catch.h"
#include "tests/tasks/pretrain/examples.h"

using namespace etc;
using namespace etc::test;
using pretrain::Objective;

namespace {

using Ids = std::vector<std::int32_t>;
using Numbers = std::vector<std::int64_t>;

EncoderInput fed(const std::vector<data::LoadedExample>& examples, const Json& keys, const EncoderConfig& model) {
  return pretrain_task(keys, model)->feed(examples, "a.h5");
}

// Three sentences of 2, 1 and 2 pieces; the second is hidden, position 4 is to be predicted.
data::LoadedExample worked() {
  data::LoadedExample example = sentences_example(0);
  example.features["id"] = std::string("worked");
  example.features["long_token_ids"] = Numbers{kCls, 10, 11, 20, 30, 31};
  example.features["piece_kinds"] = Numbers{2, 1, 0, 1, 1, 1};
  example.features["first_segment_length"] = std::int64_t{6};
  example.features["sentence_lengths"] = Numbers{2, 1, 2};
  example.features["cpc_sentences"] = Numbers{1};
  example.features["masked_positions"] = Numbers{4};
  example.features["masked_input_ids"] = Numbers{kMask};
  return example;
}

void check_refused(data::LoadedExample example, const char* feature, data::FeatureValue value, const Json& keys,
                   const std::string& message) {
  example.features[feature] = std::move(value);
  const EtcConfig model = pretrain_etc();
  CHECK_THROWS_WITH(fed({example}, keys, model), Catch::Contains(message));
}

}  // namespace

TEST_CASE("a hidden sentence is masked in its text and whole in an example of its own", "[tasks][pretrain]") {
  const EtcConfig model = pretrain_etc();
  data::LoadedExample second = worked();
  second.sample_ordinal = 1;
  const EncoderInput input = fed({worked(), second}, {{"objective", "mlm_cpc"}}, model);
  CHECK(input.long_offsets == Numbers{0, 6, 12, 13, 14});
  CHECK(input.global_offsets == Numbers{0, 3, 6, 7, 8});
  CHECK(input.token_ids == Ids{kCls, 10, 11, kMask, kMask, 31, kCls, 10, 11, kMask, kMask, 31, /* alone: */ 20, 20});
  CHECK(input.global_token_ids == Ids{1, 2, 1, 1, 2, 1, 1, 1});
  CHECK(input.segment_ids.empty());
  CHECK(input.position_ids.empty());
  // All dropout keys differ.
  CHECK(std::set<std::int64_t>(input.sample_ordinals.begin(), input.sample_ordinals.end()).size() == 4);
  // Under hard g2l a global token sees the pieces of its sentence; [CLS] belongs to none.
  const std::uint8_t* g2l = input.labels.g2l.data();  // [3, 6] of the first example
  const std::vector<std::vector<int>> expected = {{0, 1, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 1, 1}};
  for (std::size_t g = 0; g < 3; ++g) {
    for (std::size_t i = 0; i < 6; ++i) CHECK((g2l[g * 6 + i] != sparse::kMasked) == (expected[g][i] == 1));
  }
}

TEST_CASE("keys choose the global id of a hidden sentence and whether it is hidden at all", "[tasks][pretrain]") {
  const EtcConfig model = pretrain_etc();
  const EncoderInput plain = fed({worked()}, {{"objective", "mlm_cpc"}, {"cpc_mask_global_id", 1}}, model);
  CHECK(plain.global_token_ids == Ids{1, 1, 1, 1});
  const EncoderInput control = fed({worked()}, {{"objective", "mlm_cpc"}, {"cpc_mask_sentences", false}}, model);
  CHECK(control.token_ids == Ids{kCls, 10, 11, 20, kMask, 31, 20});
  CHECK(control.global_token_ids == Ids{1, 1, 1, 1});
  // With the objective mlm no sentence is hidden.
  const EncoderInput mlm = fed({worked()}, {{"objective", "mlm"}}, model);
  CHECK(mlm.token_ids == Ids{kCls, 10, 11, 20, kMask, 31});
  CHECK(mlm.global_token_ids == Ids{1, 1, 1});
}

TEST_CASE("sentences alone keep the positions of their text", "[tasks][pretrain]") {
  EtcConfig model = pretrain_etc();
  model.max_absolute_position_embeddings = 16;
  const EncoderInput input = fed({worked()}, {{"objective", "mlm_cpc"}}, model);
  CHECK(input.position_ids == Ids{0, 1, 2, 3, 4, 5, 3});
  CHECK(input.global_position_ids == Ids{0, 1, 2, 1});
}

TEST_CASE("a pair of texts has two segments and no global tokens", "[tasks][pretrain]") {
  const data::LoadedExample pair = pair_example(1);
  const Numbers& ids = feed::numbers(pair.features, "long_token_ids");
  const auto first = static_cast<std::size_t>(feed::number(pair.features, "first_segment_length"));
  for (const ModelConfig& model : {ModelConfig(pretrain_dense()), ModelConfig(pretrain_etc())}) {
    const EncoderInput input = fed({pair}, {{"objective", "mlm_nsp"}}, *model);
    CHECK(input.global_tokens() == 0);
    REQUIRE(input.segment_ids.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(input.segment_ids[i] == (i < first ? 0 : 1));
    const Numbers& masked = feed::numbers(pair.features, "masked_positions");
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool is_masked = std::find(masked.begin(), masked.end(), static_cast<std::int64_t>(i)) != masked.end();
      if (!is_masked) CHECK(input.token_ids[i] == ids[i]);
    }
  }
}

TEST_CASE("masks are drawn afresh in every epoch, whatever the batch and its order", "[tasks][pretrain]") {
  const EtcConfig model = pretrain_etc();
  const Json keys = {{"objective", "mlm_cpc"}, {"masked_lm_prob", 0.3}};
  std::vector<data::LoadedExample> examples;
  for (std::int64_t i = 0; i < 20; ++i) examples.push_back(without_masks(sentences_example(i)));
  const auto tokens = [&](std::vector<data::LoadedExample> some) {
    const EncoderInput input = fed(some, keys, model);
    return Ids(input.token_ids.begin(), input.token_ids.begin() + input.long_offsets[1]);  // of the first
  };
  const Ids first = tokens(examples);
  CHECK(first == tokens({examples[0]}));
  CHECK(first == tokens({examples[0], examples[7], examples[3]}));
  data::LoadedExample moved = examples[0];
  moved.index = 9;  // at another place of the data set and of the run
  moved.sample_ordinal = 1234;
  CHECK(first == tokens({moved}));
  int different = 0;
  for (data::LoadedExample example : examples) {
    const Ids now = tokens({example});
    example.epoch = 1;
    different += now != tokens({example}) ? 1 : 0;
  }
  CHECK(different > 15);
  const EncoderInput other = fed({examples[1]}, {{"objective", "mlm_cpc"}, {"masking_seed", 5}}, model);
  const EncoderInput usual = fed({examples[1]}, {{"objective", "mlm_cpc"}}, model);
  CHECK(other.token_ids != usual.token_ids);
}

TEST_CASE("masks drawn while training have the counts and groups that the preparation gives the objective",
          "[tasks][pretrain]") {
  DenseConfig model = pretrain_dense();
  model.max_absolute_position_embeddings = 512;
  // `[CLS] words [SEP]`, words of two pieces, 512 pieces in all.
  data::LoadedExample text = without_masks(pair_example(0));
  Numbers ids(512, 20), kinds(512, pretrain::kBegins);
  for (std::size_t i = 2; i < 511; i += 2) kinds[i] = pretrain::kContinues;
  ids.front() = kCls;
  ids.back() = kSep;
  kinds.front() = kinds.back() = pretrain::kSpecial;
  text.features["long_token_ids"] = ids;
  text.features["piece_kinds"] = kinds;
  text.features["first_segment_length"] = std::int64_t{512};
  const auto positions = [&](const Json& keys) {
    Json section = pretrain::fields().defaults();
    section.update(keys);
    return pretrain::masks_of(text, pretrain::read_options(section), {kMask, kPretrainVocabulary}).positions;
  };
  const auto has_half_words = [](const Numbers& chosen) {
    const std::set<std::int64_t> all(chosen.begin(), chosen.end());
    return std::any_of(chosen.begin(), chosen.end(),
                       [&](std::int64_t p) { return !all.contains(p % 2 == 1 ? p + 1 : p - 1); });
  };
  const Numbers mlm = positions({{"objective", "mlm"}}), pieces = positions({{"objective", "mlm_nsp"}});
  CHECK(mlm.size() == 76);  // of 77 wanted: whole words
  CHECK(!has_half_words(mlm));
  CHECK(pieces.size() == 77);
  CHECK(has_half_words(pieces));
  CHECK(has_half_words(positions({{"objective", "mlm"}, {"whole_word_mask", false}})));
  CHECK(!has_half_words(positions({{"objective", "mlm_nsp"}, {"whole_word_mask", true}})));
  CHECK(positions({{"objective", "mlm_nsp"}, {"max_predictions_per_seq", 20}}).size() == 20);
  CHECK_THROWS_WITH(positions({{"whole_word_mask", "yes"}}),
                    "config: task.whole_word_mask: expected true, false or null, got \"yes\"");
}

TEST_CASE("examples that contradict themselves, the model or the objective are refused", "[tasks][pretrain]") {
  const Json cpc = {{"objective", "mlm_cpc"}};
  const std::string where = "feed: a.h5: example worked: ";
  check_refused(worked(), "long_token_ids", Numbers{1, 2, 3, 4, 5, 64}, cpc,
                where + "long_token_ids: expected token ids below vocab_size=64 of the model, got 64");
  check_refused(worked(), "piece_kinds", Numbers{2, 1}, cpc, where + "piece_kinds: expected 6 numbers");
  check_refused(worked(), "masked_positions", Numbers{6}, cpc, where + "masked_positions: expected 0 … 5");
  check_refused(worked(), "masked_input_ids", Numbers{3, 3}, cpc, where + "masked_input_ids: expected 1 numbers");
  check_refused(worked(), "sentence_lengths", Numbers{2, 1, 1}, cpc,
                where + "sentence_lengths: expected a sum of 5, one less than the tokens, got 4");
  check_refused(worked(), "cpc_sentences", Numbers{3}, cpc, where + "cpc_sentences: expected 0 … 2");
  check_refused(worked(), "cpc_sentences", Numbers{2, 1}, cpc,
                where + "cpc_sentences: expected strictly increasing, got 1 after 2");
  check_refused(worked(), "first_segment_length", std::int64_t{7}, cpc, where + "first_segment_length: expected 0 … 6");
  check_refused(worked(), "next_sentence_label", std::int64_t{2}, cpc, where + "next_sentence_label: expected -1 … 1");
  check_refused(worked(), "next_sentence_label", std::int64_t{-1}, {{"objective", "mlm_nsp"}},
                where + "task.objective: mlm_nsp needs pairs of texts");
  check_refused(pair_example(0), "next_sentence_label", std::int64_t{0}, cpc,
                "task.objective: mlm_cpc needs sentences");
  check_refused(worked(), "id", std::string("worked"), {{"objective", "mlm_cpc"}, {"cpc_mask_global_id", 64}},
                "task.cpc_mask_global_id: expected an id below vocab_size=64, got 64");
  CHECK_THROWS_WITH(pretrain_task(cpc, pretrain_dense()),
                    Catch::Contains("task.objective: mlm_cpc needs an encoder with global tokens"));
  CHECK_THROWS_WITH(pretrain_task({{"masked_lm_prob", 1.5}}, pretrain_dense()), Catch::Contains("task.masked_lm_prob"));
  CHECK_THROWS_WITH(pretrain_task({{"max_predictions_per_seq", 0}}, pretrain_dense()),
                    Catch::Contains("task.max_predictions_per_seq"));
}
