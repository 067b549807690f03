#include "tasks/feed/features.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"

namespace etc::feed {

namespace {

template <typename T>
const T& get(const data::Example& example, const char* feature) {
  const auto found = example.find(feature);
  if (found == example.end()) fail("feed", "feature {} is missing", feature);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail("feed", "feature {}: unexpected kind", feature);
  return *value;
}

}  // namespace

const Numbers& numbers(const data::Example& example, const char* feature) {
  return get<Numbers>(example, feature);
}

std::int64_t number(const data::Example& example, const char* feature) {
  return get<std::int64_t>(example, feature);
}

const Reals& reals(const data::Example& example, const char* feature) {
  return get<Reals>(example, feature);
}

const std::string& text(const data::Example& example, const char* feature) {
  return get<std::string>(example, feature);
}

const Texts& texts(const data::Example& example, const char* feature) {
  return get<Texts>(example, feature);
}

std::vector<std::int32_t> narrowed(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

void append(std::vector<std::int32_t>& all, const Numbers& numbers) {
  all.insert(all.end(), numbers.begin(), numbers.end());
}

std::int64_t Examination::length(const char* feature) const {
  const std::int64_t got = std::ssize(numbers(example_, feature));
  if (got == 0) reject(feature, "expected at least one token, got none");
  return got;
}

void Examination::same_length(const char* feature, std::int64_t expected) const {
  const std::int64_t got = std::ssize(numbers(example_, feature));
  if (got != expected) reject(feature, "expected {} numbers like the others of its side, got {}", expected, got);
}

void Examination::in_range(const char* feature, std::int64_t least, std::int64_t limit) const {
  const Numbers& all = numbers(example_, feature);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] < least || all[i] >= limit) {
      reject(feature, "expected {} … {} at position {}, got {}", least, limit - 1, i, all[i]);
    }
  }
}

void Examination::token_ids(const char* feature, std::int64_t vocab_size) const {
  const Numbers& all = numbers(example_, feature);
  const auto largest = std::max_element(all.begin(), all.end());
  if (largest != all.end() && *largest >= vocab_size) {
    fail(
        "feed",
        "{}: example {}: {}: expected token ids below vocab_size={} of the model, got {} at position {}: the data have "
        "a larger vocabulary than the model (prepare them with the model's vocabulary, or take a model with more "
        "rows: --vocab-size)",
        where_, text(example_, "id"), feature, vocab_size, *largest, largest - all.begin());
  }
  in_range(feature, 0, vocab_size);
}

void Examination::number_in_range(const char* feature, std::int64_t least, std::int64_t limit) const {
  const std::int64_t got = number(example_, feature);
  if (got < least || got >= limit) reject(feature, "expected {} … {}, got {}", least, limit - 1, got);
}

void Examination::never_decreases(const char* feature) const {
  const Numbers& all = numbers(example_, feature);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] < all[i - 1]) {
      reject(feature, "expected non-decreasing, got {} after {} at position {}", all[i], all[i - 1], i);
    }
  }
}

void Examination::finite(const char* feature, std::int64_t expected) const {
  const Reals& all = reals(example_, feature);
  if (std::ssize(all) != expected) reject(feature, "expected {} numbers, got {}", expected, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!std::isfinite(all[i])) reject(feature, "expected finite numbers, got {} at position {}", all[i], i);
  }
}

void Examination::ends_with_one(const char* feature) const {
  if (numbers(example_, feature).back() != 1) reject(feature, "expected 1 at the last position, got 0");
}

void Examination::reject_text(const char* feature, const std::string& what) const {
  fail("feed", "{}: example {}: {}: {} (the file is damaged; run `etc prepare` again)", where_, text(example_, "id"),
       feature, what);
}

}  // namespace etc::feed
