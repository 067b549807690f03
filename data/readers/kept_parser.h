// simdjson's parsers of the calling thread.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::data {

// A parser keeps the memory of its longest and deepest text: it is used again while that is little, and given back at
// the end of the use otherwise. What a text was parsed into lasts until the next use on the thread.
// Parser: simdjson's for whole values, or simdjson::ondemand::parser for what is asked for.
template <typename Parser = simdjson::dom::parser>
class KeptParser : NotCopied {
 public:
  KeptParser() {
    if (kept() == nullptr) kept() = std::make_unique<Parser>();
  }
  ~KeptParser() {
    if (kept()->capacity() > kBytesToKeep || kept()->max_depth() > simdjson::DEFAULT_MAX_DEPTH) kept().reset();
  }

  Parser& operator*() const { return *kept(); }
  Parser* operator->() const { return kept().get(); }

 private:
  static constexpr std::size_t kBytesToKeep = 16u << 20;

  static std::unique_ptr<Parser>& kept() {
    static thread_local std::unique_ptr<Parser> parser;
    return parser;
  }
};

}  // namespace etc::data
