// Golden SQuAD features: their groups, the records they were made from, and the settings.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/squad/prepare_config.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/shared_tokenizer.h"

namespace etc::test {

inline bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Groups with examples: those of the root, and those within a group that has none itself ("edge/eval").
inline std::vector<std::string> golden_squad_groups(const GoldenFile& file) {
  std::vector<std::string> groups;
  for (const std::string& name : file.groups()) {
    if (has_name(file.groups(name), "examples")) {
      groups.push_back(name);
      continue;
    }
    for (const std::string& inner : file.groups(name)) groups.push_back(name + "/" + inner);
  }
  return groups;
}

// The settings of a group ("L384_S128_Q64", …).
inline std::vector<std::string> golden_squad_settings(const GoldenFile& file, const std::string& group) {
  std::vector<std::string> names = file.groups(group);
  std::erase_if(names, [](const std::string& name) { return name == "examples" || name == "skipped"; });
  return names;
}

inline squad::PrepareConfig golden_squad_config(const GoldenFile& file, const std::string& group,
                                                const std::string& setting) {
  const std::string path = group + "/" + setting;
  squad::PrepareConfig config;
  config.seq_len = file.int_attribute(path, "max_seq_length");
  config.stride = file.int_attribute(path, "doc_stride");
  config.question_len = file.int_attribute(path, "max_query_length");
  config.do_lower_case = file.int_attribute(path, "do_lower_case") != 0;
  config.version_2 = file.int_attribute(group, "version_2_with_negative") != 0;
  config.is_training = file.int_attribute(group, "is_training") != 0;
  return config;
}

inline std::vector<data::JsonRecord> golden_squad_records(const GoldenFile& file, const std::string& group) {
  const std::filesystem::path folder = file.path().parent_path();
  const std::string name = file.string_attribute(group, "records_file");
  if (!file.has_attribute(group, "records_key")) {
    return read_raw_records(folder / "records" / name, data::RecordLayout::questions);
  }
  const Json all = read_json_file(folder / name);
  const TemporaryFolder copy;
  write_file(copy / "records.json", all.at(file.string_attribute(group, "records_key")).dump(1));
  return read_raw_records(copy / "records.json", data::RecordLayout::questions);
}

inline std::unique_ptr<data::Tokenizer> golden_tokenizer(const std::filesystem::path& data, const std::string& vocab,
                                                         bool lower_case) {
  return shared_tokenizer(data / "vocab" / vocab, {.do_lower_case = lower_case});
}

}  // namespace etc::test
