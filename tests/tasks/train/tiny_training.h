// Command lines as lists of words, and the options of a model that trains within a second.
#pragma once

#include <string>
#include <vector>

namespace etc::test {

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Every option with its value; `vocabulary`: at most this many pieces of the data's vocabulary.
inline Words tiny_training(const std::string& steps = "2", const std::string& vocabulary = "2000") {
  Words words = {"--vocab-size", vocabulary, "--steps", steps, "--hidden-size", "16", "--num-hidden-layers", "1"};
  return joined(words, {"--num-attention-heads", "2", "--intermediate-size", "32", "--local-radius", "4",
                        "--batch-size", "4", "--threads", "1"});
}

}  // namespace etc::test
