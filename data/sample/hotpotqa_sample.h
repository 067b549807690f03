// Generated HotpotQA records in the data set's original JSON format, for tests and for trying the task without a
// download.
//
// What a model must learn: question and paragraphs are separate segments, which local attention never crosses, and
// every paragraph makes the same statement about a different subject. The relevant paragraph, its answer and the
// supporting sentences can therefore be found only through global tokens. Paragraphs and sentences come in random
// order.
//
// The training file is easier, for the reason wikihop_sample.h gives: its records have paragraphs about 1 … C of the C
// subjects in equal shares (two hops: for each kind independently), always including those that answer, and ask for
// some names far more often (the j-th with weight 1/j). The dev file has all paragraphs, and asks for every name
// equally often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/sample/before_record.h"

namespace etc::data {

struct HotpotqaSampleOptions {
  std::int64_t records = 2000;  // of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t hops = 1;         // 1: one paragraph answers; 2: it names the paragraph that does
  std::int64_t subjects = 4;     // 2 … 10 candidates for the answer, one paragraph each, two with two hops
  std::int64_t long_tokens = 0;  // upper bound of an example's long input; paragraphs are filled up to about this;
                                 // 0: the facts and a few more tokens
  std::int64_t yes_no = 0;       // number of yes/no questions in 10

  std::int64_t most_tokens() const { return long_tokens != 0 ? long_tokens : hops == 2 ? 72 : 40; }
};

struct HotpotqaSampleRecord {
  std::string id, question, answer, type;
  std::vector<std::pair<std::string, std::vector<std::string>>> context;  // title, sentences
  std::vector<std::pair<std::string, std::int64_t>> supporting_facts;     // title, number of the sentence
};

// Record number `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   one hop   "Who ruled A?"               A: "A is ruled by X."      B: "B is ruled by Y."  …
//   two hops  the same                      A: "A belongs to K."       K: "K is ruled by X."  …
//   yes or no "Is A ruled by X?"            the same paragraphs; where the answer is no, X is in another one
HotpotqaSampleRecord hotpotqa_sample_record(const HotpotqaSampleOptions& options, const std::string& file,
                                            std::int64_t index);

// Writes DIR/train.json, DIR/dev.json and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_hotpotqa_sample(const HotpotqaSampleOptions& options, const std::filesystem::path& folder,
                           const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
