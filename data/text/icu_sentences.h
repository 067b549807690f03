// Sentence boundaries by Unicode's rules (UAX 29), which need no table files.
#pragma once

#include <memory>

#include "data/text/sentence_splitter.h"

namespace etc::data {

// ICU's root rules, which also apply to English. Sentences have no white space at either end. Every split copies the
// break iterator (about a microsecond), so that threads share no state.
std::unique_ptr<SentenceSplitter> make_icu_splitter();

}  // namespace etc::data
