// Windows of real and of invented questions against those of the published preparation.
#include <map>
#include <optional>

#include "tasks/squad/prepare.h"
#include "tasks/squad/record.h"
#include "tasks/squad/windows.h"
#include "tasks/text/answer_text.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/golden_tables.h"
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

// A question as this preparation reads it, and what the reference knows of it.
struct Question {
  Record record;
  bool impossible = false;  // as the reference stores it: only where it trains
  std::vector<Window> windows;
};

// The windows of one setting; read once, compared window by window.
class GoldenWindows {
 public:
  GoldenWindows(const test::GoldenFile& file, const std::string& path) {
    for (const char* name : {"doc_offset", "doc_span_index", "doc_span_length", "doc_span_start", "end_position",
                             "example_index", "input_ids", "is_impossible", "length", "segment_ids", "start_position",
                             "unique_id", "windows_per_example"}) {
      const auto array = file.read<std::int64_t>(path + "/" + name);
      arrays_[name] = array.values;
      widths_[name] = array.shape.size() > 1 ? static_cast<std::size_t>(array.shape[1]) : 1;
    }
    for (const char* name : {"token_is_max_context", "token_to_orig_map"}) {
      ragged_[name] = file.read_ragged<std::int64_t>(path + "/" + name);
    }
    tokens_ = test::read_byte_texts(file, path + "/tokens");
    for (const char* name : {"input_ids", "segment_ids"}) {
      REQUIRE(std::ssize(arrays_[name]) == std::ssize(tokens_) * file.int_attribute(path, "max_seq_length"));
    }
  }

  std::size_t size() const { return tokens_.size(); }
  std::size_t examples() const { return arrays_.at("windows_per_example").size(); }
  std::size_t windows_of(std::size_t example) const {
    return static_cast<std::size_t>(arrays_.at("windows_per_example")[example]);
  }

  void require_equal(std::size_t w, const data::Example& ours, const Question& question,
                     const data::Tokenizer& tokenizer) const {
    REQUIRE(w < size());
    REQUIRE(value("unique_id", w) == kFirstUniqueId + static_cast<std::int64_t>(w));
    REQUIRE(value("doc_span_index", w) == scalar(ours, "window_index"));
    REQUIRE(value("is_impossible", w) == (question.impossible ? 1 : 0));
    REQUIRE(value("length", w) == std::ssize(golden_list(ours, "token_ids")));
    test::require_padded(row("input_ids", w), golden_list(ours, "token_ids"), std::int64_t{0});
    test::require_padded(row("segment_ids", w), golden_list(ours, "segment_ids"), std::int64_t{0});
    REQUIRE(value("start_position", w) == scalar(ours, "start_position"));
    REQUIRE(value("end_position", w) == scalar(ours, "end_position"));
    require_span(w, ours, question);
    std::string text;
    for (const std::int64_t id : golden_list(ours, "token_ids")) {
      text += (text.empty() ? "" : " ") + tokenizer.piece(static_cast<std::int32_t>(id));
    }
    REQUIRE(tokens_[w] == text);
  }
  void require_example(std::size_t w, std::size_t example) const {
    REQUIRE(value("example_index", w) == static_cast<std::int64_t>(example));
  }

 private:
  static constexpr std::int64_t kFirstUniqueId = 1000000000;  // the reference numbers the windows of a run from here

  // The part of the text that the window holds.
  void require_span(std::size_t w, const data::Example& ours, const Question& question) const {
    const Numbers& words = golden_list(ours, "token_words");
    const auto first = value("doc_offset", w), count = value("doc_span_length", w);
    REQUIRE(first == std::find_if(words.begin(), words.end(), [](auto word) { return word >= 0; }) - words.begin());
    REQUIRE(std::ssize(words) == first + count + 1);
    const Window& window = question.windows.at(static_cast<std::size_t>(scalar(ours, "window_index")));
    REQUIRE(Window{value("doc_span_start", w), count} == window);
    const auto part = [&](const char* name) {
      const Numbers& all = golden_list(ours, name);
      return Numbers(all.begin() + first, all.begin() + first + count);
    };
    REQUIRE(ragged_.at("token_is_max_context")[w] == part("max_context"));
    REQUIRE(ragged_.at("token_to_orig_map")[w] == part("token_words"));
  }

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

bool may_be_refused(const std::string& group) {
  return group.find("quirks") != std::string::npos;  // records that depend on Python's negative indices
}

// Checks that the words stored with a window are the words of the text at their position.
void require_words(const std::string& context, const data::Example& ours) {
  const auto all = text::unigrams(context);
  const auto& words = std::get<std::vector<std::string>>(ours.at("words"));
  const auto first = static_cast<std::size_t>(scalar(ours, "first_word"));
  REQUIRE(first + words.size() <= all.size());
  for (std::size_t i = 0; i < words.size(); ++i) REQUIRE(words[i] == all[first + i]);
}

Question question_of(const data::JsonRecord& raw, const PrepareConfig& config, const data::Tokenizer& tokenizer) {
  prepare::FaultList faults;
  Question question;
  question.record = read_record(raw, config, faults);
  question.impossible = config.trains() && config.version_2 && question.record.impossible;
  const auto pieces = std::ssize(text::OffsetText(question.record.context, tokenizer).ids());
  const auto asked = std::min(std::ssize(tokenizer.encode_ids(question.record.question)),
                              static_cast<std::ptrdiff_t>(config.question_len));
  question.windows = cut_windows(pieces, config.seq_len - asked - 3, config.stride);
  return question;
}

// The kept examples of a group by the number of their record.
std::map<std::int64_t, std::size_t> kept_records(const test::GoldenFile& file, const std::string& group) {
  std::map<std::int64_t, std::size_t> kept;
  for (const std::int64_t record : file.read<std::int64_t>(group + "/examples/record_index").values) {
    kept.emplace(record, kept.size());
  }
  return kept;
}

std::size_t compare_setting(const test::GoldenFile& file, const std::string& group, const std::string& setting,
                            const std::vector<data::JsonRecord>& records, const std::filesystem::path& data) {
  const PrepareConfig config = golden_squad_config(file, group, setting);
  const std::string vocab = file.string_attribute(group + "/" + setting, "vocab");
  const auto tokenizer = test::golden_tokenizer(data, vocab, config.do_lower_case);
  test::require_vocabulary(file, group + "/" + setting, *tokenizer);
  const SquadPreparation preparation(config, test::golden_tokenizer(data, vocab, config.do_lower_case));
  const GoldenWindows windows(file, group + "/" + setting);
  const std::map<std::int64_t, std::size_t> kept = kept_records(file, group);
  REQUIRE(windows.examples() == kept.size());
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
    if (may_be_refused(group) && (converted.faults.rejected() || converted.faults.dropped())) {
      next += count;
      continue;
    }
    REQUIRE(!converted.faults.rejected());
    REQUIRE(!converted.faults.dropped());
    REQUIRE(test::has_fault(converted.faults, data::Severity::warn, "context_empty") == (count == 0));
    REQUIRE(converted.examples.size() == count);
    const Question question = question_of(record, config, *tokenizer);
    for (const data::Example& window : converted.examples) {
      windows.require_example(next, example);
      windows.require_equal(next++, window, question, *tokenizer);
      require_words(question.record.context, window);
    }
  }
  REQUIRE(next == windows.size());
  return next;
}

std::string joined(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// The words at an answer's position, and the answer; {-1, -1} and "" where none is trained on.
struct AnswerPlace {
  std::int64_t first = -1, last = -1;
  std::string answer;
};

// nullopt: the position is refused.
std::optional<AnswerPlace> place_of(const Question& question, const PrepareConfig& config,
                                    const data::Tokenizer& tokenizer) {
  if (!config.trains() || question.impossible) return AnswerPlace{};
  prepare::FaultList faults;
  AnswerBytes bytes;
  if (!find_answer(question.record, config, faults, bytes)) return std::nullopt;
  const text::OffsetText context(question.record.context, tokenizer);
  return AnswerPlace{context.unigram_of(bytes.first), context.unigram_of(bytes.last),
                     question.record.answers.front().text};
}

// The examples that the reference keeps, as far as they do not depend on a setting.
class GoldenExamples {
 public:
  GoldenExamples(const test::GoldenFile& file, const std::string& group)
      : quirks_(may_be_refused(group)), ids_(file.read_strings(group + "/examples/qas_id")) {
    const std::string path = group + "/examples";
    for (const char* name :
         {"doc_words_row", "end_word", "is_impossible", "num_doc_words", "record_index", "start_word"}) {
      arrays_[name] = file.read<std::int64_t>(path + "/" + name).values;
    }
    for (const char* name : {"doc_words", "orig_answer_text", "question"}) {
      texts_[name] = test::read_byte_texts(file, path + "/" + name);
    }
  }

  std::size_t size() const { return ids_.size(); }

  void require_equal(std::size_t e, const Question& question, const std::optional<AnswerPlace>& place) const {
    REQUIRE(e < size());
    const Record& record = question.record;
    REQUIRE(record.id == ids_[e]);
    REQUIRE(record.question == texts_.at("question")[e]);
    const auto words = text::unigrams(record.context);
    REQUIRE(std::ssize(words) == value("num_doc_words", e));
    REQUIRE(joined(words) == texts_.at("doc_words").at(static_cast<std::size_t>(value("doc_words_row", e))));
    REQUIRE(value("is_impossible", e) == (question.impossible ? 1 : 0));
    if (quirks_ && !place) return;
    REQUIRE(place);
    REQUIRE(place->answer == texts_.at("orig_answer_text")[e]);
    REQUIRE(place->first == value("start_word", e));
    REQUIRE(place->last == value("end_word", e));
  }

 private:
  std::int64_t value(const std::string& name, std::size_t e) const { return arrays_.at(name)[e]; }

  bool quirks_;
  std::vector<std::string> ids_;
  std::map<std::string, Numbers> arrays_;
  std::map<std::string, std::vector<std::string>> texts_;
};

// The examples that the reference leaves out, with the two texts of its warning.
class SkippedExamples {
 public:
  SkippedExamples(const test::GoldenFile& file, const std::string& group)
      : ids_(file.read_strings(group + "/skipped/qas_id")),
        records_(file.read<std::int64_t>(group + "/skipped/record_index").values),
        actual_(test::read_byte_texts(file, group + "/skipped/actual_text")),
        answers_(test::read_byte_texts(file, group + "/skipped/cleaned_answer_text")) {}

  std::size_t size() const { return ids_.size(); }

  void require_equal(std::size_t s, const data::JsonRecord& raw, const Question& question,
                     const std::optional<AnswerPlace>& place) const {
    REQUIRE(s < size());
    REQUIRE(raw.index == records_[s]);
    REQUIRE(question.record.id == ids_[s]);
    REQUIRE(place);
    auto words = text::unigrams(question.record.context);
    if (place->first < 0) words.clear();  // the answer begins before the first word
    words.resize(std::min(words.size(), static_cast<std::size_t>(place->last + 1)));
    words.erase(words.begin(), words.begin() + std::min(std::ssize(words), std::max(place->first, std::int64_t{0})));
    REQUIRE(joined(words) == actual_[s]);
    REQUIRE(joined(text::white_space_words(place->answer)) == answers_[s]);
  }

 private:
  std::vector<std::string> ids_;
  Numbers records_;
  std::vector<std::string> actual_, answers_;
};

// Every question is either kept or left out.
void compare_examples(const test::GoldenFile& file, const std::string& group,
                      const std::vector<data::JsonRecord>& records, const std::filesystem::path& data) {
  const auto settings = test::golden_squad_settings(file, group);
  REQUIRE(!settings.empty());
  const PrepareConfig config = golden_squad_config(file, group, settings.front());
  const auto tokenizer = test::golden_tokenizer(data, file.string_attribute(group + "/" + settings.front(), "vocab"),
                                                config.do_lower_case);
  const GoldenExamples examples(file, group);
  const SkippedExamples skipped(file, group);
  const std::map<std::int64_t, std::size_t> kept = kept_records(file, group);
  REQUIRE(kept.size() == examples.size());
  REQUIRE(examples.size() + skipped.size() == records.size());
  std::size_t left_out = 0;
  for (const data::JsonRecord& record : records) {
    const Question question = question_of(record, config, *tokenizer);
    const auto place = place_of(question, config, *tokenizer);
    CAPTURE(record.index, question.record.id);
    const auto found = kept.find(record.index);
    if (found == kept.end()) {
      skipped.require_equal(left_out++, record, question, place);
    } else {
      examples.require_equal(found->second, question, place);
    }
  }
}

// A JSON file of the real data, which may be compressed.
Json read_source(const std::filesystem::path& path) {
  data::ByteStream stream(path);
  std::string text, part(1 << 20, ' ');
  while (const std::size_t size = stream.read(part.data(), part.size())) text.append(part, 0, size);
  return parse_json(text, path.string());
}

// The ids at the places of the original file that the golden file names.
void compare_sources(const test::GoldenFile& file, const std::string& group, const std::filesystem::path& data) {
  if (!file.has_attribute(group, "source_file")) return;
  const Json articles = read_source(data / file.string_attribute(group, "source_file")).at("data");
  const auto ids = file.read_strings(group + "/examples/qas_id");
  const Numbers places = file.read<std::int64_t>(group + "/examples/source_article_paragraph_qa").values;
  REQUIRE(places.size() == 3 * ids.size());
  for (std::size_t e = 0; e < ids.size(); ++e) {
    const Json& paragraph = articles.at(static_cast<std::size_t>(places[3 * e]))
                                .at("paragraphs")
                                .at(static_cast<std::size_t>(places[3 * e + 1]));
    CHECK(paragraph.at("qas").at(static_cast<std::size_t>(places[3 * e + 2])).at("id") == ids[e]);
  }
}

// The faults are those that the reference's exception stands for.
void require_stop(const Json& stop, const prepare::FaultList& faults) {
  CAPTURE(json_line(stop), test::fault_words(faults));
  const auto exception = stop.at("exception").get<std::string>(), message = stop.at("message").get<std::string>();
  const auto rejects = [&](const std::string& code) { return test::has_fault(faults, data::Severity::reject, code); };
  if (exception == "KeyError" && message == "'is_impossible'") {
    CHECK(!faults.rejected());  // a question without the flag counts as possible
  } else if (exception == "KeyError") {
    CHECK(rejects("missing_field"));
    CHECK(faults.rows().at(0).field.ends_with(message.substr(1, message.size() - 2)));
  } else if (exception == "ValueError") {
    CHECK(message == "For training, each question should have exactly 1 answer.");
    CHECK(rejects("answer_count"));
  } else if (exception == "IndexError") {
    CHECK(message == "list index out of range");
    CHECK(rejects("answer_offset"));
  } else {
    FAIL("unknown exception");
  }
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
      compare_examples(file, group, records, *data);
      compare_sources(file, group, *data);
      for (const std::string& setting : test::golden_squad_settings(file, group)) {
        windows += compare_setting(file, group, setting, records, *data);
      }
    }
    file.require_all_read(
        "",
        {{"@content", "a description"}, {"@unicode_version", "a description"}, {"*@source_records", "a description"}});
    CHECK(windows > 0);
    std::printf("%s: %zu windows equal\n", path.filename().c_str(), windows);
  }
}

TEST_CASE("records on which the published preparation stops are refused for the same reason", "[squad][golden]") {
  const auto data = test::real_data_folder();
  if (!data) return test::skip("no vocabulary");
  for (const auto& path : test::golden_named("squad_edge_records", ".json")) {
    const Json stops = read_json_file(path).at("stops");
    for (const Json& stop : stops) {
      CAPTURE(stop.at("name").get<std::string>());
      PrepareConfig config;
      config.is_training = stop.at("mode") == "train";
      REQUIRE((config.is_training || stop.at("mode") == "eval"));
      config.version_2 = stop.at("version_2").get<bool>();
      const SquadPreparation preparation(config, test::golden_tokenizer(*data, "bert_uncased_vocab.txt", true));
      const test::TemporaryFolder folder;
      test::write_file(folder / "stop.json", stop.dump());
      const auto records = test::read_raw_records(folder / "stop.json", data::RecordLayout::questions);
      CHECK(!records.empty());
      for (const auto& record : records) require_stop(stop, preparation.convert(record).faults);
    }
    CHECK(!stops.empty());
  }
}

TEST_CASE("windows and the best window of each piece equal the golden ones", "[squad][golden]") {
  std::size_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    const auto names = file.groups("squad/windows");
    CHECK(!names.empty());
    for (const std::string& name : names) {
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
    file.require_all_read("squad/windows");
  }
  if (cases == 0) test::skip("no golden windows");
}
