#include "tests/tasks/openkp/golden_pages.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/tasks/golden_source.h"
#include "tests/tasks/shared_tokenizer.h"

namespace etc::test {

namespace fs = std::filesystem;

namespace {

std::vector<data::JsonRecord> records_of(const fs::path& path) {
  if (path.extension() != ".json") return read_raw_records(path, data::RecordLayout::lines);
  const Json document = read_json_file(path);
  std::vector<data::JsonRecord> records;
  for (const Json& one : document.at("cases")) {
    Json record = one.at("record");
    if (!record.at("VDOM").is_string()) record["VDOM"] = json_line(record.at("VDOM"));
    records.push_back(raw_record(json_line(record), std::ssize(records)));
  }
  return records;
}

// Reads every option, so that none is left out unnoticed.
openkp::PrepareConfig config_of(const Json& json, const std::string& stage) {
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  REQUIRE(keys == std::set<std::string>{"do_lower_case", "fixed_block_len", "global_max_length", "kp_max_length",
                                        "long_max_length", "tokenizer", "url_max_code_points", "vocab"});
  REQUIRE((stage == "raw" || stage == "dedup"));
  openkp::PrepareConfig config;
  config.long_max_length = json.at("long_max_length");
  config.global_max_length = json.at("global_max_length");
  config.url_max_code_points = json.at("url_max_code_points");
  config.kp_max_length = json.at("kp_max_length");
  config.fixed_block_len = json.at("fixed_block_len").is_null() ? 0 : json.at("fixed_block_len").get<std::int64_t>();
  config.dedup = stage == "dedup";
  config.first_occurrence = true;
  config.parity = openkp::Parity::reference;
  config.labels_required = false;  // one page is unlabelled
  return config;
}

}  // namespace

const data::JsonRecord& RawPages::record(const PagePlace& place) {
  const auto& [name, index] = place;
  if (!files_.contains(name)) files_[name] = records_of(golden_source(folder_, name));
  return files_[name].at(static_cast<std::size_t>(index));
}

GoldenPages::GoldenPages(const GoldenFile& file, const std::string& name) {
  const Json json = Json::parse(file.string_attribute(name, "config"));
  config_ = config_of(json, file.string_attribute(name, "stage"));
  vocab_ = golden_source(file.path().parent_path(), json.at("vocab"));
  lower_case_ = json.at("do_lower_case");
  tokenizer_ = load_tokenizer();
  REQUIRE(tokenizer_->vocab_sha256() == file.string_attribute(name, "vocab_sha256"));
  REQUIRE(tokenizer_->kind() == json.at("tokenizer").get<std::string>());
  const auto files = file.read_strings(name + "/record/source_file");
  const auto indices = file.read<std::int64_t>(name + "/record/record_index").values;
  REQUIRE(files.size() == indices.size());
  for (std::size_t row = 0; row < files.size(); ++row) places_.emplace_back(files[row], indices[row]);
}

std::unique_ptr<data::Tokenizer> GoldenPages::load_tokenizer() const {
  return shared_tokenizer(vocab_, {.do_lower_case = lower_case_, .whole_user_pieces = true});
}

}  // namespace etc::test
