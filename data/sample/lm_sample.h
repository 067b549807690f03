// Generated texts whose last character equals the first one: a test of copying over a long distance.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sample/before_record.h"

namespace etc::data {

struct LmSampleOptions {
  std::int64_t records = 1000;  // texts of the training file; the dev file has a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t distance =
      40;  // minimum of characters between the letter and the question mark; up to half as many are added
  std::int64_t letters = 16;  // capital letters to choose from, 2 … 26
};

// Text number `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   Q                   a capital letter
//   cdefghab…           a … h in cyclic order, from a random one on
//   ?Q                  the question mark and the answer: the same letter
std::string lm_sample_text(const LmSampleOptions& options, const std::string& file, std::int64_t index);

// Writes DIR/{train,dev}.txt, a text on each line, and DIR/vocab.chars (character_vocab.h), each under a temporary name
// first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_lm_sample(const LmSampleOptions& options, const std::filesystem::path& folder,
                     const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
