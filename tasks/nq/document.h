// Converts a user's document to a Natural Questions record.
#pragma once

#include "tasks/document.h"

namespace etc::nq {

// Its paragraphs, lists and tables become the top-level candidates, with their tags as tokens. Headings lie between them
// and are read neither by the preparation nor by the model. Words are split at white space and at punctuation.
const DocumentKind& document_kind();

}  // namespace etc::nq
