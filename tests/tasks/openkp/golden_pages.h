// The configurations of golden openkp_features files, and the raw pages they were made from.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tasks/openkp/page.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/raw_records.h"

namespace etc::test {

// A file and the position of a record in it.
using PagePlace = std::pair<std::string, std::int64_t>;

// Raw files by the names that golden files give them, read once. A .json file holds its records, with a decoded VDOM, in
// cases[].record; other files hold one per line.
class RawPages {
 public:
  explicit RawPages(std::filesystem::path folder) : folder_(std::move(folder)) {}  // of the golden file

  const data::JsonRecord& record(const PagePlace& place);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::vector<data::JsonRecord>> files_;
};

// One configuration: its settings and tokenizer, and which record each row was made from.
class GoldenPages {
 public:
  GoldenPages(const GoldenFile& file, const std::string& name);

  const openkp::PrepareConfig& config() const { return config_; }
  bool first_pass_done() const { return config_.dedup; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::unique_ptr<data::Tokenizer> load_tokenizer() const;  // another instance

  const std::vector<PagePlace>& places() const { return places_; }  // of the rows

 private:
  openkp::PrepareConfig config_;
  std::filesystem::path vocab_;
  bool lower_case_ = true;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::vector<PagePlace> places_;
};

// The features that a golden file of decodes or scores refers to.
inline std::filesystem::path openkp_features_beside(const std::filesystem::path& path) {
  return path.parent_path() / "openkp_features.h5";
}

}  // namespace etc::test
