// Small SQuAD questions and a vocabulary for them.
#pragma once

#include <string>

#include "tasks/squad/prepare.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

// "un" "##known" is the only word of two pieces.
inline std::string squad_vocabulary() {
  return "[PAD]\n[UNK]\n[CLS]\n[SEP]\n" +
         vocabulary_entries({"who", "?", "q", "a", "b", "c", "d", "e", "un", "##known", "(", ")", "-", "."});
}

inline Json small_question(const std::string& context, const std::string& answer, std::int64_t start,
                           const std::string& id = "1") {
  return {
      {"context", context},
      {"question",
       {{"id", id}, {"question", "Who q?"}, {"answers", Json::array({{{"text", answer}, {"answer_start", start}}})}}}};
}

inline squad::PrepareConfig small_squad_config(std::int64_t seq_len = 16, std::int64_t stride = 4) {
  squad::PrepareConfig config;
  config.seq_len = seq_len;
  config.stride = stride;
  config.question_len = 3;
  return config;
}

inline prepare::Converted converted_question(const Json& question,
                                             const squad::PrepareConfig& config = small_squad_config()) {
  return squad::SquadPreparation(config, tokenizer_of(squad_vocabulary())).convert(raw_record(question.dump()));
}

// The file of these questions, each in a paragraph of its own.
inline Json squad_file(const std::vector<Json>& questions) {
  Json paragraphs = Json::array();
  for (const Json& one : questions) {
    paragraphs.push_back({{"context", one.at("context")}, {"qas", Json::array({one.at("question")})}});
  }
  return {{"version", "1.1"}, {"data", Json::array({{{"title", "t"}, {"paragraphs", paragraphs}}})}};
}

}  // namespace etc::test
