// Prediction files and gold key phrases of OpenKP: JSON lines keyed by url (task-openkp 1.2, 5, 6.1, 9).
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/openkp/metrics.h"

namespace etc::openkp {

// {"url": …, "KeyPhrases": [[word, …], …]} per line. Throws Error naming file, line, url and element: no such object, a
// phrase that is no list of strings (the official scorer would take a string apart into letters), a url that occurs
// twice.
PhraseMap read_predictions(const std::filesystem::path& path);

// The same members of raw records, other members ignored. Of a repeated url the last record counts, as in the official
// scorer. Throws Error as above, and with its place for a page without a key phrase to compare with.
PhraseMap read_gold(const std::vector<std::filesystem::path>& paths);

}  // namespace etc::openkp
