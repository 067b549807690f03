// Generated rows in the form of GLUE's RTE (tab-separated: index, sentence1, sentence2, label): for tests and for trying
// the task out, so that nothing needs downloading.
//
// What makes them worth learning: sentence1 says of several subjects who rules them, sentence2 says it of one, rightly
// or not. A wrong ruler is another subject's where sentence1 tells of several, so that the words of sentence2 are all in
// sentence1 and only which belong together tells. Labels are balanced.
//
// The training file is a curriculum, for the reasons data/sample/wikihop_sample.h gives: its rows are about 1 … C
// subjects in equal shares, those of the dev file all about C.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace etc::data {

struct GlueSampleOptions {
  std::int64_t records = 2000;  // rows of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t subjects = 2;  // C: 1 … 6
};

// Row number `index` of a file ("train" or "dev") without its line end: a function of the options, the file and the
// number alone.
std::string glue_sample_row(const GlueSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.tsv, DIR/dev.tsv and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a temporary
// name first. Equal options give equal bytes on any machine. Throws UsageError when options cannot be meant.
void write_glue_sample(const GlueSampleOptions& options, const std::filesystem::path& folder);

}  // namespace etc::data
