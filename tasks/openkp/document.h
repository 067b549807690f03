// A person's document as an OpenKP page.
#pragma once

#include "tasks/document.h"

namespace etc::openkp {

// Its blocks are the page's elements, one below the other in a column 800 pixels wide, with 80 characters and 24 pixels to
// a line; headings are twice as large and bold. A text alone does not say what it looks like.
const DocumentKind& document_kind();

}  // namespace etc::openkp
