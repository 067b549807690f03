// Features → encoder input: labels against the reference's masks and ids, and what is refused.
#include "tasks/openkp/feed.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/openkp/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/small_config.h"
#include "tests/tasks/golden_inputs.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/padded_inputs.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

data::Example worked_example() {
  PrepareConfig config;
  config.long_max_length = 16;
  config.global_max_length = 4;
  return OpenkpPreparation(config, test::small_vocabulary())
      .convert(test::raw_record(json_line(test::worked_page(test::worked_elements(), test::kWorkedPhrases))))
      .examples.at(0);
}

EtcConfig model() {
  return test::small_config({.vocabulary = 32, .radius = 2});
}

std::string message_of(const data::Example& example) {
  try {
    check_example(example, model(), "dev.h5");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Number of differences in the part of each l2l row's window that lies in the page; beyond it, the reference has
// padding.
std::int64_t window_differences(const Buffer<std::uint8_t>& labels, std::int64_t length, std::int64_t radius,
                                const test::Matrix& mask, const test::Matrix& ids) {
  const std::int64_t W = 2 * radius + 1;
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t w = std::max<std::int64_t>(0, radius - i); w < std::min(W, length - i + radius); ++w) {
      if (labels[i * W + w] != (mask.at(i, w) == 1 ? ids.at(i, w) : sparse::kMasked)) ++different;
    }
  }
  return different;
}

}  // namespace

TEST_CASE("a page is its tokens and one global token per element", "[tasks][openkp]") {
  data::LoadedExample loaded;
  loaded.features = worked_example();
  const std::vector<data::LoadedExample> two = {loaded, loaded};
  const EncoderInput input = feed(two, model(), true, "dev.h5");
  CHECK(input.long_offsets == Numbers{0, 13, 26});
  CHECK(input.global_offsets == Numbers{0, 3, 6});
  CHECK(input.global_token_ids == std::vector<std::int32_t>(6, 1));
  CHECK(input.segment_ids.empty());  // all 1
  CHECK(*tokens_of_elements(two) == Numbers{0, 5, 11, 13, 18, 24, 26});
  CHECK(*tokens_of_words(two) == Numbers{0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15, 17, 18, 20, 21, 22, 24, 25, 26});
  CHECK(words_of_pages(two)->offsets == Numbers{0, 10, 20});
}

TEST_CASE("the labels of a page equal the reference's masks and ids", "[tasks][openkp][golden]") {
  const auto files = test::golden_named("openkp_features", ".h5");
  if (files.empty()) return test::skip("no golden OpenKP features");
  std::int64_t cases = 0;
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      if (group == "dedup") continue;
      REQUIRE_FALSE(file.groups(group + "/derived").empty());
      for (const std::string& index : file.groups(group + "/derived")) {
        const std::string derived = group + "/derived/" + index;
        CAPTURE(path.filename().string(), derived);
        const auto row = static_cast<std::size_t>(file.int_attribute(derived, "record_row"));
        const auto whole = [&](const char* feature) {
          return file.read_ragged<std::int64_t>(group + "/" + feature).at(row);
        };
        test::require_masks_and_ids(file, derived,
                                    {whole("long_input_mask"), whole("global_input_mask"), whole("long_vdom_idx"),
                                     file.int_attribute(group + "/derived", "local_radius"),
                                     file.int_attribute(group + "/derived", "relative_pos_max_distance")});
        const auto real = [&](const char* feature, const char* mask) {
          Numbers values = whole(feature);
          const Numbers ones = whole(mask);
          values.resize(static_cast<std::size_t>(std::count(ones.begin(), ones.end(), 1)));
          return values;
        };
        data::LoadedExample loaded;
        data::Example& e = loaded.features;
        e["id"] = std::string("page");
        for (const char* feature : {"long_token_ids", "long_word_idx", "long_vdom_idx"}) {
          e[feature] = real(feature, "long_input_mask");
        }
        const std::int64_t L = std::ssize(std::get<Numbers>(e["long_token_ids"]));
        const std::int64_t G = std::ssize(real("global_token_ids", "global_input_mask"));
        e["num_words"] = std::ssize(real("long_word_input_mask", "long_word_input_mask"));
        e["label_start_idx"] = e["label_phrase_len"] = Numbers();
        e["font_ids"] = e["parent_font_ids"] = e["indicators"] = Numbers(static_cast<std::size_t>(G), 0);
        for (const char* feature : {"x_coords", "y_coords", "widths", "heights", "parent_x_coords", "parent_y_coords",
                                    "parent_widths", "parent_heights"}) {
          e[feature] = Floats(static_cast<std::size_t>(G), 0);
        }
        EtcConfig config = test::golden_label_model(file, group);
        const auto golden = [&](const std::string& name) {
          return test::Matrix{file.read<std::uint8_t>(derived + "/" + name)};
        };
        const std::vector<data::LoadedExample> one = {loaded};
        for (const bool hard : {false, true}) {
          config.use_hard_g2l_mask = config.use_hard_l2g_mask = hard;
          const EncoderInput input = feed(one, config, true, "golden");
          const std::string mask = hard ? "_att_mask_hard" : "_att_mask";
          const auto check = [&](const std::string& type, const Buffer<std::uint8_t>& labels, std::int64_t rows,
                                 std::int64_t cols, const std::string& masked) {
            CAPTURE(type, hard);
            CHECK(test::differences(labels, rows, cols, golden(type + masked), false,
                                    golden(type + "_relative_att_ids"), false) == 0);
          };
          check("g2g", input.labels.g2g, G, G, "_att_mask");
          check("l2g", input.labels.l2g, L, G, mask);
          check("g2l", input.labels.g2l, G, L, mask);
          CHECK(window_differences(input.labels.l2l, L, config.local_radius, golden("l2l_att_mask"),
                                   golden("l2l_relative_att_ids")) == 0);
        }
        ++cases;
      }
      file.require_all_read(group + "/derived", {{"*/global_dense_features", "compared by the test of features"},
                                                 {"*/global_indicator_cross", "compared by the test of features"}});
    }
  }
  CHECK(cases > 0);
  fmt::print("openkp labels: {} pages\n", cases);
}

TEST_CASE("features that contradict each other or the model are refused with page, feature and position",
          "[tasks][openkp]") {
  const data::Example good = worked_example();
  REQUIRE(message_of(good).empty());
  const auto with = [&](const char* name, data::FeatureValue value) {
    data::Example changed = good;
    changed[name] = std::move(value);
    return message_of(changed);
  };
  const std::string start = "feed: dev.h5: example http://ex.org/a: ";
  const std::string end = " (the file is damaged; run `etc prepare` again)";
  CHECK(
      with("long_token_ids", Numbers(13, 32)) ==
      start +
          "long_token_ids: expected token ids below vocab_size=32 of the model, got 32 at position 0: the data have a "
          "larger vocabulary than the model (prepare them with the model's vocabulary, or take a model with more "
          "rows: --vocab-size)");
  CHECK(with("long_token_ids", Numbers(13, -1)) ==
        start + "long_token_ids: expected 0 … 31 at position 0, got -1" + end);
  CHECK(with("long_token_ids", Numbers()) == start + "long_token_ids: expected at least one token, got none" + end);
  CHECK(with("long_word_idx", Numbers(12, 0)) ==
        start + "long_word_idx: expected 13 numbers like the others of its side, got 12" + end);
  CHECK(with("long_word_idx", Numbers{0, 1, 2, 1, 3, 4, 4, 5, 6, 7, 7, 8, 9}) ==
        start + "long_word_idx: expected non-decreasing, got 1 after 2 at position 3" + end);
  CHECK(with("long_word_idx", Numbers(13, 10)) == start + "long_word_idx: expected 0 … 9 at position 0, got 10" + end);
  CHECK(with("long_vdom_idx", Numbers(13, 3)) == start + "long_vdom_idx: expected 0 … 2 at position 0, got 3" + end);
  CHECK(with("num_words", std::int64_t{0}) == start + "num_words: expected at least 1, got 0" + end);
  CHECK(with("font_ids", Numbers{0, 24, 0}) == start + "font_ids: expected 0 … 23 at position 1, got 24" + end);
  CHECK(with("indicators", Numbers{0}) ==
        start + "indicators: expected 3 numbers like the others of its side, got 1" + end);
  CHECK(with("widths", Floats{0, 1, INFINITY}) ==
        start + "widths: expected finite numbers, got inf at position 2" + end);
  CHECK(with("label_phrase_len", Numbers{3}) ==
        start + "label_phrase_len: expected 2 numbers like the others of its side, got 1" + end);
  CHECK(with("label_start_idx", Numbers{0, 10}) ==
        start + "label_start_idx: expected 1 words from word 10 to lie within the 10 words of the page" + end);
  CHECK(with("num_words", Numbers{1}) == "feed: feature num_words: unexpected kind");
}
