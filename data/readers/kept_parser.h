// simdjson parsers, one per thread.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::data {

// A parser keeps the memory needed for its longest and deepest text. It is reused while that memory is small and freed
// after use otherwise. Parsed values are valid until the next use on this thread.
// Parser: simdjson's DOM parser for whole values, or simdjson::ondemand::parser for selected members.
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
