// A person's document as a HotpotQA record.
#pragma once

#include "tasks/document.h"

namespace etc::hotpotqa {

// Its paragraphs, lists and tables are the record's paragraphs, each under the heading that stands before it ("" before
// the first); list items and table rows in a row are one paragraph. Sentences are cut by Unicode's rules.
const DocumentKind& document_kind();

}  // namespace etc::hotpotqa
