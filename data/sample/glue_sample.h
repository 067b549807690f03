// Generated rows in the form of GLUE's SST-2 (tab-separated: sentence, label): for tests and for trying the task out, so
// that nothing needs downloading.
//
// What makes them worth learning: a sentence has up to C clauses that praise or blame something, "the mill there is not
// bright", and the last one counts. It praises with a good word or, one time in four, with "not" and a bad one, so that three
// quarters are the most that the words alone tell. Labels are balanced.
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

// Writes DIR/train.tsv, DIR/dev.tsv and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a temporary
// name first. Equal options give equal bytes on any machine. Throws UsageError when options cannot be meant.
void write_glue_sample(const GlueSampleOptions& options, const std::filesystem::path& folder,
                       const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
