// The Punkt sentence splitter (Kiss & Strunk, "Unsupervised Multilingual Sentence Boundary Detection", Computational
// Linguistics 32, 2006) as NLTK 3.5 applies it (task-wikihop, Appendix A, whose step numbers the code cites).
#pragma once

#include <memory>

#include "data/text/punkt_tables.h"
#include "data/text/sentence_splitter.h"

namespace etc::data {

// A splitter with these tables. Cost of split: linear in the text; a word is looked up only beside `.`, `?` or `!`.
std::unique_ptr<SentenceSplitter> make_punkt(PunktTables tables);

}  // namespace etc::data
