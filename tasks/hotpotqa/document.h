// Converts a user's document to a HotpotQA record.
#pragma once

#include "tasks/document.h"

namespace etc::hotpotqa {

// Its paragraphs, lists and tables become the record's paragraphs, with the preceding heading as title ("" before the
// first). Consecutive list items or table rows form one paragraph. Sentences are split by Unicode's rules.
const DocumentKind& document_kind();

}  // namespace etc::hotpotqa
