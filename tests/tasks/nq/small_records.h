// A small vocabulary and the record of task-nq 1.2, for tests of preparation.
#pragma once

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

inline std::string small_nq_vocabulary() {
  return "[PAD]\n" + unused_entries(1, 100) +
         vocabulary_entries({"[UNK]", "[CLS]", "[SEP]", "[unused102]", "[unused103]", "which", "fish", "live", "in",
                             "blue", "lake", "is", "de", "##ep", "tr", "##out", "pike", "."});
}

inline std::unique_ptr<data::Tokenizer> small_nq_tokenizer() {
  return tokenizer_of(small_nq_vocabulary());
}

// The record of task-nq 1.2: two top-level candidates, two more inside the second, two short answers.
inline Json worked_nq_record() {
  Json tokens = Json::array();
  std::int64_t byte = 12;
  for (const char* text : {"<H1>", "Lake", "</H1>", "<P>", "Blue", "lake", "is", "deep", "</P>", "<Ul>", "<Li>",
                           "trout", "</Li>", "<Li>", "pike", "</Li>", "</Ul>"}) {
    const std::int64_t end = byte + static_cast<std::int64_t>(std::string(text).size());
    tokens.push_back({{"token", text}, {"start_byte", byte}, {"end_byte", end}, {"html_token", text[0] == '<'}});
    byte = end;
  }
  const auto span = [&](std::int64_t start, std::int64_t end) {
    return Json{{"start_token", start},
                {"end_token", end},
                {"start_byte", tokens[static_cast<std::size_t>(start)]["start_byte"]},
                {"end_byte", tokens[static_cast<std::size_t>(end - 1)]["end_byte"]}};
  };
  Json candidates = Json::array();
  for (const auto& [start, end, top] : {std::tuple(3, 9, true), {9, 17, true}, {10, 13, false}, {13, 16, false}}) {
    candidates.push_back(span(start, end));
    candidates.back()["top_level"] = top;
  }
  Json long_answer = span(9, 17);
  long_answer["candidate_index"] = 1;
  return {{"example_id", -4711000000000000123},
          {"question_text", "which fish live in blue lake"},
          {"document_url", "https://synthetic.example/lake"},
          {"document_title", "Blue Lake"},
          {"document_tokens", tokens},
          {"long_answer_candidates", candidates},
          {"annotations",
           {{{"annotation_id", 99},
             {"yes_no_answer", "NONE"},
             {"long_answer", long_answer},
             {"short_answers", {span(11, 12), span(14, 15)}}}}}};
}

// The simplified form of an original record (task-nq 1.3).
inline Json simplified_nq_record(Json record) {
  std::string text;
  for (const Json& token : record["document_tokens"]) {
    std::string word = token["token"];
    for (char& c : word) c = c == ' ' ? '_' : c;
    text += (text.empty() ? "" : " ") + word;
  }
  const auto without_bytes = [](Json& span) {
    span.erase("start_byte");
    span.erase("end_byte");
  };
  for (Json& candidate : record["long_answer_candidates"]) without_bytes(candidate);
  for (Json& annotation : record["annotations"]) {
    without_bytes(annotation["long_answer"]);
    for (Json& span : annotation["short_answers"]) without_bytes(span);
  }
  for (const char* key : {"document_tokens", "document_title"}) record.erase(key);
  record["document_text"] = text;
  return record;
}

// The lines of a report.
inline std::vector<Json> nq_report_rows(const std::filesystem::path& path) {
  std::vector<Json> rows;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

}  // namespace etc::test
