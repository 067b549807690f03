#include "data/text/word_counts.h"

#include <utility>
#include <vector>

#include "data/text/basic_tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/parallel.h"

namespace etc::data {

namespace {

void count_text(std::string_view text, const SplitWords& split, WordCounts& counts) {
  split(text, [&](std::string_view word) {
    constexpr std::size_t kLongestCharacter = 4;  // bytes
    if (word.size() > kLongestWord * kLongestCharacter) return;
    const auto found = counts.find(word);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(word, 1);
    }
  });
}

// Removes the rarest words until at most most_words / 2 are left.
void forget_rare(WordCounts& counts, std::size_t most_words) {
  for (std::int64_t least = 2; counts.size() > most_words / 2; ++least) {
    std::erase_if(counts, [&](const auto& word) { return word.second < least; });
  }
}

// A batch of texts that all threads count together.
class CountedBatch {
 public:
  CountedBatch(const SplitWords& split, std::size_t most_words) : split_(split), most_words_(most_words) {}

  void add(std::string_view text) {
    texts_.emplace_back(text);
    bytes_ += text.size();
    if (bytes_ >= kBatchBytes) count();
  }

  WordCounts finish() {
    count();
    return std::move(all_);
  }

 private:
  static constexpr std::size_t kBatchBytes = std::size_t{4} << 20, kTasks = 16;

  void count() {
    std::vector<WordCounts> parts(kTasks);
    parallel_for(static_cast<std::int64_t>(kTasks), [&](std::int64_t task) {
      const auto part = static_cast<std::size_t>(task);
      for (std::size_t i = part; i < texts_.size(); i += kTasks) count_text(texts_[i], split_, parts[part]);
    });
    for (const WordCounts& part : parts) {
      for (const auto& [word, count] : part) all_[word] += count;
    }
    if (all_.size() > most_words_) forget_rare(all_, most_words_);
    texts_.clear();
    bytes_ = 0;
  }

  const SplitWords& split_;
  std::size_t most_words_;
  std::vector<std::string> texts_;
  std::size_t bytes_ = 0;
  WordCounts all_;
};

}  // namespace

WordCounts count_words(const TextSource& texts, const SplitWords& split, std::size_t most_words) {
  CountedBatch batch(split, most_words);
  texts([&](std::string_view text) { batch.add(text); });
  return batch.finish();
}

WordCounts count_words(const TextSource& texts, bool lower_case, std::size_t most_words) {
  const SplitWords split = [&](std::string_view text, const VisitWord& visit) {
    for_each_word(text, lower_case, visit);
  };
  return count_words(texts, split, most_words);
}

std::vector<std::string> characters_of(std::string_view word) {
  std::vector<std::string> characters;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    next_code_point(word, at);
    characters.emplace_back(word.substr(begin, at - begin));
  }
  return characters;
}

}  // namespace etc::data
