// Generated WikiHop records in the data set's original JSON format: for the demo, tests and benchmarks, so that nothing
// needs downloading.
//
// What makes them worth learning: in the model's long input every candidate, the query and every document is a segment
// of its own, and local attention never crosses segments. So nothing the query says reaches a document, or the other
// way round, except through global tokens; every candidate is mentioned once, in one document, so counting does not
// help either.
//
// The training file is easier, so that a tiny model learns in hundreds of steps. To choose by comparing the subject of
// a mention's document with the query is an interaction of two things, neither of which tells anything alone: no
// gradient points there until both reach the candidate. So in training records
//   - documents speak of 1 … C candidates in equal shares, always of the answer: that mentions matter shows first;
//   - some names are asked for far more often (the j-th with weight 1/j): that the subject matters shows next;
//   - two hops: a quarter asks for the region itself, a quarter has the answer's bridge alone, a quarter some bridges,
//     a quarter everything: the second hop is learned first, then to carry the bridge's region there, then to choose
//     the bridge.
// The dev file has all documents, and asks for every name equally often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/sample/before_record.h"

namespace etc::data {

struct WikihopSampleOptions {
  std::int64_t records = 2000;  // of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t hops = 1;         // 1: the query's document names the answer; 2: it names the document that does
  std::int64_t candidates = 4;   // 2 … 20
  std::int64_t long_tokens = 0;  // an example's long input at most; documents are filled up to about this;
                                 // 0: what its facts need and a little more

  std::int64_t most_tokens() const { return long_tokens != 0 ? long_tokens : hops == 2 ? 56 : 48; }
};

struct WikihopSampleRecord {
  std::string id, query, answer;
  std::vector<std::string> candidates, supports;
};

// Record number `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   one hop:  query "ruler_of A"; one document per candidate, "A is ruled by X. …", "B is ruled by Y. …"
//   two hops: query "ruler_of A"; "A belongs to K.", "K is ruled by X."; the same for the other candidates
WikihopSampleRecord wikihop_sample_record(const WikihopSampleOptions& options, const std::string& file,
                                          std::int64_t index);

// Writes DIR/train.json, DIR/dev.json and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError when options cannot be meant.
void write_wikihop_sample(const WikihopSampleOptions& options, const std::filesystem::path& folder,
                          const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
