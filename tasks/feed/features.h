// Features of prepared examples for a task's feed(): read by name, checked, concatenated.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace etc::feed {

using Numbers = std::vector<std::int64_t>;
using Reals = std::vector<float>;
using Texts = std::vector<std::string>;

// A feature by name. Throw Error when it is missing or of another type, which contradicts the schema.
const Numbers& numbers(const data::Example& example, const char* feature);
std::int64_t number(const data::Example& example, const char* feature);
const Reals& reals(const data::Example& example, const char* feature);
const std::string& text(const data::Example& example, const char* feature);
const Texts& texts(const data::Example& example, const char* feature);

std::vector<std::int32_t> narrowed(const Numbers& numbers);
void append(std::vector<std::int32_t>& all, const Numbers& numbers);

// The checks of one example. Example and where (its file) must outlive it. All failures: Error "feed: <where>: example
// <id>: <feature>: … (the file is damaged; run `etc prepare` again)".
class Examination {
 public:
  Examination(const data::Example& example, const std::string& where) : example_(example), where_(where) {}

  template <typename... Args>
  [[noreturn]] void reject(const char* feature, fmt::format_string<Args...> format, Args&&... args) const {
    reject_text(feature, fmt::format(format, std::forward<Args>(args)...));
  }
  std::int64_t length(const char* feature) const;  // at least 1
  void same_length(const char* feature, std::int64_t expected) const;
  void in_range(const char* feature, std::int64_t least, std::int64_t limit) const;  // least <= every < limit
  // Ids of the model's token table. A larger id is not damage: the data have a larger vocabulary than the model.
  void token_ids(const char* feature, std::int64_t vocab_size) const;
  void number_in_range(const char* feature, std::int64_t least, std::int64_t limit) const;  // the same for a scalar
  void never_decreases(const char* feature) const;
  void finite(const char* feature, std::int64_t expected) const;  // this many real numbers
  void ends_with_one(const char* feature) const;                  // breakpoints

 private:
  [[noreturn]] void reject_text(const char* feature, const std::string& text) const;

  const data::Example& example_;
  const std::string& where_;
};

}  // namespace etc::feed
