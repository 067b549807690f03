// The features of real and of invented records against those of the published preparation.
#include <map>

#include "tasks/hotpotqa/features.h"
#include "tasks/hotpotqa/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/padded.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::hotpotqa;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

// One configuration of a golden file.
struct Group {
  const test::GoldenFile& file;
  std::string name;
  fs::path vocab;
  std::unique_ptr<data::Tokenizer> tokenizer;
  PrepareConfig config;
  bool bio;

  Group(const test::GoldenFile& golden, const std::string& group, const fs::path& data)
      : file(golden),
        name(group),
        vocab(data / "vocab" / file.string_attribute(name, "vocab")),
        tokenizer(test::shared_tokenizer(vocab)),
        bio(file.string_attribute(name, "answer_encoding") == "bio") {
    config.long_seq_len = file.int_attribute(name, "long_seq_len");
    config.global_seq_len = file.int_attribute(name, "global_seq_len");
    config.is_training = file.int_attribute(name, "is_training") != 0;
    config.parity = Parity::reference;
    config.special_ids = published_special_ids(file.string_attribute(name, "tokenizer") == "sentencepiece");
  }
  bool has(const std::string& feature) const { return file.has(name + "/features/" + feature); }
};

// Features of one configuration; read once, compared record by record.
class GoldenFeatures {
 public:
  explicit GoldenFeatures(const Group& group) : group_(group) {
    for (const std::string& feature : group.file.groups(group.name + "/features")) {
      const std::string path = group.name + "/features/" + feature;
      if (feature == "unique_ids" || feature == "type" || feature == "level") {
        texts_[feature] = group.file.read_ragged_strings(path);
      } else {
        numbers_[feature] = group.file.read_ragged<std::int64_t>(path);
      }
    }
    const std::string extra = group.name + "/extra/";
    for (const char* name : {"answer_span_begins", "answer_span_ends"}) {
      if (group.file.has(extra + name)) numbers_[name] = group.file.read_ragged<std::int64_t>(extra + name);
    }
    for (const char* name : {"long_length", "global_length", "num_skipped"}) {
      if (group.file.has(extra + name)) scalars_[name] = group.file.read<std::int64_t>(extra + name).values;
    }
  }

  // label: null where the record has none.
  void require_equal(std::size_t i, const Record& record, const Features& f, const Label* label) const {
    require_numbers(i, "long_token_ids", f.long_token_ids, 0);
    require_numbers(i, "long_token_type_ids", f.long_token_type_ids, 0);
    require_numbers(i, "long_sentence_ids", f.long_sentence_ids, -1);
    require_numbers(i, "long_paragraph_ids", f.long_paragraph_ids, -1);
    require_numbers(i, "long_paragraph_breakpoints", f.long_paragraph_breakpoints, 0);
    require_numbers(i, "long_tokens_to_unigrams", f.long_tokens_to_unigrams, -1);
    require_numbers(i, "global_token_ids", f.global_token_ids, 0);
    require_numbers(i, "global_token_type_ids", f.global_token_type_ids, 0);
    require_numbers(i, "global_paragraph_breakpoints", f.global_paragraph_breakpoints, 0);
    require_numbers(i, "global_paragraph_ids", f.global_paragraph_ids, -1);
    require_numbers(i, "global_sentence_ids", f.global_sentence_ids, -1);
    require_numbers(i, "supporting_facts", f.supporting_facts, 0);
    require_text(i, "unique_ids", record.id);
    require_text(i, "type", record.type);
    require_text(i, "level", record.level);
    require_scalar(i, "long_length", std::ssize(f.long_token_ids));
    require_scalar(i, "global_length", std::ssize(f.global_token_ids));
    require_scalar(i, "num_skipped", f.skipped_for_long + f.skipped_for_global);
    if (label == nullptr) return;
    require_numbers(i, "answer_types", {static_cast<std::int64_t>(label->type)}, 0);
    require_numbers(i, "answer_begins", {label->span.first}, 0);
    require_numbers(i, "answer_ends", {label->span.last}, 0);
    Numbers begins, ends;
    for (const AnswerSpan& span : f.answer_spans) {
      begins.push_back(span.tokens.first);
      ends.push_back(span.tokens.last);
    }
    require_numbers(i, "answer_span_begins", begins, 0);
    require_numbers(i, "answer_span_ends", ends, 0);
    require_bio(i, f);
  }

 private:
  void require_numbers(std::size_t i, const std::string& name, const Numbers& ours, std::int64_t padding) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return;
    CAPTURE(name);
    test::require_padded(found->second[i], ours, padding);
  }

  void require_bio(std::size_t i, const Features& f) const {
    const auto found = numbers_.find("answer_bio_ids");
    if (found == numbers_.end()) return;
    // The reference's array is one too long where a span ends before it begins (quirk H14); such labels do not exist
    // here.
    if (std::ssize(found->second[i]) != group_.config.long_seq_len) return;
    test::require_padded(found->second[i], bio_labels(f.answer_spans, group_.config.long_seq_len), std::int64_t{2});
  }

  void require_text(std::size_t i, const std::string& name, const std::string& ours) const {
    const auto found = texts_.find(name);
    if (found != texts_.end()) REQUIRE(found->second[i] == std::vector<std::string>{ours});
  }

  void require_scalar(std::size_t i, const std::string& name, std::int64_t ours) const {
    CAPTURE(name);
    const auto found = scalars_.find(name);
    if (found != scalars_.end()) REQUIRE(found->second[i] == ours);
  }

  const Group& group_;
  std::map<std::string, std::vector<Numbers>> numbers_;
  std::map<std::string, std::vector<std::vector<std::string>>> texts_;
  std::map<std::string, std::vector<std::int64_t>> scalars_;
};

// Whether the faults match the reason for which the reference does not convert a record.
bool explains(const prepare::FaultList& faults, const std::string& reason) {
  const auto drops = [&](const char* code) { return test::has_fault(faults, data::Severity::drop, code); };
  if (reason == "dropped: no supporting fact label") return drops("no_sf_label") || faults.rejected();
  if (reason.starts_with("dropped: answer")) {
    return drops("answer_not_found") || drops("answer_beyond_limit") || drops("answer_empty") || faults.rejected();
  }
  return faults.rejected() || faults.dropped();
}

// Whether all faults that reject or drop a record which the reference converts are intended differences: this
// preparation is stricter there.
bool stricter_than_reference(const prepare::FaultList& faults) {
  for (const data::Fault& row : faults.rows()) {
    if (row.severity != data::Severity::reject && row.severity != data::Severity::drop) continue;
    const bool ours = row.code == "answer_span_inverted" || row.code == "answer_empty" || row.code == "context_empty" ||
                      row.code == "bad_character";
    if (!ours) return false;
  }
  return true;
}

void compare_group(const Group& group, const std::vector<data::JsonRecord>& records) {
  const test::GoldenFile& file = group.file;
  const auto find = [&](const std::string& prefix, const std::vector<std::string>& ids,
                        std::size_t i) -> const data::JsonRecord& {
    if (file.has(prefix + "/record_index")) {
      const auto index = file.read<std::int64_t>(prefix + "/record_index").values[i];
      const data::JsonRecord& record = records.at(static_cast<std::size_t>(index));
      REQUIRE(record.value["_id"] == ids[i]);
      return record;
    }
    const auto equal = [&](const data::JsonRecord& r) { return r.value["_id"] == ids[i]; };
    const auto found = std::find_if(records.begin(), records.end(), equal);
    REQUIRE(found != records.end());
    return *found;
  };
  PrepareConfig lenient = group.config;
  lenient.labels_required = group.config.is_training;
  const HotpotqaPreparation preparation(lenient, test::shared_tokenizer(group.vocab));
  const GoldenFeatures golden(group);
  const auto ids = file.read_strings(group.name + "/id");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(ids[i]);
    const data::JsonRecord& raw = find(group.name, ids, i);
    prepare::FaultList faults;
    const Record record = read_record(raw, lenient, faults);
    const Features f = lay_out(record, *group.tokenizer, group.config);
    const Label label = group.config.is_training ? choose_label(record, f, group.config) : Label();
    golden.require_equal(i, record, f, group.config.is_training ? &label : nullptr);
    // The whole conversion gives the same result.
    const prepare::Converted converted = preparation.convert(raw);
    CAPTURE(test::fault_words(converted.faults));
    if (converted.faults.rejected() || converted.faults.dropped()) {
      REQUIRE(stricter_than_reference(converted.faults));
      continue;
    }
    REQUIRE(converted.examples.size() == 1);
    const data::Example& example = converted.examples[0];
    REQUIRE(std::get<Numbers>(example.at("long_token_ids")) == f.long_token_ids);
    if (group.config.is_training) REQUIRE(std::get<std::int64_t>(example.at("answer_begins")) == label.span.first);
  }
  if (!file.has(group.name + "/not_converted")) return;
  const std::string rest = group.name + "/not_converted";
  const auto reasons = file.read_strings(rest + "/reason");
  const auto rest_ids = file.read_strings(rest + "/id");
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const prepare::Converted converted = preparation.convert(find(rest, rest_ids, i));
    CAPTURE(rest_ids[i], reasons[i], test::fault_words(converted.faults));
    REQUIRE(explains(converted.faults, reasons[i]));
  }
}

}  // namespace

TEST_CASE("features equal the published preparation's, record by record, in every configuration",
          "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden HotpotQA features");
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      const std::string source = file.string_attribute(name, "source_file");
      compare_group(Group(file, name, *data),
                    test::shared_raw_records(*data / "hotpotqa" / source, data::RecordLayout::array));
    }
  }
}

TEST_CASE("invented edge cases give the published preparation's features or our codes", "[tasks][hotpotqa][golden]") {
  const auto data = test::real_data_folder();
  const auto files = test::golden_named("hotpotqa_edge_features", ".h5");
  if (files.empty() || !data) return test::skip("no golden HotpotQA edge cases");
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    std::string records_name = path.filename().string();
    records_name.replace(records_name.find("edge_features.h5"), std::string::npos, "edge_records.json");
    const auto records = test::read_raw_records(path.parent_path() / records_name, data::RecordLayout::array);
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      compare_group(Group(file, name, *data), records);
    }
  }
}
