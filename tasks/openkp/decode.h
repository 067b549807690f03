// From n-gram scores to key phrases, and the prediction file (task-openkp 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/openkp/classes.h"
#include "tasks/output.h"

namespace etc::openkp {

struct DecodeOptions {
  std::int64_t max_positions = 100;  // number of best entries considered
  std::int64_t max_phrases = 5;
};

struct ScoredPhrase {
  std::string text;  // words joined by one space, lower-cased
  float score = 0;
  std::int64_t first_word = 0, words = 0;  // position, and number of words of `text`
};

// The distinct phrases with the best scores, best first; among equal scores the shorter phrase first, then the earlier one.
//   text    the page's full text: ranges beyond it are cut, empty phrases left out
std::vector<ScoredPhrase> decode(const PhraseClasses& classes, std::string_view text, const DecodeOptions& options);

// Of each phrase, its share of the page's softmax: exp(z)/Σ exp(z_c) over the classes c. At least one class.
std::vector<double> probabilities(const std::vector<ScoredPhrase>& phrases, const PhraseClasses& classes);

// JSON lines {"url": …, "KeyPhrases": [[phrase], …]}, in the order of the calls.
class PredictionFile {
 public:
  explicit PredictionFile(const std::filesystem::path& target) : output_(target) {}  // "-": standard output
  bool has(const std::string& url) const { return urls_.contains(url); }
  // Throws Error on a repeated url.
  void add(const std::string& url, const std::vector<ScoredPhrase>& phrases);
  void finish();

 private:
  Output output_;
  std::set<std::string> urls_;
};

}  // namespace etc::openkp
