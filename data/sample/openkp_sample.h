// Generated OpenKP pages in the data set's original form (JSON lines, VDOM as a string), for tests and for trying the
// task without a download.
//
// What a model must learn: several elements of a page list phrases with the same wording, each after its topic; only
// the heading, far above them, names the relevant topic. Filler elements between them put the heading out of reach of
// local attention, so only global tokens connect them. Layout features do not help either: those of all elements but
// the heading are equal or random.
//
// The training file is easier, so that a tiny model learns in hundreds of steps (wikihop_sample.h says why): its pages
// list 1 … n topics in equal shares, always including the heading's, and some topics are asked for far more often (the
// j-th with weight 1/j²). Pages of the dev file list all n, and every topic is asked for equally often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/sample/before_record.h"
#include "etc_core/base/json_fwd.h"

namespace etc::data {

struct OpenkpSampleOptions {
  std::int64_t records = 2000;  // of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t topics = 4;        // 2 … 10 elements with candidate phrases
  std::int64_t long_tokens = 84;  // upper bound of a page's words; pages are filled up to about this
};

// Minimum of words between the heading and the first topic.
inline constexpr std::int64_t kOpenkpSampleGap = 35;

// Page number `index` of a file ("train" or "dev") with url, text, VDOM and three KeyPhrases: a function of the
// options, the file and the number alone.
//   heading "Guide to A" · fillers · "B offers p and q r and s daily" · "A offers t and u and v w daily" · …
//   key phrases: t, u, v w
Json openkp_sample_record(const OpenkpSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/train.jsonl, DIR/dev.jsonl and DIR/vocab.txt (WordPiece, special tokens at BERT's places), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_openkp_sample(const OpenkpSampleOptions& options, const std::filesystem::path& folder,
                         const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
