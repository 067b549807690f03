// The worked page, chosen key phrases, and the faults of bad pages.
#include "tasks/openkp/prepare.h"

#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "tasks/openkp/phrases.h"
#include "tasks/openkp/schema.h"
#include "tasks/openkp/visual.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::openkp;
using test::element;
using test::worked_elements;
using test::worked_page;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

PrepareConfig config(std::int64_t L = 16, std::int64_t G = 4) {
  PrepareConfig c;
  c.long_max_length = L;
  c.global_max_length = G;
  c.first_occurrence = true;
  return c;
}

prepare::Converted converted(const Json& page, const PrepareConfig& c = config()) {
  return OpenkpPreparation(c, test::small_vocabulary()).convert(test::raw_record(json_line(page)));
}

Numbers numbers(const data::Example& example, const char* name) {
  return std::get<Numbers>(example.at(name));
}

// Faults of the worked page with one member of element 0 or 1 changed.
Words faults_with(std::size_t index, const char* key, const Json& value, const PrepareConfig& c = config()) {
  Json elements = worked_elements();
  elements[index][key] = value;
  return test::fault_words(converted(worked_page(elements, test::kWorkedPhrases), c).faults);
}

}  // namespace

TEST_CASE("the worked page gives the worked features", "[tasks][openkp]") {
  const auto result = converted(worked_page(worked_elements(), test::kWorkedPhrases));
  CHECK(test::fault_words(result.faults) ==
        Words{"warn key_phrase_empty KeyPhrases[3]", "warn key_phrase_crosses_vdom KeyPhrases"});
  const data::Example& e = result.examples.at(0);
  CHECK(numbers(e, "long_token_ids") == Numbers{11, 12, 13, 14, 15, 16, 17, 11, 12, 13, 14, 18, 19});
  CHECK(numbers(e, "long_word_idx") == Numbers{0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9});
  CHECK(numbers(e, "long_vdom_idx") == Numbers{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2});
  CHECK(std::get<std::int64_t>(e.at("num_words")) == 10);
  CHECK(numbers(e, "label_start_idx") == Numbers{0, 4});
  CHECK(numbers(e, "label_phrase_len") == Numbers{3, 1});
  CHECK(numbers(e, "indicators") == Numbers{37, 80, 64});
  CHECK(numbers(e, "font_ids") == Numbers{18, 9, 9});
  CHECK(numbers(e, "parent_font_ids") == Numbers{18, 9, 9});
  CHECK(std::get<std::vector<float>>(e.at("y_coords")) == std::vector<float>{120, 180, 180});
  CHECK(std::get<std::vector<float>>(e.at("widths")) == std::vector<float>{600, 310, 80});
  CHECK(std::get<Words>(e.at("key_phrases")) == Words{"blue lake trout", "fishing", "trout at"});
  CHECK(numbers(e, "first_occurrence") == Numbers{0, 1, 2, 3, 4, 0, 1, 2, 8, 9, 0, 1, 2, 3, 4, 0, 1,
                                                  7, 8, 9, 0, 1, 2, 3, 4, 0, 6, 7, 8, 9, 0, 1, 2, 3,
                                                  4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("elements are kept whole until one does not fit", "[tasks][openkp]") {
  const Json page = worked_page(worked_elements(), test::kWorkedPhrases);
  const auto nine = converted(page, config(9));
  const data::Example& e = nine.examples.at(0);
  CHECK(numbers(e, "long_token_ids").size() == 5);
  CHECK(std::get<std::int64_t>(e.at("num_words")) == 4);
  CHECK(std::get<std::int64_t>(e.at("num_words_text")) == 10);
  CHECK(numbers(e, "label_start_idx") == Numbers{0});
  CHECK(numbers(e, "font_ids").size() == 1);
  CHECK(test::fault_words(nine.faults).back() == "warn truncated VDOM");
  CHECK(test::has_fault(converted(page, config(4)).faults, data::Severity::reject, "nothing_kept"));
  CHECK(numbers(converted(page, config(16, 2)).examples.at(0), "font_ids").size() == 2);
}

TEST_CASE("with fixed blocks the text itself is cut, and phrases are found across elements", "[tasks][openkp]") {
  PrepareConfig c = config();
  c.fixed_block_len = 5;
  const data::Example e = converted(worked_page(worked_elements(), test::kWorkedPhrases), c).examples.at(0);
  CHECK(numbers(e, "long_vdom_idx") == Numbers{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2});
  CHECK(numbers(e, "label_start_idx") == Numbers{0, 4, 7});
  CHECK(numbers(e, "label_phrase_len") == Numbers{3, 1, 2});
  CHECK(numbers(e, "font_ids").empty());
  c.global_max_length = 2;
  CHECK(numbers(converted(worked_page(worked_elements(), test::kWorkedPhrases), c).examples.at(0), "long_token_ids")
            .size() == 9);
}

TEST_CASE("data sets with fixed blocks hold no features of elements", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  const auto stored = [&](std::int64_t fixed_block_len) {
    PrepareConfig c = config();
    c.fixed_block_len = fixed_block_len;
    const OpenkpPreparation preparation(c, test::small_vocabulary());
    const data::Example example =
        preparation.convert(test::raw_record(json_line(worked_page(worked_elements(), test::kWorkedPhrases))))
            .examples.at(0);
    data::DatasetInfo info;
    info.task = "openkp";
    info.preprocess_config = preparation.preprocess_config();
    data::DatasetWriter writer(folder / "a.h5", openkp::schema(), info);
    writer.append(example);
    writer.finish({}, 1, 0, 0);
    CHECK(data::DatasetReader({folder / "a.h5"}, openkp::schema()).read(0) == example);
    const test::GoldenFile file(folder / "a.h5");
    std::vector<bool> has;
    for (const char* name : {"x_coords", "parent_heights", "font_ids", "parent_font_ids", "indicators"})
      has.push_back(file.has(std::string("examples/") + name));
    return has;
  };
  CHECK(stored(0) == std::vector<bool>(5, true));
  CHECK(stored(5) == std::vector<bool>(5, false));
}

TEST_CASE("a key phrase that occurs several times is learnt at its first place only", "[tasks][openkp]") {
  // "lake" is word 1 of the heading and word 6 of the text; "LAKE" is the same phrase.
  const Json page = worked_page(worked_elements(), {{"lake"}, {"LAKE"}, {"lake", "trout"}});
  const data::Example e = converted(page).examples.at(0);
  CHECK(std::get<Words>(e.at("key_phrases")) == Words{"lake", "lake trout"});
  CHECK(numbers(e, "label_start_idx") == Numbers{1, 1});
  CHECK(numbers(e, "label_phrase_len") == Numbers{1, 2});
}

TEST_CASE("labels are in the order of the key phrases with a space on both sides", "[tasks][openkp]") {
  // "\x01" is below the space, so "blue\x01" comes before "blue", but "blue\x01" is the longer one.
  Json elements = worked_elements();
  elements[0]["text"] = "Blue Lake Blue\x01 Guide";
  Json page = worked_page(elements, {{"blue"}, {"blue\x01"}});
  page["text"] = "Blue Lake Blue\x01 Guide Fishing blue lake trout at dawn";
  PrepareConfig c = config();
  const data::Example e = converted(page, c).examples.at(0);
  CHECK(numbers(e, "label_start_idx") == Numbers{2, 0});
  CHECK(std::get<Words>(e.at("key_phrases")) == Words{"blue", "blue\x01"});
  c.fixed_block_len = 5;
  CHECK(numbers(converted(page, c).examples.at(0), "label_start_idx") == Numbers{0, 2});
}

TEST_CASE("unlabelled pages are rejected where labels are required", "[tasks][openkp]") {
  const Json page = worked_page(worked_elements(), nullptr);
  CHECK(test::fault_words(converted(page).faults) == Words{"reject missing_field KeyPhrases"});
  PrepareConfig c = config();
  c.labels_required = false;
  const auto result = converted(page, c);
  CHECK(test::fault_words(result.faults).empty());
  CHECK(numbers(result.examples.at(0), "label_start_idx").empty());
}

TEST_CASE("font sizes fall into their classes, rounded half to even", "[tasks][openkp]") {
  const std::vector<std::pair<double, std::int64_t>> expected = {
      {-3, 0},   {0, 0},    {0.5, 0}, {1, 1},   {8, 1},     {8.5, 1}, {9, 2},   {12, 5},
      {12.5, 5}, {13.5, 7}, {16, 9},  {20, 13}, {24, 17},   {25, 18}, {28, 18}, {29, 18},
      {30, 19},  {39, 20},  {44, 21}, {49, 22}, {49.4, 22}, {50, 23}, {400, 23}};
  for (const auto& [size, id] : expected) {
    INFO(size);
    CHECK(font_id(size) == id);
  }
}

TEST_CASE("phrases are valid where they occur as whole words", "[tasks][openkp]") {
  CHECK(phrase_text({" New ", "", "York"}) == "New York");
  CHECK(occurs_in_text("Lake", "blue lake trout"));
  CHECK(!occurs_in_text("lak", "blue lake trout"));
  CHECK(occurs_in_text("lake", "lakes lake"));
  CHECK(!occurs_in_text("", "a b"));
  CHECK(occurs_in_text("", "a  b"));
  CHECK(occurs_in_text("", "a "));
  CHECK(occurs_in_text("", ""));
  // The end of a match is measured before lower-casing, which makes İ two characters.
  CHECK(!occurs_in_text("İ", "i\u0307 x"));
}

TEST_CASE("numbers that are not finite are rejected with their element, though they are no JSON", "[tasks][openkp]") {
  const auto words = [](const char* number, const std::string& from = "180.0,18.0") {
    Json page = worked_page(worked_elements(), test::kWorkedPhrases);
    std::string vdom = page["VDOM"];
    vdom.replace(vdom.find(from), from.find(','), number);
    page["VDOM"] = vdom;
    return test::fault_words(converted(page).faults);
  };
  REQUIRE(words("180.0").front() == "warn key_phrase_empty KeyPhrases[3]");
  for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999", "-1e999", "99999999999999999999"}) {
    CAPTURE(number);
    CHECK(words(number) == Words{"reject feature_not_finite VDOM[1].feature[2]"});
  }
  CHECK(words("nan").front() == "reject vdom_syntax VDOM");
  CHECK(words("NaN,").front() == "reject vdom_syntax VDOM");  // a fault remains beside it
  CHECK(words("\"NaN\"") == Words{"reject wrong_type VDOM[1].feature[2]"});
  const std::string start = "4,\"text\"";
  REQUIRE(json_line(worked_elements()).find(start) != std::string::npos);
  CHECK(words("1e999", start).front() == "reject wrong_type VDOM[1].start_idx");
}

TEST_CASE("bad elements are rejected with element and number", "[tasks][openkp]") {
  const auto only = [](const char* words) { return Words{words}; };
  Json feature = worked_elements()[1]["feature"];
  const auto with = [&](std::size_t i, const Json& value) {
    Json changed = feature;
    changed[i] = value;
    return changed;
  };
  CHECK(faults_with(1, "feature", with(4, 0.5)) == only("reject feature_flag VDOM[1].feature[4]"));
  CHECK(faults_with(1, "feature", with(8, 1e300)) == only("reject feature_not_finite VDOM[1].feature[8]"));
  CHECK(faults_with(1, "feature", with(8, 1e10)) == only("reject feature_not_finite VDOM[1].feature[8]"));
  CHECK(faults_with(1, "feature", with(12, 1e39)) == only("reject feature_not_finite VDOM[1].feature[12]"));
  CHECK(faults_with(1, "feature", with(8, "16")) == only("reject wrong_type VDOM[1].feature[8]"));
  CHECK(faults_with(1, "feature", with(0, 44)).front() == "warn feature_not_float VDOM[1].feature[0]");
  CHECK(faults_with(1, "feature", with(5, 0)).front() == "warn key_phrase_empty KeyPhrases[3]");
  CHECK(faults_with(1, "feature", Json::array({1.0})) == only("reject feature_count VDOM[1].feature"));
  CHECK(faults_with(1, "Id", 8).front() == "warn vdom_id_mixed VDOM[1].Id");
  CHECK(faults_with(1, "Id", "8") == only("reject wrong_type VDOM[1].Id"));
  CHECK(faults_with(1, "start_idx", 5) ==
        Words{"reject vdom_gap VDOM[1].start_idx", "reject vdom_gap VDOM[2].start_idx"});
  CHECK(faults_with(2, "end_idx", 11) == only("reject vdom_gap VDOM[2].end_idx"));
  CHECK(faults_with(1, "text", "Fishing blue lake") == only("reject vdom_text_mismatch VDOM[1].text"));
  CHECK(faults_with(1, "text", nullptr) ==
        Words{"reject wrong_type VDOM[1].text", "reject vdom_gap VDOM[2].start_idx"});
}

TEST_CASE("coordinates of any size that single precision holds are kept; the model clips them", "[tasks][openkp]") {
  Json elements = worked_elements();
  elements[1]["feature"][2] = 1e10;
  elements[1]["feature"][10] = -3e38;
  const auto result = converted(worked_page(elements, test::kWorkedPhrases));
  REQUIRE(result.examples.size() == 1);
  CHECK(std::get<std::vector<float>>(result.examples[0].at("y_coords"))[1] == 1e10f);
  CHECK(std::get<std::vector<float>>(result.examples[0].at("parent_x_coords"))[1] == -3e38f);
  const std::vector<float> dense = dense_features(result.examples[0]);
  CHECK(dense[kDenseFeatures + 1] == 1);
  CHECK(dense[kDenseFeatures + 4] == -1);
}

TEST_CASE("behind a damaged first element equal ids are equal", "[tasks][openkp]") {
  CHECK(faults_with(0, "text", nullptr) == Words{"reject wrong_type VDOM[0].text", "reject vdom_gap VDOM[1].start_idx",
                                                 "reject vdom_gap VDOM[2].start_idx"});
  CHECK(faults_with(0, "Id", "8") == Words{"reject wrong_type VDOM[0].Id"});
}

TEST_CASE("bad pages give the codes of the specification", "[tasks][openkp]") {
  Json page = worked_page(worked_elements(), test::kWorkedPhrases);
  const auto words = [&](const char* key, const Json& value) {
    Json changed = page;
    if (value.is_discarded()) {
      changed.erase(key);
    } else {
      changed[key] = value;
    }
    return test::fault_words(converted(changed).faults).front();
  };
  const Json absent(Json::value_t::discarded);
  CHECK(words("url", absent) == "reject missing_field url");
  CHECK(words("url", std::string(1001, 'x')) == "reject url_too_long url");
  CHECK(words("VDOM", absent) == "reject missing_field VDOM");
  CHECK(words("VDOM", "[{") == "reject vdom_syntax VDOM");
  CHECK(words("VDOM", "[]") == "reject vdom_empty VDOM");
  CHECK(words("VDOM", "{}") == "reject wrong_type VDOM");
  CHECK(words("VDOM", 5) == "reject wrong_type VDOM");
  CHECK(words("VDOM", worked_elements()) == "warn wrong_type VDOM");
  CHECK(words("VDOM", json_line(Json({worked_elements()[0]}))) == "reject vdom_gap VDOM[0].end_idx");
  CHECK(words("KeyPhrases", "[[\"x\"]]") == "reject wrong_type KeyPhrases");
  CHECK(words("KeyPhrases", Json::array({"x"})) == "reject wrong_type KeyPhrases[0]");
  CHECK(words("KeyPhrases", {{5}}) == "reject wrong_type KeyPhrases[0][0]");
  CHECK(words("KeyPhrases", {{"nowhere"}}) == "warn key_phrase_not_in_text KeyPhrases[0]");
  CHECK(test::has_fault(converted(worked_page(worked_elements(), {{"nowhere"}})).faults, data::Severity::reject,
                        "key_phrase_none"));
  CHECK(words("KeyPhrases", Json::array({Json::array({"trout", "at"})})) == "reject no_label_located KeyPhrases");
  CHECK(words("KeyPhrases", {{"blue"}, {"lake"}, {"trout"}, {"at"}}) == "warn key_phrase_excess KeyPhrases[3]");
}

TEST_CASE("an element without words shifts all behind it and is rejected", "[tasks][openkp]") {
  Json elements = worked_elements();
  elements.insert(elements.begin() + 1, element("", 4, 4, worked_elements()[1]["feature"], Json::array()));
  CHECK(test::fault_words(converted(worked_page(elements, test::kWorkedPhrases)).faults) ==
        Words{"reject vdom_word_count VDOM[1].text"});
}

TEST_CASE("labels longer than the model's phrases are warned about, alone they reject the page", "[tasks][openkp]") {
  PrepareConfig c = config();
  c.kp_max_length = 2;
  CHECK(test::has_fault(converted(worked_page(worked_elements(), test::kWorkedPhrases), c).faults, data::Severity::warn,
                        "key_phrase_too_long"));
  const Json page = worked_page(worked_elements(), {{"Blue", "Lake", "Trout"}});
  CHECK(test::has_fault(converted(page, c).faults, data::Severity::reject, "key_phrase_too_long"));
  c.parity = Parity::reference;
  CHECK(converted(page, c).examples.size() == 1);
}
