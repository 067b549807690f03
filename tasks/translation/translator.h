// A line translator made from trained encoder-decoders (translation 8, 14).
#pragma once

#include "tasks/line_translator.h"

namespace etc::translation {

// open() throws Error if the models' vocabularies differ (naming both hashes) or do not match the size of the models'
// tables; UsageError on a model that is not a translator, if no folder is named, or if the vocabulary is not known. A line of
// more pieces than `positions`, </s> included, is truncated or is an Error naming it.
const TranslatorKind& translator_kind();

}  // namespace etc::translation
