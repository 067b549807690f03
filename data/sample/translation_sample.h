// A generated pair of languages, one sentence a line, so that nothing needs downloading.
//
// The answer is known: a sentence's translation is a function of the sentence alone, and has what makes translation more
// than looking words up. Words have translations of their own; the verb goes to the end of its clause; an adjective goes
// behind its noun and takes the ending of the noun's gender, which only the noun itself tells, and of its number; the
// verb agrees with the number of its subject.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sample/before_record.h"

namespace etc::data {

struct TranslationSampleOptions {
  std::int64_t records = 2000;  // pairs of the training files; the dev files have a fifth of it, at least one
  std::uint64_t seed = 1;
  std::int64_t nouns = 24;   // different nouns, 2 … 48; half as many adjectives and verbs
  std::int64_t clauses = 2;  // of a sentence at most
};

// Source sentence number `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   the small dogs see a cat and …     a clause: subject, verb, object; adjectives may be missing
std::string translation_sample_source(const TranslationSampleOptions& options, const std::string& file,
                                      std::int64_t index);

// Its translation. Throws Error at a word that is none of the language's.
std::string translate_sample(const TranslationSampleOptions& options, const std::string& source);

// Writes DIR/{train,dev}.{source,target} and DIR/vocab.words (subword_vocab.h: all words of both languages), each under a
// temporary name first. Equal options give equal bytes on any machine. Throws UsageError when options cannot be meant.
void write_translation_sample(const TranslationSampleOptions& options, const std::filesystem::path& folder,
                              const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
