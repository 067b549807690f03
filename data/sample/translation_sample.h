// Generated parallel text of two invented languages, one sentence per line, that needs no download.
//
// The answer is known: a sentence's translation is a function of the sentence alone, and needs more than word look-up.
// Each word has one translation; the verb moves to the end of its clause; an adjective moves behind its noun and takes
// the ending for the noun's gender, which only the noun itself determines, and number; the verb agrees with the number
// of its subject.
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
  std::int64_t clauses = 2;  // maximum per sentence
};

// Source sentence `index` of a file ("train" or "dev"): a function of the options, the file and the number alone.
//   the small dogs see a cat and …     a clause: subject, verb, object; adjectives may be missing
std::string translation_sample_source(const TranslationSampleOptions& options, const std::string& file,
                                      std::int64_t index);

// Its translation. Throws Error at a word that is not in the language.
std::string translate_sample(const TranslationSampleOptions& options, const std::string& source);

// Writes DIR/{train,dev}.{source,target} and DIR/vocab.words (subword_vocab.h: all words of both languages), each under
// a temporary name first. Equal options give equal bytes on any machine. Throws UsageError on invalid options.
void write_translation_sample(const TranslationSampleOptions& options, const std::filesystem::path& folder,
                              const BeforeRecord& before_record = nothing_before);

}  // namespace etc::data
