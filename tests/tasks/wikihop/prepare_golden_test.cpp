// The features of real and of invented records against those of the published preparation.
#include <map>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/wikihop/features.h"
#include "tasks/wikihop/prepare.h"
#include "tests/golden/golden_group.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/multihop_golden.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::wikihop;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;
using SourceRecords = std::vector<data::JsonRecord>;

// The root's texts about the file; the splitter itself is compared sentence by sentence.
const test::LeftUnread kAboutTheFile = {
    {"@content", "a description"}, {"@unicode_version", "a description"}, {"@sentence_splitter", "a description"}};

// The source files of a golden file, of the sizes and contents it was computed with.
std::map<std::string, SourceRecords> read_sources(const test::GoldenFile& file, const fs::path& data, Words& order) {
  std::map<std::string, SourceRecords> records;
  for (const Json& source : Json::parse(file.string_attribute("", "source_files"))) {
    const std::string name = source.at("name");
    CAPTURE(name);
    const fs::path path = data / "wikihop" / name;
    REQUIRE(source.at("bytes") == fs::file_size(path));
    REQUIRE(source.at("sha256") == data::sha256_of_file(path));
    records[name] = test::read_raw_records(path, data::RecordLayout::array);
    order.push_back(name);
  }
  return records;
}

// One configuration of a golden file, and the records of its sources, one file after the other.
struct Group {
  const test::GoldenFile& file;
  std::string name;
  std::vector<const data::JsonRecord*> records;
  bool invented;  // edge cases: fewer features, no record numbers
  PrepareConfig config;
  fs::path vocab;

  Group(const test::GoldenFile& golden, const std::string& group, const fs::path& data, bool edge)
      : file(golden), name(group), invented(edge) {
    config.long_seq_len = file.int_attribute(name, "long_seq_len");
    config.global_seq_len = file.int_attribute(name, "global_seq_len");
    config.max_num_sentences = file.int_attribute(name, "max_num_sentences");
    config.parity = Parity::reference;
    vocab = data / "vocab" / file.string_attribute(name, "vocab");
    test::require_settings(file, name, vocab, !invented);
    REQUIRE(name.ends_with(fmt::format("_S{}", config.max_num_sentences)));
  }
  bool sentencepiece() const { return test::is_sentencepiece(file, name); }
  std::unique_ptr<data::Tokenizer> tokenizer() const {
    return test::shared_tokenizer(vocab, test::golden_tokenizer_options(file, name));
  }
};

// The features that are sequences.
struct Sequence {
  const char* name;
  Numbers Features::*values;
  std::int64_t padding;
  bool global;
};
constexpr Sequence kSequences[] = {
    {"long_token_ids", &Features::long_token_ids, 0, false},
    {"long_token_type_ids", &Features::long_token_type_ids, 0, false},
    {"long_sentence_ids", &Features::long_sentence_ids, -1, false},
    {"long_paragraph_ids", &Features::long_paragraph_ids, -1, false},
    {"long_paragraph_breakpoints", &Features::long_paragraph_breakpoints, 0, false},
    {"l2g_linked_ids", &Features::l2g_linked_ids, -1, false},
    {"global_token_ids", &Features::global_token_ids, 0, true},
    {"global_token_type_ids", &Features::global_token_type_ids, 0, true},
    {"global_paragraph_breakpoints", &Features::global_paragraph_breakpoints, 0, true},
};

// A record as we prepare it.
struct Ours {
  Record record;
  TokenizedRecord tokens;
  Truncation truncation;
  Features features;

  std::map<std::string, std::int64_t> scalars(const PrepareConfig& config) const {
    return {{"long_length", std::ssize(features.long_token_ids)},
            {"global_length", std::ssize(features.global_token_ids)},
            {"num_candidates", std::ssize(tokens.candidates)},
            {"num_documents", std::ssize(tokens.sentence_tokens)},
            {"num_query_tokens", tokens.query_tokens()},
            {"num_candidate_tokens", tokens.candidate_tokens()},
            {"budget", config.long_seq_len - tokens.query_tokens() - tokens.candidate_tokens()},
            {"sentences_before", truncation.sentences_before},
            {"sentences_after", truncation.sentences_after},
            {"doc_tokens_before", truncation.tokens_before},
            {"doc_tokens_after", truncation.tokens_after}};
  }
  std::map<std::string, std::string> texts() const {
    return {{"example_id", record.id},
            {"query", record.query},
            {"ground_truth_answer", data::lower_case(record.answer.value_or(""))}};
  }
};

// All features of one configuration; read once, compared record by record.
class GoldenFeatures {
 public:
  explicit GoldenFeatures(const Group& group) : group_(group) {
    const test::GoldenFile& file = group.file;
    const std::string features = group.name + "/features", extra = group.name + "/extra";
    test::Names feature_names = {"label_id", "is_real_example", "candidates"};
    test::Names extra_names = {"removal_order", "sentences_kept_per_document", "long_length", "global_length"};
    for (const Sequence& sequence : kSequences) feature_names.insert(sequence.name);
    if (!group.invented) {
      for (const auto& [name, text] : Ours().texts()) feature_names.insert(name);
      for (const auto& [name, number] : Ours().scalars(group.config)) extra_names.insert(name);
    }
    test::require_names(file, features, feature_names);
    test::require_names(file, extra, extra_names);
    for (const std::string& name : file.data_sets(extra)) {
      scalars_[name] = file.read<std::int64_t>(extra + "/" + name).values;
    }
    for (const std::string& name : file.groups(features)) {
      const std::string path = features + "/" + name;
      if (name == "label_id") {
        labels_ = file.read_ragged<double>(path);
      } else if (name == "candidates" || Ours().texts().contains(name)) {
        texts_[name] = file.read_ragged_strings(path);
      } else {
        numbers_[name] = file.read_ragged<std::int64_t>(path);
      }
    }
    removal_order_ = file.read_ragged<std::int64_t>(extra + "/removal_order");
    kept_ = file.read_ragged<std::int64_t>(extra + "/sentences_kept_per_document");
  }

  void require_equal(std::size_t i, const Ours& ours) const {
    REQUIRE(removal_order_.at(i) == ours.truncation.removal_order);
    REQUIRE(kept_.at(i) == ours.truncation.kept);
    REQUIRE(labels_.at(i) == std::vector<double>{static_cast<double>(ours.record.label)});
    REQUIRE(numbers_.at("is_real_example").at(i) == Numbers{1});
    REQUIRE(texts_.at("candidates").at(i) == ours.record.candidates);
    const auto expected_scalars = ours.scalars(group_.config);
    for (const auto& [name, numbers] : scalars_) {
      CAPTURE(name);
      REQUIRE(numbers.at(i) == expected_scalars.at(name));
    }
    const auto expected_texts = ours.texts();
    for (const auto& [name, texts] : texts_) {
      CAPTURE(name);
      if (name != "candidates") REQUIRE(texts.at(i) == Words{expected_texts.at(name)});
    }
    for (const Sequence& sequence : kSequences) {
      CAPTURE(sequence.name);
      const Numbers& golden = numbers_.at(sequence.name).at(i);
      REQUIRE(std::ssize(golden) == (sequence.global ? group_.config.global_seq_len : group_.config.long_seq_len));
      test::require_padded(golden, ours.features.*sequence.values, sequence.padding);
    }
  }

 private:
  const Group& group_;
  std::map<std::string, std::vector<Numbers>> numbers_;
  std::map<std::string, std::vector<Words>> texts_;
  std::map<std::string, Numbers> scalars_;
  std::vector<std::vector<double>> labels_;
  std::vector<Numbers> removal_order_, kept_;
};

// "code field" of each rejection.
test::Names rejections(const prepare::Converted& converted) {
  test::Names words;
  for (const data::Fault& fault : converted.faults.rows()) {
    if (fault.severity == data::Severity::reject) words.insert(fault.code + " " + fault.field);
  }
  return words;
}

// The rejections of a record that the reference converts: those in which this preparation is stricter.
test::Names stricter_than_reference(const Json& record, bool has_query_tokens) {
  test::Names words;
  if (record.at("id") == "") words.insert("id_empty id");
  if (!has_query_tokens) words.insert("query_empty query");
  if (record.at("supports").empty()) words.insert("supports_empty supports");
  return words;
}

// Whether our rejections match the reason for which the reference stops on a record. It looks for the answer among the
// candidates first (ValueError), then lays out the text.
bool explains(const prepare::Converted& converted, const std::string& reason) {
  const test::Names words = rejections(converted);
  const auto has = [&](const std::string& part) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word.starts_with(part); });
  };
  const bool no_label = has("answer_not_candidate ") || has("answer_untrimmed ");
  if (reason == "exception: ValueError") return no_label;
  if (no_label) return false;
  if (reason.starts_with("global overflow ")) {
    // "120>64"
    const std::string numbers = reason.substr(reason.find_last_of(' ') + 1);
    const std::size_t sign = numbers.find('>');
    const std::string message =
        fmt::format("{} global tokens exceed global_seq_len={}:", numbers.substr(0, sign), numbers.substr(sign + 1));
    const auto& rows = converted.faults.rows();
    return std::any_of(rows.begin(), rows.end(), [&](const data::Fault& row) {
      return row.code == "global_overflow" && row.message.starts_with(message);
    });
  }
  if (reason == "endless loop or exception: query and candidates exceed the long capacity") {
    return has("prefix_too_long ");
  }
  const bool first_is_empty = has("candidate_empty candidates[0]");
  if (reason == "exception: IndexError") return first_is_empty;
  if (reason == "exception: AssertionError")
    return !first_is_empty && (has("candidate_empty ") || has("global_overflow "));
  // Other exceptions: the record is malformed.
  return reason.starts_with("exception: ") && (has("missing_field ") || has("wrong_type ") || has("label_missing ") ||
                                               has("bad_character ") || has("record_not_object "));
}

// The example of an accepted record holds what lay_out() gave.
void require_example(const data::Example& example, const Ours& ours) {
  REQUIRE(std::get<std::int64_t>(example.at("label_id")) == ours.record.label);
  for (const Sequence& sequence : kSequences) {
    CAPTURE(sequence.name);
    REQUIRE(std::get<Numbers>(example.at(sequence.name)) == ours.features.*sequence.values);
  }
}

// The numbers of the records below a prefix, counted over all source files.
Numbers record_numbers(const Group& group, const std::string& prefix,
                       const std::map<std::string, std::int64_t>& first) {
  const test::GoldenFile& file = group.file;
  const auto ids = file.read_strings(prefix + "/id");
  if (group.invented) {
    SourceRecords all;
    for (const data::JsonRecord* record : group.records) all.push_back(*record);
    return test::numbers_of_ids(all, "id", ids);
  }
  const auto names = file.read_strings(prefix + "/file");
  Numbers numbers = file.read<std::int64_t>(prefix + "/record_index").values;
  REQUIRE(numbers.size() == ids.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] += first.at(names.at(i));
    REQUIRE(group.records.at(static_cast<std::size_t>(numbers[i]))->value["id"] == ids[i]);
  }
  return numbers;
}

void compare_group(const Group& group, const std::map<std::string, std::int64_t>& first,
                   const std::string& splitter_name) {
  const test::GoldenFile& file = group.file;
  test::Names names = {"features", "extra", "id", "not_converted"};
  if (!group.invented) names.insert({"file", "record_index", "derived"});
  test::require_names(file, group.name, names);
  const std::string rest = group.name + "/not_converted";
  const Numbers numbers = record_numbers(group, group.name, first);
  const Numbers others = record_numbers(group, rest, first);
  REQUIRE(!numbers.empty());
  test::require_all_records(numbers, others, std::ssize(group.records));

  const WikihopPreparation preparation(group.config, group.tokenizer(), data::load_splitter(splitter_name));
  const auto tokenizer = group.tokenizer();
  const auto splitter = data::load_splitter(splitter_name);
  const GoldenFeatures golden(group);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const data::JsonRecord& raw = *group.records[static_cast<std::size_t>(numbers[i])];
    CAPTURE(json_line(raw.value["id"]));
    prepare::FaultList faults;
    Ours ours;
    ours.record = read_record(raw, group.config, faults);
    ours.tokens = tokenize(ours.record, *tokenizer, *splitter, group.config);
    ours.truncation = truncate(ours.tokens, group.config);
    ours.features = lay_out(ours.record, ours.tokens, ours.truncation.kept, group.config, group.sentencepiece());
    golden.require_equal(i, ours);
    // The whole conversion gives the same, except for records that we reject.
    const prepare::Converted converted = preparation.convert(raw);
    const test::Names rejected = rejections(converted);
    REQUIRE(rejected == stricter_than_reference(raw.value, !ours.tokens.query.ids.empty()));
    if (rejected.empty()) require_example(converted.examples.at(0), ours);
  }
  const auto reasons = file.read_strings(rest + "/reason");
  REQUIRE(reasons.size() == others.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const prepare::Converted converted = preparation.convert(*group.records[static_cast<std::size_t>(others[i])]);
    CAPTURE(converted.id, reasons[i], test::fault_words(converted.faults));
    REQUIRE(explains(converted, reasons[i]));
  }
}

}  // namespace

TEST_CASE("features equal the published preparation's, record by record, in every configuration", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("wikihop_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden WikiHop features");
  const std::string splitter_name = "punkt:" + (*data / "punkt_english").string();
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    REQUIRE(file.string_attribute("", "task") == "wikihop");
    test::require_groups(
        file, "",
        {"sentences", "spalbert_L4096_G430_S200", "spbigbird_L1024_G430_S60", "spbigbird_L4096_G430_S200",
         "wp_L1024_G430_S200", "wp_L4096_G430_S200", "wp_L4096_G430_S40", "wp_L4096_G64_S200", "wp_L512_G430_S200"});
    Words order;
    const auto sources = read_sources(file, *data, order);
    for (const std::string& name : file.groups()) {
      if (name == "sentences") continue;
      CAPTURE(name);
      Group group(file, name, *data, false);
      std::map<std::string, std::int64_t> first;
      for (const std::string& source : order) {
        first[source] = std::ssize(group.records);
        for (const data::JsonRecord& record : sources.at(source)) group.records.push_back(&record);
      }
      compare_group(group, first, splitter_name);
    }
    test::LeftUnread left = kAboutTheFile;
    left.insert({{"*/derived*", "compared in feed_test.cpp"}, {"sentences/*", "compared below"}});
    file.require_all_read("", left);
  }
}

TEST_CASE("invented edge cases give the published preparation's features or our codes", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("wikihop_edge_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden WikiHop edge cases");
  const std::string splitter_name = "punkt:" + (*data / "punkt_english").string();
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    const fs::path named = test::golden_beside(path, "wikihop_edge_features", "wikihop_edge_records.json");
    const auto records = test::read_raw_records(named, data::RecordLayout::array);
    REQUIRE_FALSE(file.groups().empty());
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      Group group(file, name, *data, true);
      for (const data::JsonRecord& record : records) group.records.push_back(&record);
      compare_group(group, {}, splitter_name);
    }
    file.require_all_read("", kAboutTheFile);
  }
}

TEST_CASE("documents are cut into the published preparation's sentences", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("wikihop_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden WikiHop features");
  const auto splitter = data::load_splitter("punkt:" + (*data / "punkt_english").string());
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    Words order;
    const auto records = read_sources(file, *data, order);
    const auto ids = file.read_strings("sentences/id");
    const auto names = file.read_strings("sentences/file");
    const auto counts = file.read_ragged<std::int64_t>("sentences/sentences_per_document");
    const auto begin = file.read_ragged<std::int64_t>("sentences/begin");
    const auto end = file.read_ragged<std::int64_t>("sentences/end");
    file.require_all_read("sentences");
    std::size_t i = 0;
    for (const std::string& name : order) {
      for (const data::JsonRecord& record : records.at(name)) {
        CAPTURE(i, name);
        REQUIRE(names.at(i) == name);
        REQUIRE(ids.at(i) == record.value["id"]);
        Numbers our_counts, our_begin, our_end;
        for (const Json& document : record.value["supports"]) {
          const auto text = document.get<std::string>();
          // Golden offsets count characters, ours bytes.
          const auto characters = [&](std::int64_t bytes) {
            return static_cast<std::int64_t>(std::count_if(text.begin(), text.begin() + bytes, [](char c) {
              return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
            }));
          };
          const auto spans = splitter->split(text);
          our_counts.push_back(std::ssize(spans));
          for (const auto& span : spans) {
            our_begin.push_back(characters(span.begin));
            our_end.push_back(characters(span.end));
          }
        }
        REQUIRE(our_counts == counts.at(i));
        REQUIRE(our_begin == begin.at(i));
        REQUIRE(our_end == end.at(i));
        ++i;
      }
    }
    REQUIRE(ids.size() == i);
  }
}
