// HotpotQA examples for tests: the worked record of task-hotpotqa 2.8 with a small vocabulary, prepared.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/loader/loader.h"
#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/prepare.h"
#include "tests/support/folders.h"
#include "tests/support/small_config.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

// Single letters with a digit are words of one piece; their ids begin at 110, after the special pieces.
inline std::string hotpotqa_vocabulary() {
  return unused_entries(0, 100) + "[UNK]\n" + unused_entries(101, 110) +
         vocabulary_entries(
             {"q0", "q1", "q2", "a0", "b0", "b1", "x0", "x1", "x2", "y0", "y1", "z0", "z1", "known", "no", "yes"});
}

inline std::unique_ptr<data::Tokenizer> hotpotqa_tokenizer() {
  return tokenizer_of(hotpotqa_vocabulary());
}

inline hotpotqa::PrepareConfig hotpotqa_config(hotpotqa::Parity parity, std::int64_t L = 64, std::int64_t G = 32) {
  hotpotqa::PrepareConfig config;
  config.long_seq_len = L;
  config.global_seq_len = G;
  config.parity = parity;
  config.special_ids = hotpotqa::published_special_ids(false);
  return config;
}

// The record of task-hotpotqa 2.8 with this answer and titles as they are tokenised there. Lists of pairs are parsed
// from text, because written in braces they would become objects.
inline Json worked_hotpotqa_record(const std::string& answer, const std::string& id = "w") {
  return {{"_id", id},
          {"question", "q0 q1 q2"},
          {"answer", answer},
          {"supporting_facts", Json::parse(R"([["a0", 1], ["b0 b1", 0]])")},
          {"type", "bridge"},
          {"level", "hard"},
          {"context", Json::parse(R"([["a0", ["x0 x1 x2", " y0 y1"]], ["b0 b1", ["z0 z1"]]])")}};
}

inline data::LoadedExample hotpotqa_example(const Json& record, std::int64_t ordinal = 0, bool labels_required = true) {
  hotpotqa::PrepareConfig config = hotpotqa_config(hotpotqa::Parity::repaired);
  config.labels_required = config.is_training = labels_required;
  const hotpotqa::HotpotqaPreparation preparation(config, hotpotqa_tokenizer());
  return {ordinal, ordinal, preparation.convert(raw_record(json_line(record), ordinal)).examples.at(0)};
}

// Two layers, H = 16, two heads, radius 4, k = 2, room for 128 token ids; no dropout.
inline EtcConfig tiny_hotpotqa_model() {
  EtcConfig config = small_config({.vocabulary = 128});
  config.use_hard_g2l_mask = true;
  return config;
}

}  // namespace etc::test
