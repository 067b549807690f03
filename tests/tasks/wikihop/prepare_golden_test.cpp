// The features of real and of invented records against those of the published preparation.
#include <map>

#include "data/readers/json_record.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tasks/wikihop/features.h"
#include "tasks/wikihop/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/shared_tokenizer.h"

using namespace etc;
using namespace etc::wikihop;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

std::vector<fs::path> golden_matching(const std::string& part) {
  std::vector<fs::path> files;
  for (const fs::path& path : test::golden_files(".h5")) {
    if (path.filename().string().find(part) != std::string::npos) files.push_back(path);
  }
  return files;
}

std::vector<data::JsonRecord> read_records(const fs::path& path) {
  data::ByteStream stream(path);
  data::RecordSlicer slicer(stream, data::RecordLayout::array);
  std::vector<data::JsonRecord> records;
  data::RecordSlice slice;
  while (slicer.next(slice)) records.push_back(data::parse_record(slice));
  return records;
}

// One configuration of a golden file.
struct Group {
  const test::GoldenFile& file;
  std::string name;
  PrepareConfig config;
  fs::path vocab;

  Group(const test::GoldenFile& golden, const std::string& group, const fs::path& data) : file(golden), name(group) {
    config.long_seq_len = file.int_attribute(name, "long_seq_len");
    config.global_seq_len = file.int_attribute(name, "global_seq_len");
    config.max_num_sentences = file.int_attribute(name, "max_num_sentences");
    config.parity = Parity::reference;
    vocab = data / "vocab" / file.string_attribute(name, "vocab");
  }
  bool sentencepiece() const { return file.string_attribute(name, "tokenizer") == "sentencepiece"; }
  std::vector<Numbers> feature(const std::string& feature_name) const {
    return file.read_ragged<std::int64_t>(name + "/features/" + feature_name);
  }
  std::vector<std::int64_t> extra(const std::string& extra_name) const {
    return file.read<std::int64_t>(name + "/extra/" + extra_name).values;
  }
};

// The golden array has the reference's padding after the real length.
void require_padded(const Numbers& golden, const Numbers& ours, std::int64_t padding) {
  REQUIRE(ours.size() <= golden.size());
  Numbers padded = ours;
  padded.resize(golden.size(), padding);
  if (padded != golden) {
    for (std::size_t i = 0; i < golden.size(); ++i) {
      CAPTURE(i);
      REQUIRE(padded[i] == golden[i]);
    }
  }
}

// All features of one configuration; read once, compared record by record.
class GoldenFeatures {
 public:
  explicit GoldenFeatures(const Group& group) {
    for (const char* feature : {"long_token_ids", "long_token_type_ids", "long_sentence_ids", "long_paragraph_ids",
                                "long_paragraph_breakpoints", "l2g_linked_ids", "global_token_ids",
                                "global_token_type_ids", "global_paragraph_breakpoints", "label_id"}) {
      numbers_[feature] = group.feature(feature);
    }
    candidates_ = group.file.read_ragged_strings(group.name + "/features/candidates");
    removal_order_ = group.file.read_ragged<std::int64_t>(group.name + "/extra/removal_order");
    kept_ = group.file.read_ragged<std::int64_t>(group.name + "/extra/sentences_kept_per_document");
    long_length_ = group.extra("long_length");
    global_length_ = group.extra("global_length");
  }

  void require_equal(std::size_t i, const Record& record, const Truncation& truncation, const Features& f) const {
    REQUIRE(removal_order_[i] == truncation.removal_order);
    REQUIRE(kept_[i] == truncation.kept);
    REQUIRE(candidates_[i] == record.candidates);
    REQUIRE(long_length_[i] == static_cast<std::int64_t>(f.long_token_ids.size()));
    REQUIRE(global_length_[i] == static_cast<std::int64_t>(f.global_token_ids.size()));
    require_feature(i, "long_token_ids", f.long_token_ids, 0);
    require_feature(i, "long_token_type_ids", f.long_token_type_ids, 0);
    require_feature(i, "long_sentence_ids", f.long_sentence_ids, -1);
    require_feature(i, "long_paragraph_ids", f.long_paragraph_ids, -1);
    require_feature(i, "long_paragraph_breakpoints", f.long_paragraph_breakpoints, 0);
    require_feature(i, "l2g_linked_ids", f.l2g_linked_ids, -1);
    require_feature(i, "global_token_ids", f.global_token_ids, 0);
    require_feature(i, "global_token_type_ids", f.global_token_type_ids, 0);
    require_feature(i, "global_paragraph_breakpoints", f.global_paragraph_breakpoints, 0);
    require_feature(i, "label_id", {record.label}, 0);
  }

 private:
  void require_feature(std::size_t i, const std::string& name, const Numbers& ours, std::int64_t padding) const {
    CAPTURE(name);
    require_padded(numbers_.at(name)[i], ours, padding);
  }

  std::map<std::string, std::vector<Numbers>> numbers_;
  std::vector<std::vector<std::string>> candidates_;
  std::vector<Numbers> removal_order_, kept_;
  std::vector<std::int64_t> long_length_, global_length_;
};

// The codes with which a converted record is rejected.
std::vector<std::string> reject_codes(const prepare::Converted& converted) {
  std::vector<std::string> codes;
  for (const data::Fault& fault : converted.faults.rows()) {
    if (fault.severity == data::Severity::reject) codes.push_back(fault.code);
  }
  return codes;
}

// Whether our codes match the reason for which the reference stops on a record.
bool explains(const std::vector<std::string>& codes, const std::string& reason) {
  const auto has = [&](const char* code) { return std::find(codes.begin(), codes.end(), code) != codes.end(); };
  if (reason.starts_with("global overflow")) return has("global_overflow");
  if (reason.starts_with("endless loop")) return has("prefix_too_long");
  if (reason == "exception: AssertionError") return has("candidate_empty") || has("global_overflow");
  if (reason == "exception: IndexError") return has("candidate_empty");
  if (reason == "exception: ValueError") {
    return has("answer_not_candidate") || has("answer_untrimmed") || has("too_few_candidates");
  }
  return !codes.empty();
}

// Compares one group. records: file name → its records; the edge files have none, their name is "".
void compare_group(const Group& group, const std::map<std::string, std::vector<data::JsonRecord>>& records,
                   const data::SentenceSplitter& splitter, const std::string& splitter_name) {
  const test::GoldenFile& file = group.file;
  const auto find = [&](const std::string& prefix, std::size_t i) -> const data::JsonRecord& {
    const auto ids = file.read_strings(prefix + "/id");
    if (!file.has(prefix + "/record_index")) {
      for (const data::JsonRecord& record : records.at("")) {
        if (record.value["id"] == ids[i]) return record;
      }
      fail("test", "no record {}", ids[i]);
    }
    const auto names = file.read_strings(prefix + "/file");
    const auto index = file.read<std::int64_t>(prefix + "/record_index").values[i];
    const data::JsonRecord& record = records.at(names[i]).at(static_cast<std::size_t>(index));
    REQUIRE(record.value["id"] == ids[i]);
    return record;
  };

  const WikihopPreparation preparation(group.config, test::shared_tokenizer(group.vocab),
                                       data::load_splitter(splitter_name));
  const auto tokenizer = test::shared_tokenizer(group.vocab);
  const GoldenFeatures golden(group);
  const auto ids = file.read_strings(group.name + "/id");
  REQUIRE(!ids.empty());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(ids[i]);
    const data::JsonRecord& raw = find(group.name, i);
    prepare::FaultList faults;
    const Record record = read_record(raw, group.config, faults);
    const TokenizedRecord tokens = tokenize(record, *tokenizer, splitter, group.config);
    const Truncation truncation = truncate(tokens, group.config);
    golden.require_equal(i, record, truncation,
                         lay_out(record, tokens, truncation.kept, group.config, group.sentencepiece()));

    // The whole conversion gives the same result, except that we reject records without documents or query.
    const prepare::Converted converted = preparation.convert(raw);
    const auto codes = reject_codes(converted);
    if (raw.value["supports"].empty() || tokens.query.ids.empty()) {
      REQUIRE(codes == std::vector<std::string>{tokens.query.ids.empty() ? "query_empty" : "supports_empty"});
    } else {
      REQUIRE(codes.empty());
      REQUIRE(converted.examples.size() == 1);
      REQUIRE(std::get<std::int64_t>(converted.examples[0].at("label_id")) == record.label);
    }
  }
  if (!file.has(group.name + "/not_converted")) return;
  const auto reasons = file.read_strings(group.name + "/not_converted/reason");
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const data::JsonRecord& raw = find(group.name + "/not_converted", i);
    const prepare::Converted converted = preparation.convert(raw);
    CAPTURE(converted.id, reasons[i]);
    REQUIRE(explains(reject_codes(converted), reasons[i]));
  }
}

}  // namespace

TEST_CASE("features equal the published preparation's, record by record, in every configuration", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = golden_matching("wikihop_features");
  if (files.empty() || !data) return test::skip("no golden WikiHop features");
  const std::string splitter_name = "punkt:" + (*data / "punkt_english").string();
  const auto splitter = data::load_splitter(splitter_name);
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    std::map<std::string, std::vector<data::JsonRecord>> records;
    for (const Json& source : Json::parse(file.string_attribute("", "source_files"))) {
      const std::string name = source.at("name");
      records[name] = read_records(*data / "wikihop" / name);
    }
    for (const std::string& name : file.groups()) {
      if (name == "sentences") continue;
      CAPTURE(name);
      compare_group(Group(file, name, *data), records, *splitter, splitter_name);
    }
  }
}

TEST_CASE("invented edge cases give the published preparation's features or our codes", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = golden_matching("wikihop_edge_features");
  if (files.empty() || !data) return test::skip("no golden WikiHop edge cases");
  const std::string splitter_name = "punkt:" + (*data / "punkt_english").string();
  const auto splitter = data::load_splitter(splitter_name);
  for (const fs::path& path : files) {
    CAPTURE(path);
    const test::GoldenFile file(path);
    std::string records_name = path.filename().string();
    records_name.replace(records_name.find("edge_features.h5"), std::string::npos, "edge_records.json");
    std::map<std::string, std::vector<data::JsonRecord>> records;
    records[""] = read_records(path.parent_path() / records_name);
    for (const std::string& name : file.groups()) {
      CAPTURE(name);
      compare_group(Group(file, name, *data), records, *splitter, splitter_name);
    }
  }
}

TEST_CASE("documents are cut into the published preparation's sentences", "[wikihop][golden]") {
  const auto data = test::real_data_folder();
  const auto files = golden_matching("wikihop_features");
  if (files.empty() || !data) return test::skip("no golden WikiHop features");
  const auto splitter = data::load_splitter("punkt:" + (*data / "punkt_english").string());
  for (const fs::path& path : files) {
    const test::GoldenFile file(path);
    if (!file.has("sentences")) continue;
    const auto ids = file.read_strings("sentences/id");
    const auto names = file.read_strings("sentences/file");
    const auto counts = file.read_ragged<std::int64_t>("sentences/sentences_per_document");
    const auto begin = file.read_ragged<std::int64_t>("sentences/begin");
    const auto end = file.read_ragged<std::int64_t>("sentences/end");
    std::map<std::string, std::vector<data::JsonRecord>> records;
    std::map<std::string, std::size_t> next;  // records of one file come in source order
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CAPTURE(ids[i], names[i]);
      if (!records.contains(names[i])) records[names[i]] = read_records(*data / "wikihop" / names[i]);
      const Json& record = records[names[i]].at(next[names[i]]++).value;
      REQUIRE(record["id"] == ids[i]);
      Numbers our_counts, our_begin, our_end;
      for (const Json& document : record["supports"]) {
        const auto text = document.get<std::string>();
        // Golden offsets count characters, ours bytes.
        const auto characters = [&](std::int64_t bytes) {
          return static_cast<std::int64_t>(std::count_if(text.begin(), text.begin() + bytes, [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
          }));
        };
        const auto spans = splitter->split(text);
        our_counts.push_back(static_cast<std::int64_t>(spans.size()));
        for (const auto& span : spans) {
          our_begin.push_back(characters(span.begin));
          our_end.push_back(characters(span.end));
        }
      }
      REQUIRE(our_counts == counts[i]);
      REQUIRE(our_begin == begin[i]);
      REQUIRE(our_end == end[i]);
    }
  }
}
