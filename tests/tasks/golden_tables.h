// What tests of golden files of the tasks have in common: texts stored as bytes, vocabularies, keys that must be known.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// Requires the object to hold every required key and no other one than the optional ones: a value that no test compares
// may be wrong unnoticed.
inline void require_keys(const Json& object, const std::vector<std::string>& required,
                         const std::vector<std::string>& optional = {}) {
  REQUIRE(object.is_object());
  for (const std::string& key : required) {
    CAPTURE(key);
    REQUIRE(object.contains(key));
  }
  const auto holds = [](const std::vector<std::string>& keys, const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  for (const auto& [key, value] : object.items()) {
    CAPTURE(key);
    REQUIRE((holds(required, key) || holds(optional, key)));
  }
}

// Texts stored as ragged bytes, because they may hold a zero byte.
inline std::vector<std::string> read_byte_texts(const GoldenFile& file, const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& bytes : file.read_ragged<std::uint8_t>(name)) texts.emplace_back(bytes.begin(), bytes.end());
  return texts;
}

// Requires the vocabulary to be the one that the reference read.
inline void require_vocabulary(const GoldenFile& file, const std::string& group, const data::Tokenizer& tokenizer) {
  REQUIRE(tokenizer.vocab_sha256() == file.string_attribute(group, "vocab_sha256"));
}

}  // namespace etc::test
