// Generated Natural Questions records in the data set's original form (JSON lines with HTML tokens and byte offsets),
// for tests and for trying the task without a download.
//
// What a model must learn: every paragraph, list and table of a page makes the same statement about a different
// subject, and the question, before the page's text, names one subject. The introduction between them is longer than
// the reach of a tiny model's local attention, so only global tokens connect question and answer. Blocks come in random
// order, so that neither position nor the kind of block gives the answer.
//
// The training file is a curriculum, for the reasons data/sample/wikihop_sample.h gives: its pages have 1 … C blocks in
// equal shares, and ask for some subjects far more often (the j-th with weight 1/j). The dev file's pages have all C,
// and ask for every subject equally often.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/sample/before_record.h"
#include "etc_core/base/json_fwd.h"

namespace etc::data {

struct NqSampleOptions {
  std::int64_t records = 2000;  // of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t candidates = 4;    // C: 2 … 20 paragraphs, lists and tables with candidate answers
  std::int64_t long_tokens = 96;  // upper bound of a page's document tokens; blocks are filled up to about this
  // Number of questions in 10 that do not ask for one short answer but, in equal shares, for two; for a long answer
  // only; for a fact not on the page; for yes or no.
  std::int64_t mixed = 0;
};

// Page number `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   question "A is ruled by who";  page <P>intro</P> <P>B is ruled by Y . …</P> <Ul><Li>A is ruled by X .</Li> …</Ul> …
//   one annotation in train, five in dev
Json nq_sample_record(const NqSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.jsonl, DIR/dev.jsonl and DIR/vocab.txt (WordPiece, CLS and the like at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_nq_sample(const NqSampleOptions& options, const std::filesystem::path& folder,
                     const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
