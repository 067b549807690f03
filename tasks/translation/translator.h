// Trained encoder-decoders as what translates lines of text (translation 8, 14).
#pragma once

#include "tasks/line_translator.h"

namespace etc::translation {

// open() throws Error on vocabularies that differ (both hashes) or that are not as large as the model's tables; UsageError
// on a model that translates nothing, where no folder is named or the vocabulary is not known. A line of more pieces than
// `positions`, </s> counted, is an Error naming it, or cut.
const TranslatorKind& translator_kind();

}  // namespace etc::translation
