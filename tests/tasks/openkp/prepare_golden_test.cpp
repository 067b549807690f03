// The first pass and the features of all golden pages against the published preparation.
#include <algorithm>
#include <map>

#include "tasks/openkp/phrases.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/prepare/choice.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::openkp;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

// Raw files by their names relative to the folder that holds golden/ and data/, read once. Some golden files come with
// their own records, so a file of that name beside the golden file is preferred.
class RawFiles {
 public:
  explicit RawFiles(fs::path golden) : golden_(std::move(golden)) {}

  const data::JsonRecord& record(const std::string& name, std::int64_t index) {
    if (!files_.contains(name)) {
      const fs::path beside = golden_ / fs::path(name).filename();
      const fs::path path = fs::exists(beside) ? beside : golden_.parent_path() / name;
      files_[name] = test::read_raw_records(path, data::RecordLayout::lines);
    }
    return files_[name].at(static_cast<std::size_t>(index));
  }

 private:
  fs::path golden_;
  std::map<std::string, std::vector<data::JsonRecord>> files_;
};

PrepareConfig config_of(const Json& json, bool first_pass) {
  PrepareConfig config;
  config.long_max_length = json.at("long_max_length");
  config.global_max_length = json.at("global_max_length");
  config.url_max_code_points = json.at("url_max_code_points");
  config.kp_max_length = json.at("kp_max_length");
  config.fixed_block_len = json.at("fixed_block_len").is_null() ? 0 : json.at("fixed_block_len").get<std::int64_t>();
  config.dedup = first_pass;
  config.first_occurrence = true;
  config.parity = Parity::reference;
  config.labels_required = false;  // one page is unlabelled
  return config;
}

// One configuration of a golden file, compared row by row with the layout that this preparation computes.
class GoldenGroup {
 public:
  GoldenGroup(const test::GoldenFile& file, const std::string& name, const PrepareConfig& config) : config_(config) {
    for (const std::string& feature : file.groups(name)) {
      if (feature == "derived" || feature == "record") continue;
      const std::string path = name + "/" + feature;
      const bool real = feature.ends_with("coords") || feature.ends_with("widths") || feature.ends_with("heights");
      if (real) {
        reals_[feature] = file.read_ragged<float>(path);
      } else {
        numbers_[feature] = file.read_ragged<std::int64_t>(path);
      }
    }
  }

  void require_equal(std::size_t row, const Page& page, const Features& f, const data::Tokenizer& tokenizer) {
    const Numbers ones(static_cast<std::size_t>(f.num_globals), 1);
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
    require_visual(row, visual_features(page, f.num_globals));
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
    CHECK(numbers_.at("long_word_first_occurrence")[row].empty());
    CHECK(reals_.at("global_x_coords")[row].empty());
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

void compare_group(const test::GoldenFile& file, const std::string& name, const fs::path& vocab_folder, RawFiles& raw) {
  const Json json = Json::parse(file.string_attribute(name, "config"));
  const PrepareConfig config = config_of(json, file.string_attribute(name, "stage") != "raw");
  const auto vocab = vocab_folder / fs::path(json.at("vocab").get<std::string>()).filename();
  const bool lower = json.at("do_lower_case");
  const auto tokenizer = test::shared_tokenizer(vocab, {.do_lower_case = lower, .whole_user_pieces = true});
  const OpenkpPreparation preparation(
      config, test::shared_tokenizer(vocab, {.do_lower_case = lower, .whole_user_pieces = true}));
  GoldenGroup golden(file, name, config);
  const auto files = file.read_strings(name + "/record/source_file");
  const auto indices = file.read<std::int64_t>(name + "/record/record_index").values;
  const auto texts = file.read_strings(name + "/record/text_example_json");
  for (std::size_t row = 0; row < files.size(); ++row) {
    CAPTURE(files[row], indices[row]);
    const data::JsonRecord& record = raw.record(files[row], indices[row]);
    prepare::FaultList faults;
    const Page page = read_page(record, config, faults);
    std::vector<std::string> keys;
    if (page.key_phrases) keys = key_strings(chosen_phrases(page, config, faults));
    const Features f = lay_out(page, keys, *tokenizer, config);
    golden.require_equal(row, page, f, *tokenizer);
    const Json side = Json::parse(texts[row]);
    CHECK(side.at("url") == page.url);
    CHECK(side.at("text") == page.text);
    Json phrases = Json::array();
    for (const std::string& key : keys) phrases.push_back(Json::array({key}));
    if (side.contains("KeyPhrases")) CHECK(side.at("KeyPhrases") == phrases);

    const prepare::Converted converted = preparation.convert(record);
    CAPTURE(test::fault_words(converted.faults));
    if (converted.faults.rejected()) {
      REQUIRE(stricter_than_reference(converted.faults));
    } else {
      REQUIRE(std::get<Numbers>(converted.examples.at(0).at("long_token_ids")) == f.long_token_ids);
      REQUIRE(converted.examples[0].size() == openkp::schema().features.size());
    }
  }
  for (const std::string& tie : golden.ties()) fmt::print("{}: equal scores: {}\n", name, tie);
  for (const Json& failure : Json::parse(file.read_strings(name + "/failures_json").at(0))) {
    const prepare::Converted converted = preparation.convert(raw.record(failure.at("file"), failure.at("record")));
    CAPTURE(json_line(failure), test::fault_words(converted.faults));
    // Integer coordinates stop the reference, but are only a warning here.
    CHECK(
        (converted.faults.rejected() || test::has_fault(converted.faults, data::Severity::warn, "feature_not_float")));
  }
}

}  // namespace

TEST_CASE("features equal the published preparation's, page by page, in every configuration",
          "[tasks][openkp][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("openkp_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden OpenKP features");
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    RawFiles raw(path.parent_path());
    for (const std::string& name : file.groups()) {
      if (name == "dedup") continue;
      CAPTURE(path.filename().string(), name);
      compare_group(file, name, *data / "vocab", raw);
    }
  }
}

TEST_CASE("the first pass keeps the published pages with the published key phrases", "[tasks][openkp][golden]") {
  const auto files = test::golden_named("openkp_features", ".h5");
  if (files.empty()) return test::skip("no golden OpenKP features");
  for (const fs::path& path : files) {
    CAPTURE(path.filename().string());
    const test::GoldenFile file(path);
    if (!file.has("dedup")) continue;
    RawFiles raw(path.parent_path());
    const PrepareConfig config;
    const Json read = Json::parse(file.string_attribute("dedup", "records_read"));
    const OpenkpPreparation preparation(config, nullptr);
    prepare::Choice pages;
    std::vector<std::string> urls;  // in the order of their first appearance
    Json kept = Json::array();
    std::vector<Json> chosen;
    for (std::size_t i = 0; i < read.size(); ++i) {
      const data::JsonRecord& record = raw.record(read[i][0], read[i][1]);
      prepare::FaultList faults;
      const Page page = read_page(record, config, faults);
      // The reference checks visual features later, so pages that are not candidates here still have a rank there.
      const std::int64_t rank = std::ssize(valid_phrases(*page.key_phrases, page.text));
      if (const auto candidate = preparation.candidate(record)) CHECK(candidate->rank == rank);
      if (pages.kept(page.url) == nullptr) urls.push_back(page.url);
      pages.add(page.url, {0, static_cast<std::int64_t>(i)}, rank);
      Json phrases = Json::array();
      for (const Phrase& phrase : chosen_phrases(page, config, faults)) phrases.push_back(phrase);
      chosen.push_back({{"file", read[i][0]}, {"record", read[i][1]}, {"url", page.url}, {"KeyPhrases", phrases}});
    }
    for (const std::string& url : urls) kept.push_back(chosen[static_cast<std::size_t>(pages.kept(url)->record)]);
    CHECK(kept == Json::parse(file.read_strings("dedup/kept_json").at(0)));
    for (const Json& stop : Json::parse(file.string_attribute("dedup", "stops"))) {
      INFO(json_line(stop));
      CHECK(!preparation.candidate(raw.record(stop[0], stop[1])));
    }
  }
}
