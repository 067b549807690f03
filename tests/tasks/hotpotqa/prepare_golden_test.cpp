// The features of real and of invented records against those of the published preparation.
#include <cmath>
#include <map>

#include "tasks/hotpotqa/features.h"
#include "tasks/hotpotqa/prepare.h"
#include "tests/golden/golden_group.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/multihop_golden.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::hotpotqa;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

const test::LeftUnread kAboutTheFile = {{"@content", "a description"}, {"@unicode_version", "a description"}};

// One configuration of a golden file.
struct Group {
  const test::GoldenFile& file;
  std::string name;
  bool invented;  // edge cases: fewer features, no record numbers
  fs::path vocab;
  bool sentencepiece;
  std::unique_ptr<data::Tokenizer> tokenizer;
  PrepareConfig config;
  bool bio;

  Group(const test::GoldenFile& golden, const std::string& group, const fs::path& data, bool edge)
      : file(golden),
        name(group),
        invented(edge),
        vocab(data / "vocab" / file.string_attribute(name, "vocab")),
        sentencepiece(test::is_sentencepiece(file, name)),
        tokenizer(test::shared_tokenizer(vocab, test::golden_tokenizer_options(file, name))),
        bio(file.string_attribute(name, "answer_encoding") == "bio") {
    config.long_seq_len = file.int_attribute(name, "long_seq_len");
    config.global_seq_len = file.int_attribute(name, "global_seq_len");
    config.is_training = config.labels_required = file.int_attribute(name, "is_training") != 0;
    config.parity = Parity::reference;
    config.special_ids = published_special_ids(sentencepiece);
    test::require_settings(file, name, vocab, !invented);
    const std::string mode = std::string(config.is_training ? "_train" : "_predict") + (bio ? "_bio" : "");
    REQUIRE(name.ends_with(mode));
    REQUIRE((bio || file.string_attribute(name, "answer_encoding") == "span"));
  }
  bool labels_only() const { return bio && !invented; }  // the BIO groups of real records
};

// The features that are sequences.
struct Sequence {
  const char* name;
  Numbers Features::*values;
  std::int64_t padding;
};
constexpr Sequence kSequences[] = {
    {"long_token_ids", &Features::long_token_ids, 0},
    {"long_token_type_ids", &Features::long_token_type_ids, 0},
    {"long_sentence_ids", &Features::long_sentence_ids, -1},
    {"long_paragraph_ids", &Features::long_paragraph_ids, -1},
    {"long_paragraph_breakpoints", &Features::long_paragraph_breakpoints, 0},
    {"long_tokens_to_unigrams", &Features::long_tokens_to_unigrams, -1},
    {"global_token_ids", &Features::global_token_ids, 0},
    {"global_token_type_ids", &Features::global_token_type_ids, 0},
    {"global_paragraph_breakpoints", &Features::global_paragraph_breakpoints, 0},
    {"global_paragraph_ids", &Features::global_paragraph_ids, -1},
    {"global_sentence_ids", &Features::global_sentence_ids, -1},
    {"supporting_facts", &Features::supporting_facts, 0},
};

test::Names feature_names(const Group& group) {
  if (group.labels_only()) return {"answer_types", "answer_bio_ids"};
  test::Names names;
  for (const Sequence& sequence : kSequences) names.insert(sequence.name);
  if (group.sentencepiece) names.erase("long_tokens_to_unigrams");
  if (!group.invented) names.insert({"unique_ids", "type", "level"});
  if (!group.config.is_training) {
    names.erase("supporting_facts");
  } else if (group.bio) {
    names.insert({"answer_types", "answer_bio_ids"});
  } else {
    names.insert({"answer_types", "answer_begins", "answer_ends"});
  }
  return names;
}

test::Names extra_names(const Group& group) {
  test::Names names = {"long_length", "global_length"};
  if (!group.invented) names.insert("num_skipped");
  if (!group.invented || group.config.is_training) names.insert({"answer_span_begins", "answer_span_ends"});
  if (!group.invented && !group.sentencepiece) names.insert({"long_tokens", "global_tokens"});
  return names;
}

// What the reference makes of a record's labels: the first span whatever it is (quirks H2, H3, H14, H15).
struct ReferenceLabel {
  std::string dropped;  // why the record is not converted for training; empty: it is
  std::int64_t type = 0;
  text::TokenSpan span;  // (0, 0): none

  ReferenceLabel(const Record& record, const Features& f, std::int64_t long_seq_len) {
    const std::string answer = record.answer.value_or("");
    type = answer == "yes" ? 1 : answer == "no" ? 2 : 0;
    if (!f.answer_spans.empty()) span = f.answer_spans[0].tokens;
    if (std::count(f.supporting_facts.begin(), f.supporting_facts.end(), 1) == 0) {
      dropped = "dropped: no supporting fact label";
    } else if (type == 0 && f.answer_spans.empty()) {
      dropped = "dropped: answer not found";
    } else if (type == 0 && span.last >= long_seq_len) {
      dropped = "dropped: first answer span beyond the long limit";
    }
  }
  bool inverted() const { return span.last < span.first; }
};

// The reference's BIO labels: a span that ends before it begins inserts one label (quirk H14).
Numbers reference_bio_labels(const std::vector<AnswerSpan>& spans, std::int64_t length) {
  Numbers labels(static_cast<std::size_t>(length), 2);
  for (const AnswerSpan& span : spans) {
    const auto [first, last] = span.tokens;
    if (last >= length) break;
    if (last < first) {
      labels.insert(labels.begin() + first, 0);
    } else {
      labels[static_cast<std::size_t>(first)] = 0;
      for (std::int64_t i = first + 1; i <= last; ++i) labels[static_cast<std::size_t>(i)] = 1;
    }
  }
  return labels;
}

// The answer's spans as the reference finds them, text by text. A text that is skipped is searched as if it stood where the
// next one that fits begins.
class SpansInTextOrder {
 public:
  SpansInTextOrder(const Group& group, const Record& record, const Features& f)
      : group_(group),
        answer_(record.labelled() ? *record.answer : ""),
        answer_ids_(text::OffsetText(answer_, *group.tokenizer).ids()) {
    if (!record.labelled()) return;
    // The CLS token and the question's, which have a global token each.
    tokens_ = globals_ = 1 + std::count(f.long_token_type_ids.begin(), f.long_token_type_ids.end(), kQuestionType);
    const auto facts = record.facts_by_title();
    for (const Paragraph& paragraph : record.context) {
      const auto found = facts.find(paragraph.title);
      if (globals_ < group_.config.global_seq_len) ++globals_;
      add(paragraph.title, found != facts.end());
      for (std::size_t s = 0; s < paragraph.sentences.size(); ++s) {
        add(paragraph.sentences[s], found != facts.end() && found->second.contains(static_cast<std::int64_t>(s)));
      }
    }
  }
  const std::vector<text::TokenSpan>& spans() const { return spans_; }

 private:
  void add(const std::string& text, bool fact) {
    const text::OffsetText unit(text, *group_.tokenizer);
    const std::int64_t length = std::ssize(unit.ids());
    if (fact) {
      for (const auto& found : unit.find(answer_, answer_ids_, text::LeadingSeparator::last_unigram)) {
        spans_.push_back({tokens_ + found.tokens.first, tokens_ + found.tokens.last});
      }
    }
    if (tokens_ + length > group_.config.long_seq_len || globals_ >= group_.config.global_seq_len) return;
    tokens_ += length;
    ++globals_;
  }

  const Group& group_;
  std::string answer_;
  std::vector<std::int32_t> answer_ids_;
  std::int64_t tokens_ = 0, globals_ = 0;  // so far
  std::vector<text::TokenSpan> spans_;
};

// Features of one configuration; read once, compared record by record.
class GoldenFeatures {
 public:
  explicit GoldenFeatures(const Group& group) : group_(group) {
    const test::GoldenFile& file = group.file;
    const std::string features = group.name + "/features", extra = group.name + "/extra";
    test::require_names(file, features, feature_names(group));
    for (const std::string& feature : file.groups(features)) {
      const std::string path = features + "/" + feature;
      if (feature == "unique_ids" || feature == "type" || feature == "level") {
        texts_[feature] = file.read_ragged_strings(path);
      } else {
        numbers_[feature] = file.read_ragged<std::int64_t>(path);
      }
    }
    if (group.labels_only()) return;
    test::require_names(file, extra, extra_names(group));
    for (const std::string& name : file.data_sets(extra)) {
      scalars_[name] = file.read<std::int64_t>(extra + "/" + name).values;
    }
    if (!file.has(extra + "/answer_span_begins")) return;
    span_begins_ = file.read_ragged<std::int64_t>(extra + "/answer_span_begins");
    span_ends_ = file.read_ragged<std::int64_t>(extra + "/answer_span_ends");
  }

  void require_equal(std::size_t i, const Record& record, const Features& f) const {
    for (const Sequence& sequence : kSequences) {
      const auto golden = numbers_.find(sequence.name);
      if (golden == numbers_.end()) continue;  // the names were compared above
      CAPTURE(sequence.name);
      const bool global = golden->first.starts_with("global_") || golden->first == "supporting_facts";
      REQUIRE(std::ssize(golden->second.at(i)) == (global ? group_.config.global_seq_len : group_.config.long_seq_len));
      test::require_padded(golden->second.at(i), f.*sequence.values, sequence.padding);
    }
    const std::map<std::string, std::string> texts = {
        {"unique_ids", record.id}, {"type", record.type}, {"level", record.level}};
    for (const auto& [name, golden] : texts_) REQUIRE(golden.at(i) == Words{texts.at(name)});
    const std::map<std::string, std::int64_t> scalars = {{"long_length", std::ssize(f.long_token_ids)},
                                                         {"global_length", std::ssize(f.global_token_ids)},
                                                         {"num_skipped", f.skipped_for_long + f.skipped_for_global}};
    for (const auto& [name, golden] : scalars_) {
      CAPTURE(name);
      REQUIRE(golden.at(i) == scalars.at(name));
    }
    if (!span_begins_.empty()) require_spans(i, record, f);
    require_label(i, ReferenceLabel(record, f, group_.config.long_seq_len), f);
  }

 private:
  // Training spans are sorted by their ends, like ours; the others are in text order.
  void require_spans(std::size_t i, const Record& record, const Features& f) const {
    const Numbers& begins = span_begins_.at(i);
    const Numbers& ends = span_ends_.at(i);
    REQUIRE(begins.size() == ends.size());
    std::vector<text::TokenSpan> golden, ours;
    for (std::size_t k = 0; k < begins.size(); ++k) golden.push_back({begins[k], ends[k]});
    if (!group_.config.is_training) {
      REQUIRE(golden == SpansInTextOrder(group_, record, f).spans());
      std::stable_sort(golden.begin(), golden.end(),
                       [](const text::TokenSpan& a, const text::TokenSpan& b) { return a.last < b.last; });
    }
    for (const AnswerSpan& span : f.answer_spans) ours.push_back(span.tokens);
    REQUIRE(golden == ours);
  }

  void require_label(std::size_t i, const ReferenceLabel& label, const Features& f) const {
    const auto require_number = [&](const char* name, std::int64_t expected) {
      CAPTURE(name);
      const auto golden = numbers_.find(name);
      if (golden != numbers_.end()) REQUIRE(golden->second.at(i) == Numbers{expected});
    };
    require_number("answer_types", label.type);
    require_number("answer_begins", label.span.first);
    require_number("answer_ends", label.span.last);
    const auto golden = numbers_.find("answer_bio_ids");
    if (golden == numbers_.end()) return;
    const Numbers expected = reference_bio_labels(f.answer_spans, group_.config.long_seq_len);
    REQUIRE(golden->second.at(i) == expected);
    // Ours are the same where no span inserts a label.
    if (std::ssize(expected) != group_.config.long_seq_len) return;
    REQUIRE(bio_labels(f.answer_spans, group_.config.long_seq_len) == expected);
  }

  const Group& group_;
  std::map<std::string, std::vector<Numbers>> numbers_;
  std::map<std::string, std::vector<Words>> texts_;
  std::map<std::string, Numbers> scalars_;
  std::vector<Numbers> span_begins_, span_ends_;
};

// A malformed record as the reference takes it without a complaint: a string in place of a paragraph's sentences is the
// list of its characters; sentence numbers of supporting facts may be 1.0 or true, and any other value matches none.
Json as_the_reference_reads(Json record) {
  constexpr std::int64_t kNoSentence = 1 << 30;
  for (Json& paragraph : record.at("context")) {
    if (!paragraph.is_array() || paragraph.size() != 2 || !paragraph[1].is_string()) continue;
    Json sentences = Json::array();
    const auto text = paragraph[1].get<std::string>();
    for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
      for (end = begin + 1; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80;) ++end;
      sentences.push_back(text.substr(begin, end - begin));
    }
    paragraph[1] = sentences;
  }
  if (!record.contains("supporting_facts")) return record;
  for (Json& fact : record.at("supporting_facts")) {
    if (!fact.is_array() || fact.size() != 2) continue;
    Json& number = fact[1];
    if (number.is_boolean()) number = number.get<bool>() ? 1 : 0;
    if (number.is_number_float() && number == std::floor(number.get<double>())) {
      number = static_cast<std::int64_t>(number.get<double>());
    }
    if (!number.is_number_integer() || number < 0) number = kNoSentence;
  }
  return record;
}

// Codes of rejection or drop of a record that the reference converts: those in which this preparation is stricter.
bool stricter_than_reference(const prepare::FaultList& faults, const ReferenceLabel& label) {
  for (const data::Fault& row : faults.rows()) {
    if (row.severity != data::Severity::reject && row.severity != data::Severity::drop) continue;
    if (row.code == "answer_span_inverted" && label.inverted()) continue;
    const test::Names stricter = {"answer_empty", "context_empty", "bad_character",
                                  "id_empty",     "sf_malformed",  "context_malformed"};
    if (!stricter.contains(row.code)) return false;
  }
  return true;
}

// Whether the faults match the reason for which the reference does not convert a record.
bool explains(const prepare::FaultList& faults, const std::string& reason) {
  const auto drops = [&](const char* code) { return test::has_fault(faults, data::Severity::drop, code); };
  const auto rejects = [&](const char* code) { return test::has_fault(faults, data::Severity::reject, code); };
  if (reason.starts_with("exception: ")) {
    const auto malformed = {"missing_field", "wrong_type",        "context_malformed",
                            "sf_malformed",  "record_not_object", "bad_character"};
    return std::any_of(malformed.begin(), malformed.end(), rejects);
  }
  // A record without paragraphs or labels is rejected before its labels are looked at.
  if (rejects("context_empty") || rejects("label_missing") || rejects("id_empty")) return true;
  if (reason == "dropped: no supporting fact label") return drops("no_sf_label");
  if (reason == "dropped: answer not found") return drops("answer_not_found") || drops("answer_empty");
  return reason == "dropped: first answer span beyond the long limit" && drops("answer_beyond_limit");
}

// Compares the records of one group, one by one.
class GroupComparison {
 public:
  GroupComparison(const Group& group, const std::vector<data::JsonRecord>& records)
      : group_(group), records_(records), preparation_(group.config, copy_of_tokenizer()), golden_(group) {}

  void run() const {
    const test::GoldenFile& file = group_.file;
    const std::string rest = group_.name + "/not_converted";
    test::Names names = {"features", "id", "not_converted"};
    if (!group_.labels_only()) names.insert("extra");
    if (!group_.invented) names.insert("record_index");
    if (!group_.invented && !group_.bio) names.insert("derived");
    test::require_names(file, group_.name, names);
    const Numbers converted = numbers_of(group_.name), others = numbers_of(rest);
    const Words reasons = file.read_strings(rest + "/reason");
    REQUIRE(!converted.empty());
    REQUIRE(reasons.size() == others.size());
    test::require_all_records(converted, others, std::ssize(records_));
    for (std::size_t i = 0; i < converted.size(); ++i) compare(i, record(converted[i]));
    for (std::size_t i = 0; i < others.size(); ++i) compare_rest(reasons[i], record(others[i]));
    if (!group_.labels_only() && !group_.invented && !group_.sentencepiece) require_debug_tokens(converted);
  }

 private:
  std::unique_ptr<data::Tokenizer> copy_of_tokenizer() const {
    return test::shared_tokenizer(group_.vocab, test::golden_tokenizer_options(group_.file, group_.name));
  }

  const data::JsonRecord& record(std::int64_t number) const { return records_.at(static_cast<std::size_t>(number)); }

  Numbers numbers_of(const std::string& prefix) const {
    const auto ids = group_.file.read_strings(prefix + "/id");
    if (group_.invented) return test::numbers_of_ids(records_, "_id", ids);
    const Numbers numbers = group_.file.read<std::int64_t>(prefix + "/record_index").values;
    REQUIRE(numbers.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) REQUIRE(record(numbers[i]).value["_id"] == ids[i]);
    return numbers;
  }

  Record read(const data::JsonRecord& raw) const {
    prepare::FaultList ignored;
    const Json changed = as_the_reference_reads(raw.value);
    if (changed == raw.value) return read_record(raw, group_.config, ignored);
    return read_record(test::raw_record(json_line(changed), raw.index), group_.config, ignored);
  }

  void compare(std::size_t i, const data::JsonRecord& raw) const {
    CAPTURE(json_line(raw.value["_id"]));
    const Record record = read(raw);
    const Features f = lay_out(record, *group_.tokenizer, group_.config);
    golden_.require_equal(i, record, f);
    const ReferenceLabel label(record, f, group_.config.long_seq_len);
    if (group_.config.is_training) REQUIRE(label.dropped.empty());
    // The whole conversion gives the same result.
    const prepare::Converted converted = preparation_.convert(raw);
    CAPTURE(test::fault_words(converted.faults));
    if (converted.faults.rejected() || converted.faults.dropped()) {
      REQUIRE(stricter_than_reference(converted.faults, label));
      return;
    }
    const data::Example& example = converted.examples.at(0);
    for (const Sequence& sequence : kSequences) {
      CAPTURE(sequence.name);
      REQUIRE(std::get<Numbers>(example.at(sequence.name)) == f.*sequence.values);
    }
    if (!group_.config.is_training || label.inverted()) return;
    REQUIRE(std::get<std::int64_t>(example.at("answer_types")) == label.type);
    REQUIRE(std::get<std::int64_t>(example.at("answer_begins")) == label.span.first);
    REQUIRE(std::get<std::int64_t>(example.at("answer_ends")) == label.span.last);
  }

  void compare_rest(const std::string& reason, const data::JsonRecord& raw) const {
    const prepare::Converted converted = preparation_.convert(raw);
    CAPTURE(converted.id, reason, test::fault_words(converted.faults));
    REQUIRE(explains(converted.faults, reason));
    if (reason.starts_with("exception: ")) return;
    const Record record = read(raw);
    const Features f = lay_out(record, *group_.tokenizer, group_.config);
    REQUIRE(ReferenceLabel(record, f, group_.config.long_seq_len).dropped == reason);
  }

  // The pieces of the records with model inputs, as the reference lists them for debugging.
  void require_debug_tokens(const Numbers& converted) const {
    const auto indices = group_.file.groups(group_.name + "/derived");
    for (const auto& [name, ids] : {std::pair{"long_tokens", &Features::long_token_ids},
                                    std::pair{"global_tokens", &Features::global_token_ids}}) {
      const std::string folder = group_.name + "/extra/" + name;
      test::require_names(group_.file, folder, {indices.begin(), indices.end()});
      for (const std::string& index : indices) {
        const Features f = lay_out(read(record(converted.at(std::stoul(index)))), *group_.tokenizer, group_.config);
        Words pieces;
        for (const std::int64_t id : f.*ids) pieces.push_back(group_.tokenizer->piece(static_cast<std::int32_t>(id)));
        REQUIRE(group_.file.read_strings(folder + "/" + index) == pieces);
      }
    }
  }

  const Group& group_;
  const std::vector<data::JsonRecord>& records_;
  HotpotqaPreparation preparation_;
  GoldenFeatures golden_;
};

}  // namespace

TEST_CASE("features equal the published preparation's, record by record, in every configuration",
          "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden HotpotQA features");
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    REQUIRE(file.string_attribute("", "task") == "hotpotqa");
    test::require_groups(
        file, "",
        {"spalbert_L2048_G256_train", "spbigbird_L1024_G48_train", "spbigbird_L4096_G256_predict",
         "spbigbird_L4096_G256_train", "wp_L4096_G256_predict", "wp_L4096_G256_train", "wp_L4096_G256_train_bio",
         "wp_L512_G64_predict", "wp_L512_G64_train", "wp_L512_G64_train_bio"});
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      const fs::path source = *data / "hotpotqa" / file.string_attribute(name, "source_file");
      REQUIRE(file.string_attribute(name, "source_sha256") == data::sha256_of_file(source));
      const Group group(file, name, *data, false);
      GroupComparison(group, test::shared_raw_records(source, data::RecordLayout::array)).run();
    }
    test::LeftUnread left = kAboutTheFile;
    left["*/derived*"] = "compared in feed_test.cpp";
    file.require_all_read("", left);
  }
}

TEST_CASE("invented edge cases give the published preparation's features or our codes", "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_edge_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden HotpotQA edge cases");
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    const fs::path named = test::golden_beside(path, "hotpotqa_edge_features", "hotpotqa_edge_records.json");
    const auto records = test::read_raw_records(named, data::RecordLayout::array);
    REQUIRE_FALSE(file.groups().empty());
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      const Group group(file, name, *data, true);
      GroupComparison(group, records).run();
    }
    file.require_all_read("", kAboutTheFile);
  }
}
