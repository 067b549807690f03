// Generated SQuAD questions in the data set's original JSON form, for tests and for trying the task without a download.
//
// What a model must learn: every sentence of a text makes the same statement about a different subject, in random
// order, and the question names one subject. Neither position nor form of a sentence gives the answer.
//
// The training file is a curriculum, for the reasons data/sample/wikihop_sample.h gives: its texts are about 1 … C
// subjects in equal shares, and ask for some subjects far more often (the j-th with weight 1/j). The dev file's texts
// are about all C, and ask for every subject equally often.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/sample/before_record.h"
#include "etc_core/base/json_fwd.h"

namespace etc::data {

struct SquadSampleOptions {
  std::int64_t records = 2000;  // questions of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t subjects = 4;    // C: 2 … 10, subjects of a text
  std::int64_t impossible = 0;  // number of questions in 10 whose subject is not in the text (SQuAD 2.0)
};

// Paragraph number `index` of a file ("train" or "dev") with its one question: a function of the options, the file and
// the number alone.
//   context "B is ruled by Y. The harbour there is very old. A is ruled by X."   question "Who ruled A?"   answer "X"
Json squad_sample_paragraph(const SquadSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.json, DIR/dev.json and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_squad_sample(const SquadSampleOptions& options, const std::filesystem::path& folder,
                        const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
