// From a record's texts to the long and the global sequence (task-wikihop 2.2 – 2.8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "tasks/wikihop/prepare_config.h"
#include "tasks/wikihop/record.h"
#include "tasks/wikihop/truncate.h"

namespace etc::wikihop {

struct Sentence {
  std::string_view text;  // part of the record's document
  data::Tokens tokens;
};

// A record's texts as tokens; views into the raw record, which must outlive it. Only the beginning of a long document is
// kept, as much as an example can hold, so memory is bounded by the example's limits and not by the text.
struct TokenizedRecord {
  std::vector<data::Tokens> candidates;
  data::Tokens query;
  std::vector<std::vector<std::int64_t>> sentence_tokens;  // [documents][sentences] token counts
  std::vector<std::vector<Sentence>> beginnings;  // [documents] their first sentences; empty if documents exceed G

  std::int64_t candidate_tokens() const;
  std::int64_t query_tokens() const { return static_cast<std::int64_t>(query.ids.size()); }
};

TokenizedRecord tokenize(const Record& record, const data::Tokenizer& tokenizer, const data::SentenceSplitter& splitter,
                         const PrepareConfig& config);

// Drops sentences from the ends of documents until the long limit and the sentence limit hold; query and candidates must
// leave a budget >= 0.
Truncation truncate(const TokenizedRecord& tokens, const PrepareConfig& config);

// n_l long and n_g global elements; the table of task-wikihop 2.5 defines them.
struct Features {
  std::vector<std::int64_t> long_token_ids, long_token_type_ids, long_sentence_ids, long_paragraph_ids,
      long_paragraph_breakpoints, l2g_linked_ids;                                                   // [n_l]
  std::vector<std::int64_t> global_token_ids, global_token_type_ids, global_paragraph_breakpoints;  // [n_g]
  std::vector<bool> mentioned;  // [candidates]: has a mention in the kept sentences
};

// The sequences of the kept sentences:
//   long    candidates' tokens, query tokens, then per document its sentences' tokens
//   global  one per candidate, one per query token, then per document one and one per kept sentence
// Capacities are not checked here. Cost: linear in the tokens, plus the mention search.
Features lay_out(const Record& record, const TokenizedRecord& tokens, const std::vector<std::int64_t>& kept,
                 const PrepareConfig& config, bool sentencepiece);

}  // namespace etc::wikihop
