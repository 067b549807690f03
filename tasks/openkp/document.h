// Converts a user's document to an OpenKP page.
#pragma once

#include "tasks/document.h"

namespace etc::openkp {

// Its blocks become the page's elements. Since a text has no layout, one is assumed: one element below the other in a
// column 800 pixels wide, lines of 80 characters and 24 pixels height, headings twice as large and bold.
const DocumentKind& document_kind();

}  // namespace etc::openkp
