// Sentence boundaries by Unicode's rules (UAX 29), which need no tables of their own.
#pragma once

#include <memory>

#include "data/text/sentence_splitter.h"

namespace etc::data {

// ICU's root rules, which are those for English, too. Sentences carry no white space at either end. Every split works
// on a copy of the rules' state (about a microsecond), so that threads do not meet.
std::unique_ptr<SentenceSplitter> make_icu_splitter();

}  // namespace etc::data
