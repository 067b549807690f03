// The first pass and the features of all golden pages against the published preparation.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/text/unicode.h"
#include "tasks/openkp/phrases.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/openkp/visual.h"
#include "tasks/prepare/choice.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/golden_pages.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/padded.h"

using namespace etc;
using namespace etc::openkp;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;
using Names = std::set<std::string>;

// The features of elements and the table of first occurrences, which are empty with fixed blocks.
Names features_of_elements() {
  Names names = {"global_font_ids", "global_parent_font_ids", "long_word_first_occurrence"};
  for (const char* name : kCoordinates) names.insert(std::string("global_") + name);
  for (const auto& [name, bit] : test::indicator_bits()) names.insert("global_" + name + "_indicator");
  return names;
}

// All groups of a configuration.
Names groups_of_configuration() {
  Names names = {"derived",          "record",          "global_input_mask",    "global_token_ids",
                 "label_phrase_len", "label_start_idx", "long_input_mask",      "long_token_ids",
                 "long_vdom_idx",    "long_word_idx",   "long_word_input_mask", "url_code_points"};
  names.merge(features_of_elements());
  return names;
}

// Of coordinates scaled to [-1, 1] in float32.
constexpr float kDenseTolerance = 2e-7f;

// One configuration of a golden file, compared row by row with the layout that this preparation computes.
class GoldenGroup {
 public:
  GoldenGroup(const test::GoldenFile& file, const std::string& name, const PrepareConfig& config) : config_(config) {
    const auto groups = file.groups(name);
    REQUIRE(Names(groups.begin(), groups.end()) == groups_of_configuration());
    for (const std::string& feature : groups) {
      if (feature == "derived" || feature == "record") continue;
      const std::string path = name + "/" + feature;
      const bool real = feature.ends_with("coords") || feature.ends_with("widths") || feature.ends_with("heights");
      CAPTURE(feature);
      if (real) {
        test::require_one_length(reals_[feature] = file.read_ragged<float>(path));
      } else {
        test::require_one_length(numbers_[feature] = file.read_ragged<std::int64_t>(path));
      }
    }
    if (config.fixed_block_len > 0) return;
    dense_ = file.read<float>(name + "/derived/global_dense_features");
    crosses_ = file.read<std::int32_t>(name + "/derived/global_indicator_cross");
  }

  void require_equal(std::size_t row, const Page& page, const Features& f, const data::Tokenizer& tokenizer) {
    const Numbers ones(static_cast<std::size_t>(f.num_globals), 1);
    const auto url = data::to_code_points(page.url);
    require(row, "url_code_points", Numbers(url.begin(), url.end()), -1);
    require(row, "long_token_ids", with_ties_of(row, f, tokenizer), 0);
    require(row, "long_word_idx", f.long_word_idx, 0);
    require(row, "long_vdom_idx", f.long_vdom_idx, 0);
    require(row, "long_input_mask", Numbers(f.long_token_ids.size(), 1), 0);
    require(row, "long_word_input_mask", Numbers(static_cast<std::size_t>(f.num_words), 1), 0);
    require(row, "global_token_ids", ones, 1);
    require(row, "global_input_mask", ones, 0);
    Numbers starts, lengths;
    for (const PhraseLabel& label : f.labels) {
      starts.push_back(label.start);
      lengths.push_back(label.length);
    }
    require(row, "label_start_idx", starts, -1);
    require(row, "label_phrase_len", lengths, -1);
    if (config_.fixed_block_len > 0) return require_no_elements(row);
    require_first_occurrences(row, f);
    const data::Example visual = visual_features(page, f.num_globals);
    require_visual(row, visual);
    require_derived(row, visual);
  }

  // Words that the two SentencePiece libraries split differently, as "page row, word: pieces / golden pieces".
  const std::vector<std::string>& ties() const { return ties_; }

 private:
  // A unigram model scores a segmentation by the sum of its pieces' scores, so two orders of the same pieces tie and
  // rounding decides: the golden file's SentencePiece 0.2.3 chooses another order than 0.1.97 … 0.2.1. Where a word's
  // golden tokens are ours in another order and spell the same text, the golden tokens are used and the word is listed.
  Numbers with_ties_of(std::size_t row, const Features& f, const data::Tokenizer& tokenizer) {
    const Numbers& golden = numbers_.at("long_token_ids")[row];
    Numbers ids = f.long_token_ids;
    if (std::string(tokenizer.kind()) != "sentencepiece" || golden.size() < ids.size()) return ids;
    for (std::size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
      while (end < ids.size() && f.long_word_idx[end] == f.long_word_idx[begin]) ++end;
      const auto at = [&](const Numbers& all, std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
      const Numbers ours(at(ids, begin), at(ids, end)), theirs(at(golden, begin), at(golden, end));
      if (ours == theirs || !std::is_permutation(ours.begin(), ours.end(), theirs.begin())) continue;
      if (spelled(ours, tokenizer) != spelled(theirs, tokenizer)) continue;
      std::copy(theirs.begin(), theirs.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin));
      ties_.push_back(fmt::format("row {}, word {}: {} / {}", row, f.long_word_idx[begin], fmt::join(ours, " "),
                                  fmt::join(theirs, " ")));
    }
    return ids;
  }

  static std::string spelled(const Numbers& ids, const data::Tokenizer& tokenizer) {
    std::string text;
    for (const std::int64_t id : ids) text += tokenizer.piece(static_cast<std::int32_t>(id));
    return text;
  }

  void require(std::size_t row, const std::string& name, const Numbers& ours, std::int64_t padding) const {
    CAPTURE(name);
    test::require_padded(numbers_.at(name)[row], ours, padding);
  }

  void require_no_elements(std::size_t row) const {
    for (const std::string& name : features_of_elements()) {
      CAPTURE(name);
      REQUIRE((reals_.contains(name) ? reals_.at(name)[row].empty() : numbers_.at(name)[row].empty()));
    }
  }

  // What the model makes of the visual features, padding elements of zeros included.
  void require_derived(std::size_t row, data::Example visual) const {
    const auto G = static_cast<std::size_t>(config_.global_max_length);
    for (auto& [name, value] : visual) {
      if (auto* reals = std::get_if<std::vector<float>>(&value)) reals->resize(G, 0);
      if (auto* numbers = std::get_if<Numbers>(&value)) numbers->resize(G, 0);
    }
    const std::size_t size = G * kDenseFeatures;
    REQUIRE(dense_.values.size() == size * numbers_.at("label_start_idx").size());
    const auto dense = dense_features(visual);
    REQUIRE(dense.size() == size);
    for (std::size_t i = 0; i < size; ++i) {
      const float golden = dense_.values[row * size + i];
      CAPTURE(i, dense[i], golden);
      if (!(std::abs(dense[i] - golden) <= kDenseTolerance)) FAIL("another dense feature");
    }
    const auto crosses = indicator_crosses(visual);
    REQUIRE(crosses.size() == G);
    REQUIRE(crosses_.values.size() == G * numbers_.at("label_start_idx").size());
    REQUIRE(std::equal(crosses.begin(), crosses.end(), crosses_.values.begin() + static_cast<std::ptrdiff_t>(row * G)));
  }

  // The golden rows are padded to L words; each padding word has its own index.
  void require_first_occurrences(std::size_t row, const Features& f) const {
    const Numbers ours = first_occurrences(f, config_.kp_max_length);
    Numbers padded;
    for (std::int64_t k = 0; k < config_.kp_max_length; ++k) {
      const auto begin = ours.begin() + k * f.num_words;
      padded.insert(padded.end(), begin, begin + f.num_words);
      for (std::int64_t j = f.num_words; j < config_.long_max_length; ++j) padded.push_back(j);
    }
    REQUIRE(padded == numbers_.at("long_word_first_occurrence")[row]);
  }

  void require_visual(std::size_t row, const data::Example& visual) const {
    for (const char* name : {"x_coords", "y_coords", "widths", "heights", "parent_x_coords", "parent_y_coords",
                             "parent_widths", "parent_heights"}) {
      CAPTURE(name);
      test::require_padded(reals_.at(std::string("global_") + name)[row], std::get<std::vector<float>>(visual.at(name)),
                           0.0f);
    }
    require(row, "global_font_ids", std::get<Numbers>(visual.at("font_ids")), 0);
    require(row, "global_parent_font_ids", std::get<Numbers>(visual.at("parent_font_ids")), 0);
    for (const auto& [name, bit] : test::indicator_bits()) {
      Numbers flags;
      for (const std::int64_t set : std::get<Numbers>(visual.at("indicators"))) flags.push_back((set & bit) != 0);
      require(row, "global_" + name + "_indicator", flags, 0);
    }
  }

  const PrepareConfig& config_;
  std::map<std::string, std::vector<Numbers>> numbers_;
  std::map<std::string, std::vector<std::vector<float>>> reals_;
  test::GoldenArray<float> dense_;           // [rows, G, 13]
  test::GoldenArray<std::int32_t> crosses_;  // [rows, G]
  std::vector<std::string> ties_;
};

// Whether all faults that reject a page which the reference converts are intended differences: this preparation is
// stricter there.
bool stricter_than_reference(const prepare::FaultList& faults) {
  for (const data::Fault& row : faults.rows()) {
    if (row.severity != data::Severity::reject) continue;
    const bool ours = row.code.starts_with("vdom_") || row.code == "nothing_kept" || row.code == "bad_character" ||
                      row.code == "no_label_located";
    if (!ours) return false;
  }
  return true;
}

// The Python exception with which the reference fails on a page with this fault; empty: it has no such fault.
std::string exception_of(const data::Fault& fault, bool first_pass) {
  if (fault.code == "vdom_syntax") return "JSONDecodeError";
  if (fault.code == "missing_field") return "KeyError";
  if (fault.code == "wrong_type") return first_pass ? "AttributeError" : "ValueError";
  if (fault.code == "url_too_long" || fault.code == "feature_flag") return "ValueError";
  if (fault.code == "feature_count" || fault.code == "feature_not_float") return "TypeError";
  const bool asserted = fault.code == "no_label_located" || fault.code == "key_phrase_none" ||
                        fault.code == "key_phrase_excess" || fault.code == "nothing_kept" ||
                        fault.code == "too_many_words" || fault.code.starts_with("vdom_");
  return asserted && fault.severity == data::Severity::reject ? "AssertionError" : "";
}

// Requires a page on which the reference fails to be rejected here for the same reason. Integer coordinates stop the
// reference, but are only a warning here.
void require_failure(const prepare::FaultList& faults, const std::string& exception, bool first_pass) {
  CAPTURE(test::fault_words(faults), exception);
  CHECK((faults.rejected() || test::has_fault(faults, data::Severity::warn, "feature_not_float")));
  CHECK(std::any_of(faults.rows().begin(), faults.rows().end(),
                    [&](const data::Fault& fault) { return exception_of(fault, first_pass) == exception; }));
}

std::vector<test::PagePlace> places_of(const Json& list) {
  std::vector<test::PagePlace> places;
  for (const Json& one : list) places.emplace_back(one.at(0), one.at(1));
  return places;
}

// The golden first pass: its input, the pages on which it stops, and what it keeps.
struct FirstPass {
  explicit FirstPass(const test::GoldenFile& file)
      : read(places_of(Json::parse(file.string_attribute("dedup", "records_read")))),
        stops(Json::parse(file.string_attribute("dedup", "stops"))),
        kept(Json::parse(file.read_strings("dedup/kept_json").at(0))) {}

  // All records that a configuration converts or fails on: those kept and the unlabelled ones, or all.
  std::vector<test::PagePlace> input(bool done, test::RawPages& raw) const {
    std::vector<test::PagePlace> all = done ? std::vector<test::PagePlace>() : read;
    for (const Json& one : kept) {
      if (done) all.emplace_back(one.at("file"), one.at("record"));
    }
    for (const test::PagePlace& place : places_of(stops)) {
      if (!done || !raw.record(place).value.contains("KeyPhrases")) all.push_back(place);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<test::PagePlace> read;
  Json stops, kept;
};

// One configuration of a golden file, row by row and failure by failure.
class GroupComparison {
 public:
  GroupComparison(const test::GoldenFile& file, const std::string& name, test::RawPages& raw)
      : raw_(raw),
        pages_(file, name),
        preparation_(pages_.config(), pages_.load_tokenizer()),
        golden_(file, name, pages_.config()),
        urls_(file.read_strings(name + "/record/url")),
        sides_(file.read_strings(name + "/record/text_example_json")),
        failures_(Json::parse(file.read_strings(name + "/failures_json").at(0))) {}

  void run(const FirstPass& first_pass) {
    for (std::size_t row = 0; row < pages_.places().size(); ++row) compare_row(row);
    std::vector<test::PagePlace> seen = pages_.places();
    for (const Json& failure : failures_) {
      CAPTURE(json_line(failure));
      REQUIRE(failure.size() == 4);
      seen.emplace_back(failure.at("file"), failure.at("record"));
      require_failure(preparation_.convert(raw_.record(seen.back())).faults, failure.at("exception"), false);
    }
    std::sort(seen.begin(), seen.end());
    REQUIRE(seen == first_pass.input(pages_.first_pass_done(), raw_));
  }

  const std::vector<std::string>& ties() const { return golden_.ties(); }

 private:
  void compare_row(std::size_t row) {
    const auto& [file, index] = pages_.places()[row];
    CAPTURE(file, index);
    const PrepareConfig& config = pages_.config();
    const data::JsonRecord& record = raw_.record(pages_.places()[row]);
    prepare::FaultList faults;
    const Page page = read_page(record, config, faults);
    std::vector<std::string> keys;
    if (page.key_phrases) keys = key_strings(chosen_phrases(page, config, faults));
    const Features f = lay_out(page, keys, pages_.tokenizer(), config);
    golden_.require_equal(row, page, f, pages_.tokenizer());
    REQUIRE(urls_.at(row) == page.url);
    Json side = {{"url", page.url}, {"text", page.text}};
    if (page.key_phrases) side["KeyPhrases"] = Json::array();
    for (const std::string& key : keys) side["KeyPhrases"].push_back(Json::array({key}));
    REQUIRE(Json::parse(sides_.at(row)) == side);

    const prepare::Converted converted = preparation_.convert(record);
    CAPTURE(test::fault_words(converted.faults));
    if (converted.faults.rejected()) {
      REQUIRE(stricter_than_reference(converted.faults));
    } else {
      REQUIRE(std::get<Numbers>(converted.examples.at(0).at("long_token_ids")) == f.long_token_ids);
      REQUIRE(converted.examples[0].size() == openkp::schema().features.size());
    }
  }

  test::RawPages& raw_;
  test::GoldenPages pages_;
  OpenkpPreparation preparation_;
  GoldenGroup golden_;
  std::vector<std::string> urls_, sides_;
  Json failures_;
};

}  // namespace

TEST_CASE("features equal the published preparation's, page by page, in every configuration",
          "[tasks][openkp][golden]") {
  const auto files = test::golden_named("openkp_features", ".h5");
  if (files.empty() || !test::real_data_folder()) return test::skip("no golden OpenKP features");
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    CHECK(file.string_attribute("", "task") == "openkp");
    test::require_groups(
        file, "", {"albert_512", "dedup", "spm_512", "wp_128", "wp_256_kp3", "wp_4096", "wp_512_case", "wp_512_fixed"});
    test::RawPages raw(path.parent_path());
    const FirstPass first_pass(file);
    for (const std::string& name : file.groups()) {
      if (name == "dedup") continue;
      CAPTURE(path.filename().string(), name);
      GroupComparison comparison(file, name, raw);
      comparison.run(first_pass);
      for (const std::string& tie : comparison.ties()) fmt::print("{}: equal scores: {}\n", name, tie);
    }
    file.require_all_read("", {{"*/derived/?/*", "compared by the test of the feed"},
                               {"*/derived/?@*", "compared by the test of the feed"},
                               {"*/derived@*", "compared by the test of the feed"},
                               {"dedup@note", "describes the first pass"},
                               {"@unicode_version", "describes the tables of the published preparation"}});
  }
}

TEST_CASE("the first pass keeps the published pages with the published key phrases", "[tasks][openkp][golden]") {
  const auto files = test::golden_named("openkp_features", ".h5");
  if (files.empty() || !test::real_data_folder()) return test::skip("no golden OpenKP features");
  for (const fs::path& path : files) {
    CAPTURE(path.filename().string());
    const FirstPass golden{test::GoldenFile(path)};
    test::RawPages raw(path.parent_path());
    const PrepareConfig config;
    const OpenkpPreparation preparation(config, nullptr);
    prepare::Choice pages;
    std::vector<std::string> urls;  // in the order of their first appearance
    Json kept = Json::array();
    std::vector<Json> chosen;
    for (std::size_t i = 0; i < golden.read.size(); ++i) {
      const auto& [name, index] = golden.read[i];
      const data::JsonRecord& record = raw.record(golden.read[i]);
      prepare::FaultList faults;
      const Page page = read_page(record, config, faults);
      // The reference checks visual features later, so pages that are not candidates here still have a rank there.
      const std::int64_t rank = std::ssize(valid_phrases(*page.key_phrases, page.text));
      if (const auto candidate = preparation.candidate(record)) CHECK(candidate->rank == rank);
      if (pages.kept(page.url) == nullptr) urls.push_back(page.url);
      pages.add(page.url, {0, static_cast<std::int64_t>(i)}, rank);
      Json phrases = Json::array();
      for (const Phrase& phrase : chosen_phrases(page, config, faults)) phrases.push_back(phrase);
      chosen.push_back({{"file", name}, {"record", index}, {"url", page.url}, {"KeyPhrases", phrases}});
    }
    for (const std::string& url : urls) kept.push_back(chosen[static_cast<std::size_t>(pages.kept(url)->record)]);
    CHECK(kept == golden.kept);
    for (const Json& stop : golden.stops) {
      CAPTURE(json_line(stop));
      REQUIRE(stop.size() == 3);
      const data::JsonRecord& record = raw.record({stop[0], stop[1]});
      CHECK(!preparation.candidate(record));
      prepare::FaultList faults;
      read_page(record, config, faults);
      require_failure(faults, stop[2], true);
    }
  }
}
