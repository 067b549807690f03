#include "data/sample/story.h"

#include <algorithm>

#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr const char* kThings[] = {"harbour", "market", "tower", "garden", "bridge", "library", "mill", "square"};
constexpr const char* kTraits[] = {"old", "quiet", "narrow", "famous", "green", "busy", "stony", "bright"};

}  // namespace

std::string filler_thing(Choices& choices) {
  return kThings[choices.below(std::ssize(kThings))];
}

std::string filler_trait(Choices& choices) {
  return kTraits[choices.below(std::ssize(kTraits))];
}

std::string filler_sentence(Choices& choices) {
  const std::string thing = filler_thing(choices), trait = filler_trait(choices);
  return "The " + thing + " there is very " + trait + ".";
}

void add_filler_words(std::set<std::string>& words) {
  words.insert({"the", "there", "is", "very"});
  words.insert(std::begin(kThings), std::end(kThings));
  words.insert(std::begin(kTraits), std::end(kTraits));
}

std::size_t even_index(std::size_t count, Choices& choices) {
  return static_cast<std::size_t>(choices.below(static_cast<std::int64_t>(count)));
}

std::size_t popular_index(std::size_t count, Choices& choices, int exponent) {
  std::vector<std::int64_t> up_to;  // cumulative weights, times 840^exponent: exact for the first ranks
  for (std::int64_t rank = 1; rank <= static_cast<std::int64_t>(count); ++rank) {
    std::int64_t whole = 1, part = 1;
    for (int i = 0; i < exponent; ++i) whole *= 840, part *= rank;
    up_to.push_back((up_to.empty() ? 0 : up_to.back()) + whole / part);
  }
  const std::int64_t drawn = choices.below(up_to.back());
  return static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end(), drawn) - up_to.begin());
}

std::vector<std::string> some_of(std::vector<std::string> words, std::size_t first, std::size_t count,
                                 Choices& choices) {
  const std::string chosen = words[first];
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(first));
  choices.shuffle(words);
  words.insert(words.begin(), chosen);
  words.resize(count);
  return words;
}

void write_sample_files(const std::filesystem::path& folder, const std::set<std::string>& words,
                        const std::string& train, const std::string& dev) {
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(words));
  write_file_atomically(folder / "train.json", train);
  write_file_atomically(folder / "dev.json", dev);
}

}  // namespace etc::data
