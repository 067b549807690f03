// Prediction files and gold key phrases of OpenKP: JSON lines keyed by url (task-openkp 1.2, 5, 6.1, 9).
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/openkp/metrics.h"

namespace etc::openkp {

// {"url": …, "KeyPhrases": [[word, …], …]} per line. Throws Error naming file, line, url and element for another structure,
// a phrase that is not a list of strings (the official scorer would split a string into letters), or a repeated url.
PhraseMap read_predictions(const std::filesystem::path& path);

// The same members of raw records; other members are ignored. For a repeated url the last record counts, as in the official
// scorer. Throws Error as above, and for a page without a gold key phrase, naming its position.
PhraseMap read_gold(const std::vector<std::filesystem::path>& paths);

}  // namespace etc::openkp
