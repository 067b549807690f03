// Windows → encoder input: labels against the reference's masks and ids, and what is refused.
#include "tasks/nq/feed.h"

#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/nq/windows.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/small_config.h"
#include "tests/tasks/nq/golden_windows.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/padded_inputs.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using sparse::kMasked;

namespace {

using Numbers = std::vector<std::int64_t>;
using GoldenBytes = test::GoldenArray<std::uint8_t>;

// A golden window's example ids and global tokens. Breakpoints are 1 at the last real position.
test::PaddedInputs padded_inputs(const test::GoldenFile& file, const std::string& config, std::size_t row) {
  const auto feature = [&](const char* name) { return file.read_ragged<std::int64_t>(config + "/" + name).at(row); };
  const auto example_ids = [&](const char* breakpoints) {
    Numbers ids = feature(breakpoints);
    for (std::size_t i = ids.size(); i-- > 1;) ids[i - 1] += ids[i];
    return ids;
  };
  return {example_ids("long_breakpoints"), example_ids("global_breakpoints"), feature("sentence_ids"),
          file.int_attribute(config + "/derived", "local_radius"),
          file.int_attribute(config + "/derived", "relative_pos_max_distance")};
}

// Number of pairs of real tokens whose label is not (mask ? id : kMasked). The golden arrays are padded: they have more
// rows than ours, and each is `stride` long.
std::int64_t differences(const Buffer<std::uint8_t>& labels, std::int64_t rows, std::int64_t columns,
                         const GoldenBytes& mask, const GoldenBytes& ids) {
  REQUIRE(labels.size() == rows * columns);
  const std::int64_t stride = mask.shape[1];
  std::int64_t different = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>(r * stride + c);
      const int expected = mask.values[at] == 1 ? ids.values[at] : kMasked;
      if (labels[r * columns + c] != expected) ++different;
    }
  }
  return different;
}

EtcConfig small_model() {
  return test::small_config({.vocabulary = 1 << 20, .radius = 3});
}

data::LoadedExample worked_window() {
  nq::PrepareConfig config;
  config.seq_len = 16;
  config.global_seq_len = 10;
  config.stride = 6;
  config.question_len = 2;
  config.special_ids = {0, 101, 102, 103, 104, 1, 35};
  const data::JsonRecord raw = test::raw_record(json_line(test::worked_nq_record()));
  prepare::FaultList faults;
  const nq::Record record = read_record(raw, config, faults);
  const auto tokenizer = test::small_nq_tokenizer();
  nq::Windows windows = cut_windows(record, tokenize(record, *tokenizer, config), label_of(record, config), config);
  return {0, 0, std::move(windows.examples.at(0))};
}

}  // namespace

TEST_CASE("the labels of the feed equal the reference's masks and ids", "[tasks][nq][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_nq_feature_files()) {
    const test::GoldenFile file(path);
    for (const std::string& name : file.groups()) {
      CAPTURE(path, name);
      REQUIRE_FALSE(file.groups(name + "/derived").empty());
      const test::GoldenNqConfig group(file, name);
      const std::vector<data::Example> windows = group.windows();
      EtcConfig model = small_model();
      model.local_radius = file.int_attribute(name + "/derived", "local_radius");
      model.relative_pos_max_distance = file.int_attribute(name + "/derived", "relative_pos_max_distance");
      model.relative_vocab_size = 2 * model.relative_pos_max_distance + 4;
      for (const std::string& index : file.groups(name + "/derived")) {
        const std::string at = name + "/derived/" + index;
        CAPTURE(at);
        const auto row = static_cast<std::size_t>(file.int_attribute(at, "window_row"));
        const test::PaddedInputs padded = padded_inputs(file, name, row);
        CHECK(file.read<std::int64_t>(at + "/long_example_ids").values == padded.long_ids);
        CHECK(file.read<std::int64_t>(at + "/global_example_ids").values == padded.global_ids);
        test::require_masks_and_ids(file, at, padded);
        const std::vector<data::LoadedExample> examples = {{0, 0, windows.at(row)}};
        const auto golden = [&](const std::string& array) { return file.read<std::uint8_t>(at + "/" + array); };
        const EncoderInput soft = nq::feed(examples, model, true, "here");
        const std::int64_t L = soft.long_tokens(), G = soft.global_tokens(), W = 2 * model.local_radius + 1;
        const GoldenBytes l2l_ids = golden("l2l_relative_att_ids"), g2g_ids = golden("g2g_relative_att_ids");
        const GoldenBytes l2g_ids = golden("l2g_relative_att_ids"), g2l_ids = golden("g2l_relative_att_ids");
        CHECK(differences(soft.labels.l2l, L, W, golden("l2l_att_mask"), l2l_ids) == 0);
        CHECK(differences(soft.labels.g2g, G, G, golden("g2g_att_mask"), g2g_ids) == 0);
        CHECK(differences(soft.labels.l2g, L, G, golden("l2g_att_mask"), l2g_ids) == 0);
        CHECK(differences(soft.labels.g2l, G, L, golden("g2l_att_mask"), g2l_ids) == 0);
        EtcConfig hard_model = model;
        hard_model.use_hard_g2l_mask = hard_model.use_hard_l2g_mask = true;
        const EncoderInput hard = nq::feed(examples, hard_model, true, "here");
        CHECK(differences(hard.labels.l2g, L, G, golden("l2g_att_mask_hard"), l2g_ids) == 0);
        CHECK(differences(hard.labels.g2l, G, L, golden("g2l_att_mask_hard"), g2l_ids) == 0);
        ++cases;
      }
      file.require_all_read(name + "/derived");
    }
  }
  if (cases == 0) return test::skip("no golden Natural Questions model inputs");
  std::printf("nq feed: %lld windows, all masks and ids equal\n", static_cast<long long>(cases));
}

TEST_CASE("a batch of windows is its windows one after the other", "[tasks][nq]") {
  const data::LoadedExample window = worked_window();
  const std::vector<data::LoadedExample> one = {window}, two = {window, window};
  const EncoderInput alone = nq::feed(one, small_model(), true, "here"),
                     both = nq::feed(two, small_model(), true, "here");
  CHECK(both.long_offsets == Numbers{0, 16, 32});
  CHECK(both.global_offsets == Numbers{0, 7, 14});
  CHECK(both.segment_ids.empty());  // all long tokens 1, all global tokens 0
  for (std::int64_t i = 0; i < alone.labels.l2g.size(); ++i) {
    REQUIRE(both.labels.l2g[i] == alone.labels.l2g[i]);
    REQUIRE(both.labels.l2g[alone.labels.l2g.size() + i] == alone.labels.l2g[i]);
  }
  const EncoderInput local = nq::feed(one, small_model(), false, "here");
  for (const std::uint8_t label : local.labels.l2g) REQUIRE(label == kMasked);
  REQUIRE(local.labels.l2l.size() == alone.labels.l2l.size());
  // A question piece belongs to its own global token, the paragraph's pieces to the paragraph's.
  const auto label = [&](std::int64_t i, std::int64_t g) { return static_cast<int>(alone.labels.l2g[i * 7 + g]); };
  CHECK(label(1, 1) == 6);
  CHECK(label(1, 2) == 5);
  CHECK(label(4, 4) == 6);
  CHECK(label(10, 4) == 6);
  CHECK(label(11, 5) == 6);
}

TEST_CASE("windows that contradict themselves or the model are refused by file, window and feature", "[tasks][nq]") {
  const data::Example good = worked_window().features;
  const auto message = [&](data::Example example) -> std::string {
    EtcConfig model = small_model();
    model.vocab_size = 200;
    try {
      nq::check_example(example, model, "dev.h5");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(good).empty());
  const auto damaged = [&](const char* feature, std::size_t position, std::int64_t value) {
    data::Example example = good;
    std::get<Numbers>(example.at(feature))[position] = value;
    return message(example);
  };
  CHECK_THAT(damaged("token_ids", 3, 200), Catch::Contains("dev.h5: example -4711000000000000123#0: token_ids"));
  CHECK_THAT(damaged("global_token_ids", 0, -1), Catch::Contains("global_token_ids"));
  CHECK_THAT(damaged("sentence_ids", 5, -1), Catch::Contains("sentence_ids"));
  CHECK_THAT(damaged("token_pos", 5, -2), Catch::Contains("token_pos"));
  for (const char* label : {"sa_start", "sa_end", "la_start", "la_end", "answer_type"}) {
    data::Example example = good;
    example[label] = std::int64_t{16};
    CHECK_THAT(message(example), Catch::Contains(label));
  }
  data::Example shorter = good;
  std::get<Numbers>(shorter["sentence_ids"]).pop_back();
  CHECK_THAT(message(shorter), Catch::Contains("sentence_ids: expected 16 numbers"));
  // Block numbers beyond the last global token are accepted.
  CHECK(damaged("sentence_ids", 5, 15).empty());
}
