// The root attributes of a prepared data set. Apart from dataset.h, because most files that read data sets need no JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/json.h"

namespace etc::data {

// Root attributes of task-wikihop 8.2; the writer computes the counts, largest lengths and content hash.
struct DatasetInfo {
  std::string task;
  std::string split;
  std::string vocab_sha256;
  Json preprocess_config;
  std::vector<SourceFile> source_files;
  bool labelled = false;
  std::string unicode_version;
  std::int64_t input_records = 0;
  std::int64_t examples = 0;
  std::int64_t rejected = 0;
  std::int64_t dropped = 0;
  std::int64_t max_long_len = 0;
  std::int64_t max_global_len = 0;
  std::string content_sha256;
  std::vector<MissingPart> missing;  // empty: the data set is whole
};

}  // namespace etc::data
