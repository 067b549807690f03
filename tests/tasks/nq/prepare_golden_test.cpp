// Windows of real and of invented records against those of the published preparation.
#include <algorithm>
#include <array>

#include "tasks/nq/prepare.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/nq/golden_windows.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::nq;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

using Names = std::vector<std::string>;

constexpr std::array kPlaces = {"example_id", "record_index", "window_index", "window_start"};

// The groups of a configuration, sorted.
Names groups_of(bool fixed_blocks) {
  Names names = {"answer_type",    "candidate_ids", "derived",   "global_breakpoints", "global_token_ids",
                 "global_type_id", "la_end",        "la_global", "la_start",           "long_breakpoints",
                 "question_ids",   "sa_end",        "sa_start",  "sentence_ids",       "token_ids",
                 "token_pos",      "unique_ids",    "window"};
  if (!fixed_blocks) {
    names.insert(names.end(), {"global_candidate_ids", "global_token_pos_end", "global_token_pos_start"});
    std::sort(names.begin(), names.end());
  }
  return names;
}

// Golden features of one configuration; read once, compared window by window.
class GoldenWindows {
 public:
  GoldenWindows(const test::GoldenFile& file, const test::GoldenNqConfig& config) : config_(config.config()) {
    REQUIRE(file.groups(config.name()) == groups_of(config_.fixed_blocks));
    for (const std::string& feature : file.groups(config.name())) {
      if (feature == "derived" || feature == "window") continue;
      features_[feature] = file.read_ragged<std::int64_t>(config.name() + "/" + feature);
    }
    const std::string window = config.name() + "/window/";
    for (const char* name : kPlaces) {
      places_[name] = file.read<std::int64_t>(window + name).values;
    }
    sources_ = file.read_strings(window + "source_file");
  }

  std::size_t size() const { return sources_.size(); }
  std::size_t compared() const { return compared_; }

  void require_equal(std::size_t row, const test::GoldenNqConfig::Source& source, const data::Example& ours) {
    REQUIRE(row < size());
    REQUIRE(sources_[row] == source.file);
    REQUIRE(places_["record_index"][row] == source.raw.index);
    for (const char* name : {"window_index", "window_start"}) {
      CAPTURE(name);
      REQUIRE(places_[name][row] == std::get<std::int64_t>(ours.at(name)));
    }
    REQUIRE(places_["example_id"][row] == std::get<std::int64_t>(ours.at("unique_ids")));
    for (const auto& [name, golden] : features_) {
      CAPTURE(name);
      require_length(name, std::ssize(golden[row]));
      if (name == "long_breakpoints") {
        require_breakpoints(golden[row], list(ours, "token_ids"));
      } else if (name == "global_breakpoints") {
        require_breakpoints(golden[row], list(ours, "global_token_ids"));
      } else if (config_.fixed_blocks && name == "global_type_id") {
        REQUIRE(golden[row] == types_with_blocks(ours));
      } else if (const auto* scalar = std::get_if<std::int64_t>(&ours.at(name))) {
        REQUIRE(golden[row] == Numbers{*scalar});
      } else if (name == "question_ids") {
        REQUIRE(golden[row] == list(ours, name));
      } else {
        test::require_padded(golden[row], with_first_padding(name, golden[row].size(), list(ours, name)),
                             padding(name, list(ours, name)));
      }
      ++compared_;
    }
  }

 private:
  static const Numbers& list(const data::Example& example, const std::string& name) {
    return std::get<Numbers>(example.at(name));
  }

  // Of a feature that the reference pads. The types of fixed blocks are compared with their own padding.
  void require_length(const std::string& name, std::int64_t length) const {
    const bool global = name.starts_with("global_");
    const bool of_window = name.ends_with("breakpoints") || name.ends_with("token_ids") || name == "candidate_ids" ||
                           name == "sentence_ids" || name == "token_pos";
    if (!global && !of_window) return;
    if (config_.fixed_blocks && name == "global_type_id") return;
    REQUIRE(length == (global ? config_.global_seq_len : config_.seq_len));
  }

  static void require_breakpoints(const Numbers& golden, const Numbers& real) {
    Numbers ours(real.size(), 0);
    ours.back() = 1;
    test::require_padded(golden, ours, std::int64_t{0});
  }

  // With fixed blocks, the reference keeps the types of the global tokens without blocks, and appends the zeros that pad
  // the blocks (task-nq 2.7). This preparation stores no types then.
  Numbers types_with_blocks(const data::Example& ours) const {
    const Numbers& candidates = list(ours, "candidate_ids");
    const auto head =
        static_cast<std::size_t>(std::min(std::ssize(list(ours, "question_ids")), config_.question_len)) + 2;
    Numbers types(head, config_.global_types.question);
    types[0] = config_.global_types.cls;
    for (std::size_t i = head; i < candidates.size(); ++i) {
      if (candidates[i] == candidates[i - 1] || std::ssize(types) >= config_.global_seq_len) continue;
      types.push_back(candidates[i] >= 0 ? config_.global_types.sentence : 0);
    }
    const std::int64_t padding = config_.global_seq_len - std::ssize(list(ours, "global_token_ids"));
    types.insert(types.end(), static_cast<std::size_t>(padding), 0);
    return types;
  }

  // With fixed blocks, the first padding position has a block number, too (task-nq 2.7).
  Numbers with_first_padding(const std::string& name, std::size_t length, Numbers ours) const {
    if (config_.fixed_blocks && name == "sentence_ids" && ours.size() < length) {
      ours.push_back(std::ssize(ours) / config_.fixed_block_size);
    }
    return ours;
  }

  std::int64_t padding(const std::string& name, const Numbers& ours) const {
    if (name == "token_ids") return config_.special_ids.pad;
    if (name == "sentence_ids") return config_.fixed_blocks ? 0 : ours.back();
    return name == "candidate_ids" || name == "token_pos" || name == "global_candidate_ids" ? -1 : 0;
  }

  const PrepareConfig& config_;
  std::map<std::string, std::vector<Numbers>> features_;
  std::map<std::string, Numbers> places_;
  std::vector<std::string> sources_;
  std::size_t compared_ = 0;
};

// Whether the record was rejected only for candidates without a token, which the reference converts.
bool stricter_than_reference(const prepare::FaultList& faults, const Record& record) {
  const bool empty = std::any_of(record.candidates.begin(), record.candidates.end(),
                                 [](const Candidate& c) { return c.start == c.end; });
  return empty && std::all_of(faults.rows().begin(), faults.rows().end(), [](const data::Fault& row) {
           return row.severity == data::Severity::warn || row.code == "candidate_range";
         });
}

}  // namespace

TEST_CASE("windows equal the published preparation's, feature by feature, in every configuration",
          "[tasks][nq][golden]") {
  const auto files = test::golden_nq_feature_files();
  if (files.empty()) return test::skip("no golden Natural Questions features");
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    CHECK(file.string_attribute("", "task") == "nq");
    test::require_groups(
        file, "",
        {"spm_512", "wp_256_drop", "wp_256_drop_all", "wp_4096", "wp_512", "wp_512_case", "wp_512_fixed", "wp_64_gap"});
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      const test::GoldenNqConfig group(file, name);
      GoldenWindows golden(file, group);
      const NqPreparation original(group.config_for({"", {}, false}), group.load_tokenizer());
      const NqPreparation simplified(group.config_for({"", {}, true}), group.load_tokenizer());
      std::size_t row = 0;
      group.for_each_record([&](const test::GoldenNqConfig::Source& source) {
        CAPTURE(source.file, source.raw.index);
        const PrepareConfig config = group.config_for(source);
        prepare::FaultList faults;
        const Record record = read_record(source.raw, config, faults);
        const Document document = tokenize(record, group.tokenizer(), config);
        const Windows windows = cut_windows(record, document, label_of(record, config), config);
        for (const data::Example& window : windows.examples) {
          CAPTURE(row);
          golden.require_equal(row++, source, window);
        }
        // The whole conversion gives the same result.
        const prepare::Converted converted = (source.simplified ? simplified : original).convert(source.raw);
        CAPTURE(test::fault_words(converted.faults));
        if (converted.faults.rejected()) {
          REQUIRE(stricter_than_reference(converted.faults, record));
        } else {
          REQUIRE(converted.examples.size() == windows.examples.size());
          REQUIRE(converted.gold);
        }
      });
      REQUIRE(row == golden.size());
      std::printf("%s %s: %zu windows, %zu features equal\n", path.filename().c_str(), name.c_str(), row,
                  golden.compared());
    }
    file.require_all_read("", {{"*/derived*", "compared by the test of the feed"},
                               {"@sources", "describes the records"},
                               {"@unicode_version", "describes the tables of the published preparation"}});
  }
}
