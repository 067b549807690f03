// A person's document as a SQuAD question.
#pragma once

#include "tasks/document.h"

namespace etc::squad {

// Its blocks, headings among them, are the lines of one context.
const DocumentKind& document_kind();

}  // namespace etc::squad
