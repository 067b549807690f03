#include "tests/tasks/nq/golden_windows.h"

#include <algorithm>
#include <array>

#include "tests/support/folders.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/golden_source.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

namespace etc::test {

namespace fs = std::filesystem;

namespace {

void require(bool right, const std::string& name, const std::string& what) {
  if (!right) throw std::runtime_error(name + ": " + what);
}

// Every key must be a setting of this preparation or one that is read here, so that none is left out unnoticed.
void require_known_keys(const Json& config, const std::string& name) {
  constexpr std::array kOthers = {"vocab", "tokenizer_type", "include_html_tokens"};
  const auto settings = nq::prepare_settings().names();
  for (const auto& [key, value] : config.items()) {
    const bool known = std::find(kOthers.begin(), kOthers.end(), key) != kOthers.end() ||
                       std::find(settings.begin(), settings.end(), key) != settings.end();
    require(known, name, "unknown option " + key);
  }
}

}  // namespace

GoldenNqConfig::GoldenNqConfig(const GoldenFile& file, const std::string& name)
    : name_(name), folder_(file.path().parent_path()) {
  const Json config = parse_json(file.string_attribute(name, "config"), name);
  require_known_keys(config, name);
  vocab_ = golden_source(folder_, config.at("vocab"));
  lower_case_ = config.at("do_lower_case");
  tokenizer_ = load_tokenizer();
  require(tokenizer_->vocab_sha256() == file.string_attribute(name, "vocab_sha256"), name, "vocab_sha256");
  const std::string kind = config.at("tokenizer_type") == "BERT" ? "wordpiece" : "sentencepiece";
  require(tokenizer_->kind() == kind, name, "tokenizer_type");
  require(config.at("include_html_tokens") == true, name, "include_html_tokens");
  Json settings = nq::prepare_settings().defaults();
  for (const std::string& key : nq::prepare_settings().names()) {
    const auto given = config.find(key);
    if (given != config.end() && !given->is_null()) settings[key] = *given;
  }
  settings["parity"] = "reference";
  settings["special_ids"] = Json::object();
  config_ = nq::read_prepare_config(settings, prepare::Labels::required);
  nq::resolve_special_ids(config_, *tokenizer_);
  // The special ids looked up by piece must be those that the reference used.
  require(nq::json_of(config_.special_ids) == config.at("special_ids"), name, "special_ids");
  records_ = parse_json(file.string_attribute(name, "records_read"), name);
}

std::unique_ptr<data::Tokenizer> GoldenNqConfig::load_tokenizer() const {
  return shared_tokenizer(vocab_, {.do_lower_case = lower_case_, .whole_user_pieces = true});
}

GoldenNqConfig::Source GoldenNqConfig::load(const std::string& file, std::size_t index) const {
  static std::map<fs::path, std::vector<data::JsonRecord>> cache;
  const fs::path path = golden_source(folder_, file);
  auto& records = cache[path];
  if (records.empty()) records = read_raw_records(path, data::RecordLayout::lines);
  const data::JsonRecord& raw = records.at(index);
  return {file, raw, raw.value.contains("document_text")};
}

nq::PrepareConfig GoldenNqConfig::config_for(const Source& source) const {
  nq::PrepareConfig config = config_;
  config.input_form = source.simplified ? nq::InputForm::simplified : nq::InputForm::original;
  return config;
}

std::vector<data::Example> GoldenNqConfig::windows() const {
  std::vector<data::Example> all;
  for_each_record([&](const Source& source) {
    const nq::PrepareConfig config = config_for(source);
    prepare::FaultList faults;
    const nq::Record record = read_record(source.raw, config, faults);
    nq::Windows windows = cut_windows(record, tokenize(record, *tokenizer_, config), label_of(record, config), config);
    for (data::Example& example : windows.examples) all.push_back(std::move(example));
  });
  return all;
}

std::vector<fs::path> golden_nq_feature_files() {
  return real_data_folder() ? golden_named("nq_features", ".h5") : std::vector<fs::path>();
}

}  // namespace etc::test
