// The first pass over OpenKP: which key phrases of a page are valid, and which of the pages of one url is kept
// (task-openkp 2.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tasks/openkp/metrics.h"

namespace etc::openkp {

// The phrase as one text: words stripped, empty ones left out, joined by one space.
std::string phrase_text(const Phrase& phrase);

// Whether the phrase occurs in the text as whole words, both lower-cased; an empty one occurs where the text is empty,
// ends in a space or has two in a row.
//   lower_text   the whole text, lower-cased
bool occurs_in_text(std::string_view phrase, std::string_view lower_text);

// Indices of the valid phrases, in order.
std::vector<std::size_t> valid_phrases(const std::vector<Phrase>& phrases, std::string_view text);

// Chooses one page per url: the one with most valid phrases, of equals the first.
class Deduplication {
 public:
  // Pages in source order; valid: how many of its phrases are.
  void add(const std::string& url, std::int64_t page, std::int64_t valid);

  // The chosen page of a url that was added.
  std::int64_t chosen(const std::string& url) const { return best_.at(url).page; }

  // The chosen pages in the order in which their urls appeared first.
  std::vector<std::int64_t> kept() const;

 private:
  struct Best {
    std::int64_t page = 0;
    std::int64_t valid = 0;
  };
  std::unordered_map<std::string, Best> best_;
  std::vector<std::string> order_;
};

}  // namespace etc::openkp
