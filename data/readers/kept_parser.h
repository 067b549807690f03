// simdjson's parser of the calling thread.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <memory>

namespace etc::data {

// A parser keeps the memory of its longest and deepest text: it is used again while that is little, and given back at
// the end of the use otherwise. What a text was parsed into lasts until the next use on the thread.
class KeptParser {
 public:
  KeptParser() {
    if (kept() == nullptr) kept() = std::make_unique<simdjson::dom::parser>();
  }
  ~KeptParser() {
    if (kept()->capacity() > kBytesToKeep || kept()->max_depth() > simdjson::DEFAULT_MAX_DEPTH) kept().reset();
  }
  KeptParser(const KeptParser&) = delete;
  KeptParser& operator=(const KeptParser&) = delete;

  simdjson::dom::parser& operator*() const { return *kept(); }
  simdjson::dom::parser* operator->() const { return kept().get(); }

 private:
  static constexpr std::size_t kBytesToKeep = 16u << 20;

  static std::unique_ptr<simdjson::dom::parser>& kept() {
    static thread_local std::unique_ptr<simdjson::dom::parser> parser;
    return parser;
  }
};

}  // namespace etc::data
