// A small vocabulary, records of its words and files of them, for tests of preparation.
#pragma once

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/prepare/run.h"
#include "tasks/wikihop/prepare.h"
#include "tests/support/folders.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

// WordPiece: reserved entries, [UNK] at BERT's place, words from 101 on.
inline std::string small_vocabulary() {
  return "[PAD]\n" + unused_entries(1, 100) + "[UNK]\n" +
         vocabulary_entries({"norway", "new",  "york", "country", "oslo",  "is",  "it", "snows", "he",
                             "left",   "city", "film", "##maker", "films", "the", "of", "a",     "b",
                             "x",      "u",    "s",    "text",    ".",     ",",   "_"});
}

inline std::unique_ptr<data::Tokenizer> small_tokenizer() {
  return tokenizer_of(small_vocabulary());
}

// A record without fault.
inline Json small_record(std::int64_t number = 1) {
  return {{"id", "WH_train_" + std::to_string(number)},
          {"query", "country oslo"},
          {"answer", "norway"},
          {"candidates", {"norway", "new york"}},
          {"supports", {"Oslo is Norway. It snows.", "He left New York."}}};
}

// The record of task-wikihop 2.7; a line feed ends a sentence of the ICU splitter.
inline Json worked_record() {
  Json record = small_record(27);
  record["supports"] = {"oslo is norway\nit snows", "he left new york"};
  return record;
}

inline std::string array_of(const std::vector<std::string>& records) {
  std::string text = "[";
  for (const std::string& record : records) text += (text.size() > 1 ? ",\n" : "") + record;
  return text + "]\n";
}

// `count` different records without fault, from number `first` on, of about `bytes_each`.
inline std::string array_of_small_records(std::int64_t first, std::int64_t count, std::size_t bytes_each = 0) {
  std::vector<std::string> records;
  for (std::int64_t i = first; i < first + count; ++i) {
    Json record = small_record(i);
    std::string document;
    for (std::int64_t s = i; document.size() < bytes_each; ++s) {
      document += s % 3 == 0   ? "He left the city of New York. "
                  : s % 3 == 1 ? "It snows. "
                               : "Oslo is a city, he is it. ";
    }
    if (!document.empty()) record["supports"].push_back(document);
    records.push_back(json_line(record));
  }
  return array_of(records);
}

// The lines of a report.
inline std::vector<Json> report_rows(const std::filesystem::path& path) {
  std::vector<Json> rows;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

}  // namespace etc::test
