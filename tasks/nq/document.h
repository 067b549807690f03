// A person's document as a Natural Questions record.
#pragma once

#include "tasks/document.h"

namespace etc::nq {

// Its paragraphs, its lists and its tables are the top-level candidates, with their tags as tokens; headings stand
// between them, where neither the preparation nor the model looks. Words end at white space and beside punctuation.
const DocumentKind& document_kind();

}  // namespace etc::nq
