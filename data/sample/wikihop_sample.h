// Generated WikiHop records in the data set's original JSON format, for the demo, tests and benchmarks without a
// download.
//
// What a model must learn: in the long input the query, every candidate and every document is a separate segment, and
// local attention never crosses segments. Information therefore passes between query and documents through global
// tokens only. Every candidate is mentioned once, in one document, so counting does not help either.
//
// The training file is easier, so that a tiny model learns in hundreds of steps. Choosing a candidate requires
// comparing the query with the subject of the document that mentions it. Neither input is informative alone, so there
// is no gradient towards this solution until both reach the candidate. In training records therefore
//   - documents cover 1 … C candidates in equal shares, always including the answer: the model first learns that
//     mentions matter;
//   - some names are asked for far more often (the j-th with weight 1/j): it next learns that the subject matters;
//   - two hops: a quarter asks for the region itself, a quarter has only the answer's bridge, a quarter some bridges, a
//     quarter all documents. The model learns the second hop first, then to pass on the bridge's region, then to choose
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
  std::int64_t long_tokens = 0;  // upper bound of an example's long input; documents are filled up to about this;
                                 // 0: the facts and a few more tokens

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
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_wikihop_sample(const WikihopSampleOptions& options, const std::filesystem::path& folder,
                          const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
