// From n-gram scores to key phrases, and the prediction file (task-openkp 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/output.h"

namespace etc::openkp {

struct DecodeOptions {
  std::int64_t max_positions = 100;  // best entries that are looked at
  std::int64_t max_phrases = 5;
};

struct ScoredPhrase {
  std::string text;  // words joined by one space, lower-cased
  float score = 0;
};

// The distinct phrases behind the best scores, best first; of equal scores the shorter phrase, then the earlier one.
//   logits         [K, P] by rows: entry (k−1, j) scores words j … j+k−1
//   counted_words  entries that reach beyond this many words do not count; P + K: all count, as in the reference, whose
//                  masked entries then may be chosen: ranges beyond the text are cut, empty phrases left out
//   text           the page's full text
std::vector<ScoredPhrase> decode(std::span<const float> logits, std::int64_t positions, std::int64_t counted_words,
                                 std::string_view text, const DecodeOptions& options);

// JSON lines {"url": …, "KeyPhrases": [[phrase], …]}, as they come; with_scores: also "Scores": […].
class PredictionFile {
 public:
  PredictionFile(const std::filesystem::path& target, bool with_scores);  // "-": standard output
  // Throws Error on a url that was there before.
  void add(const std::string& url, const std::vector<ScoredPhrase>& phrases);
  void finish();

 private:
  Output output_;
  bool with_scores_;
  std::set<std::string> urls_;
};

}  // namespace etc::openkp
