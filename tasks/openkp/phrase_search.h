// Searches texts for many phrases at once, as whole words between spaces: Aho and Corasick's automaton (1975) with words
// instead of letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace etc::openkp {

class PhraseSearch {
 public:
  // The phrases are numbered from 0 in this order; they must outlive the search. Words are separated by single spaces, so
  // an empty phrase is one empty word.
  explicit PhraseSearch(const std::vector<std::string>& phrases);

  struct Found {
    std::size_t phrase, word;  // number of the phrase; the word of the text at which it first occurs
  };
  // Phrases that occur in this text and in no earlier one, in their order; equal phrases are all reported. Cost: linear in
  // the text's words and the number of results, independent of the number of phrases.
  std::vector<Found> find_new(std::string_view text);

  bool found(std::size_t phrase) const { return nodes_[node_of_[phrase]].found; }

 private:
  // The words from the root to a node are a prefix of at least one phrase.
  struct Node {
    std::size_t shorter = 0;  // failure link: the node of the longest proper suffix of these words
    std::size_t next = 0;     // like `shorter`, but skips nodes that have nothing left to report
    std::size_t words = 0;
    std::vector<std::size_t> phrases;  // those equal to these words
    bool found = false;
  };

  std::size_t child(std::size_t node, std::uint64_t word) const;  // 0: none
  std::size_t behind(std::size_t node, std::uint64_t word) const;
  std::size_t reporting(std::size_t node);  // the first of this node and its `next` chain that reports; 0: none
  void link_nodes(const std::vector<std::uint64_t>& last_words, const std::vector<std::size_t>& parents);

  std::unordered_map<std::string_view, std::uint64_t> words_;
  std::unordered_map<std::uint64_t, std::size_t> children_;  // key: node << 32 | word
  std::vector<Node> nodes_ = std::vector<Node>(1);           // the root first
  std::vector<std::size_t> node_of_;                         // of each phrase
};

}  // namespace etc::openkp
