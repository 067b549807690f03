// Generated rows in the form of GLUE's SST-2 (tab-separated: sentence, label), for tests and for trying the task
// without a download.
//
// What a model must learn: a sentence has up to C clauses that judge something, "the mill there is not bright", and the
// last one determines the label. A clause is positive with a good word or, one time in four, with "not" and a bad one,
// so that the words alone give an accuracy of three quarters at most. Labels are balanced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sample/before_record.h"

namespace etc::data {

struct GlueSampleOptions {
  std::int64_t records = 2000;  // rows of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t clauses = 3;  // C: 1 … 6
};

// Row number `index` of a file ("train" or "dev") without its line end: a function of the options, the file and the
// number alone.
std::string glue_sample_row(const GlueSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.tsv, DIR/dev.tsv and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_glue_sample(const GlueSampleOptions& options, const std::filesystem::path& folder,
                       const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
