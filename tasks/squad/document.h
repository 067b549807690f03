// Converts a user's document to a SQuAD question.
#pragma once

#include "tasks/document.h"

namespace etc::squad {

// Its blocks, including headings, become the lines of one context.
const DocumentKind& document_kind();

}  // namespace etc::squad
