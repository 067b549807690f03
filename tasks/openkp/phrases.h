// The valid key phrases of a page. Their number decides which of several pages with the same url is kept (task-openkp 2.1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/openkp/metrics.h"

namespace etc::openkp {

// The phrase as one text: words stripped, empty ones left out, joined by one space.
std::string phrase_text(const Phrase& phrase);

// Whether the phrase occurs in the text as whole words, both lower-cased. An empty phrase occurs if the text is empty, ends
// in a space or has two spaces in a row.
//   lower_text   the whole text, lower-cased
bool occurs_in_text(std::string_view phrase, std::string_view lower_text);
// The same for each of many phrases, in one pass over the text.
std::vector<bool> occur_in_text(const std::vector<std::string>& phrases, std::string_view lower_text);

// Indices of the valid phrases, in order.
std::vector<std::size_t> valid_phrases(const std::vector<Phrase>& phrases, std::string_view text);

}  // namespace etc::openkp
