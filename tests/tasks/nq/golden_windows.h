// The configurations of golden nq_features files, and their records as this preparation lays them out.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tasks/nq/windows.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// One configuration: its settings and tokenizer, and the raw records it was made from.
class GoldenNqConfig {
 public:
  GoldenNqConfig(const GoldenFile& file, const std::string& name);

  struct Source {
    std::string file;
    data::JsonRecord raw;
    bool simplified = false;
  };

  const std::string& name() const { return name_; }
  const nq::PrepareConfig& config() const { return config_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  nq::PrepareConfig config_for(const Source& source) const;
  std::unique_ptr<data::Tokenizer> load_tokenizer() const;  // another instance

  // Calls visit(source) for each record in reading order.
  template <typename Visit>
  void for_each_record(const Visit& visit) const {
    for (const Json& entry : records_) visit(load(entry[0], entry[1]));
  }

  // The windows that this preparation makes of all records, in order.
  std::vector<data::Example> windows() const;

 private:
  Source load(const std::string& file, std::size_t index) const;

  std::string name_;
  std::filesystem::path folder_;  // of the golden file
  nq::PrepareConfig config_;
  std::filesystem::path vocab_;
  bool lower_case_ = true;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  Json records_;
};

// Golden files of Natural Questions' features; empty without the folders of golden numbers and real data.
std::vector<std::filesystem::path> golden_nq_feature_files();

}  // namespace etc::test
