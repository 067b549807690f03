// Windows of real and of invented questions against those of the published preparation.
#include <map>

#include "tasks/squad/prepare.h"
#include "tasks/squad/windows.h"
#include "tests/support/catch.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/squad/golden_squad.h"

using namespace etc;
using namespace etc::squad;

namespace {

using Numbers = std::vector<std::int64_t>;

const Numbers& golden_list(const data::Example& example, const char* name) {
  return std::get<Numbers>(example.at(name));
}

std::int64_t scalar(const data::Example& example, const char* name) {
  return std::get<std::int64_t>(example.at(name));
}

// The windows of one setting; read once, compared window by window.
class GoldenWindows {
 public:
  GoldenWindows(const test::GoldenFile& file, const std::string& path) {
    for (const std::string& name : file.data_sets(path)) {
      const auto array = file.read<std::int64_t>(path + "/" + name);
      arrays_[name] = array.values;
      widths_[name] = array.shape.size() > 1 ? static_cast<std::size_t>(array.shape[1]) : 1;
    }
    for (const char* name : {"token_is_max_context", "token_to_orig_map"}) {
      ragged_[name] = file.read_ragged<std::int64_t>(path + "/" + name);
    }
    for (const auto& bytes : file.read_ragged<std::uint8_t>(path + "/tokens")) {
      tokens_.emplace_back(bytes.begin(), bytes.end());
    }
  }

  std::size_t size() const { return tokens_.size(); }
  std::size_t windows_of(std::size_t example) const {
    return static_cast<std::size_t>(arrays_.at("windows_per_example")[example]);
  }

  void require_equal(std::size_t w, const data::Example& ours, std::size_t example,
                     const data::Tokenizer& tokenizer) const {
    REQUIRE(w < size());
    REQUIRE(value("example_index", w) == static_cast<std::int64_t>(example));
    REQUIRE(value("doc_span_index", w) == scalar(ours, "window_index"));
    REQUIRE(value("length", w) == std::ssize(golden_list(ours, "token_ids")));
    test::require_padded(row("input_ids", w), golden_list(ours, "token_ids"), std::int64_t{0});
    test::require_padded(row("segment_ids", w), golden_list(ours, "segment_ids"), std::int64_t{0});
    REQUIRE(value("start_position", w) == scalar(ours, "start_position"));
    REQUIRE(value("end_position", w) == scalar(ours, "end_position"));
    const auto first = value("doc_offset", w), count = value("doc_span_length", w);
    const auto part = [&](const char* name) {
      const Numbers& all = golden_list(ours, name);
      return Numbers(all.begin() + first, all.begin() + first + count);
    };
    REQUIRE(ragged_.at("token_is_max_context")[w] == part("max_context"));
    REQUIRE(ragged_.at("token_to_orig_map")[w] == part("token_words"));
    REQUIRE(std::ssize(golden_list(ours, "token_words")) == first + count + 1);
    std::string text;
    for (const std::int64_t id : golden_list(ours, "token_ids")) {
      text += (text.empty() ? "" : " ") + tokenizer.piece(static_cast<std::int32_t>(id));
    }
    REQUIRE(tokens_[w] == text);
  }

 private:
  std::int64_t value(const std::string& name, std::size_t w) const { return arrays_.at(name)[w]; }
  Numbers row(const std::string& name, std::size_t w) const {
    const auto begin = arrays_.at(name).begin() + static_cast<std::ptrdiff_t>(w * widths_.at(name));
    return {begin, begin + static_cast<std::ptrdiff_t>(widths_.at(name))};
  }

  std::map<std::string, Numbers> arrays_;
  std::map<std::string, std::size_t> widths_;
  std::map<std::string, std::vector<Numbers>> ragged_;
  std::vector<std::string> tokens_;
};

// The kept examples of a group: their records and words.
struct GoldenExamples {
  Numbers records, words_row;
  std::vector<std::string> ids, words;

  GoldenExamples(const test::GoldenFile& file, const std::string& group)
      : records(file.read<std::int64_t>(group + "/examples/record_index").values),
        words_row(file.read<std::int64_t>(group + "/examples/doc_words_row").values),
        ids(file.read_strings(group + "/examples/qas_id")) {
    for (const auto& bytes : file.read_ragged<std::uint8_t>(group + "/examples/doc_words")) {
      words.emplace_back(bytes.begin(), bytes.end());
    }
  }
};

// Checks that the words stored with a window are the words of the text at their position.
void require_words(const std::string& all_words, const data::Example& ours) {
  std::vector<std::string> all(1);
  for (const char c : all_words) {
    if (c == ' ') {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  const auto& words = std::get<std::vector<std::string>>(ours.at("words"));
  const auto first = static_cast<std::size_t>(scalar(ours, "first_word"));
  REQUIRE(first + words.size() <= all.size());
  for (std::size_t i = 0; i < words.size(); ++i) REQUIRE(words[i] == all[first + i]);
}

std::size_t compare_setting(const test::GoldenFile& file, const std::string& group, const std::string& setting,
                            const std::vector<data::JsonRecord>& records, const std::filesystem::path& data) {
  const PrepareConfig config = golden_squad_config(file, group, setting);
  const std::string vocab = file.string_attribute(group + "/" + setting, "vocab");
  const auto tokenizer = test::golden_tokenizer(data, vocab, config.do_lower_case);
  const SquadPreparation preparation(config, test::golden_tokenizer(data, vocab, config.do_lower_case));
  const GoldenWindows windows(file, group + "/" + setting);
  const GoldenExamples examples(file, group);
  std::map<std::int64_t, std::size_t> kept;
  for (std::size_t e = 0; e < examples.records.size(); ++e) kept[examples.records[e]] = e;
  const bool quirks = group.find("quirks") != std::string::npos;  // a port may refuse these
  std::size_t next = 0;
  for (const data::JsonRecord& record : records) {
    const prepare::Converted converted = preparation.convert(record);
    CAPTURE(setting, record.index, converted.id, test::fault_words(converted.faults));
    const auto found = kept.find(record.index);
    if (found == kept.end()) {
      REQUIRE(test::has_fault(converted.faults, data::Severity::drop, "answer_not_found"));
      continue;
    }
    const std::size_t example = found->second, count = windows.windows_of(example);
    if (quirks && (converted.faults.rejected() || converted.faults.dropped())) {
      next += count;
      continue;
    }
    REQUIRE(converted.id == examples.ids[example]);
    REQUIRE(!converted.faults.rejected());
    REQUIRE(!converted.faults.dropped());
    REQUIRE(test::has_fault(converted.faults, data::Severity::warn, "context_empty") == (count == 0));
    REQUIRE(converted.examples.size() == count);
    for (const data::Example& window : converted.examples) {
      windows.require_equal(next++, window, example, *tokenizer);
      require_words(examples.words[static_cast<std::size_t>(examples.words_row[example])], window);
    }
  }
  REQUIRE(next == windows.size());
  return next;
}

}  // namespace

TEST_CASE("SQuAD windows equal the published preparation's in every setting, edge records included",
          "[squad][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("squad_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden SQuAD features");
  for (const auto& path : files) {
    const test::GoldenFile file(path);
    std::size_t windows = 0;
    for (const std::string& group : test::golden_squad_groups(file)) {
      CAPTURE(group);
      const auto records = test::golden_squad_records(file, group);
      for (const std::string& setting : test::golden_squad_settings(file, group)) {
        windows += compare_setting(file, group, setting, records, *data);
      }
    }
    CHECK(windows > 0);
    std::printf("%s: %zu windows equal\n", path.filename().c_str(), windows);
  }
}

TEST_CASE("records on which the published preparation stops are refused", "[squad][golden]") {
  const auto data = test::real_data_folder();
  if (!data) return test::skip("no vocabulary");
  for (const auto& path : test::golden_named("squad_edge_records", ".json")) {
    const Json stops = read_json_file(path).at("stops");
    for (const Json& stop : stops) {
      CAPTURE(stop.at("name").get<std::string>());
      PrepareConfig config;
      config.is_training = stop.at("mode") == "train";
      config.version_2 = stop.at("version_2").get<bool>();
      const SquadPreparation preparation(config, test::golden_tokenizer(*data, "bert_uncased_vocab.txt", true));
      const test::TemporaryFolder folder;
      write_file_atomically(folder / "stop.json", stop.dump());
      for (const auto& record : test::read_raw_records(folder / "stop.json", data::RecordLayout::questions)) {
        const prepare::Converted converted = preparation.convert(record);
        // A question without the flag that it is impossible counts as possible.
        CHECK(converted.faults.rejected() == (stop.at("name") != "flag-missing-v2"));
      }
    }
    CHECK(!stops.empty());
  }
}

TEST_CASE("windows and the best window of each piece equal the golden ones", "[squad][golden]") {
  std::size_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("squad/windows")) continue;
    for (const std::string& name : file.groups("squad/windows")) {
      const std::string group = "squad/windows/" + name;
      CAPTURE(group);
      const std::int64_t tokens = file.int_attribute(group, "tokens");
      const auto windows =
          cut_windows(tokens, file.int_attribute(group, "max_tokens"), file.int_attribute(group, "stride"));
      Numbers ours;
      for (const Window& window : windows) ours.insert(ours.end(), {window.start, window.length});
      CHECK(ours == file.read<std::int64_t>(group + "/start_length").values);
      CHECK(best_windows(windows, tokens) == file.read<std::int64_t>(group + "/best_window").values);
      ++cases;
    }
  }
  if (cases == 0) test::skip("no golden windows");
}
