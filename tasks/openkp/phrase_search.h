// Many phrases looked for in texts at once, as whole words between spaces: Aho and Corasick's automaton (1975) with words
// in the place of letters.
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
  // The phrases, from 0 on in this order; they must outlive the search. Words are what stands between single spaces, so
  // that an empty phrase is one empty word.
  explicit PhraseSearch(const std::vector<std::string>& phrases);

  struct Found {
    std::size_t phrase, word;  // the first one of the text at which it stands
  };
  // Phrases that are in this text and were in no text before, in their order. Of equal phrases all.
  // Cost: linear in the text's words and what is found, however many phrases there are.
  std::vector<Found> find_new(std::string_view text);

  bool found(std::size_t phrase) const { return nodes_[node_of_[phrase]].found; }

 private:
  // The words from the root to here are the first ones of some phrase.
  struct Node {
    std::size_t shorter = 0;  // that of the longest end of these words that is a node, too
    std::size_t next = 0;     // on the way along `shorter`: beyond nodes that report nothing any more
    std::size_t words = 0;
    std::vector<std::size_t> phrases;  // of just these words
    bool found = false;
  };

  std::size_t child(std::size_t node, std::uint64_t word) const;  // 0: none
  std::size_t behind(std::size_t node, std::uint64_t word) const;
  std::size_t reporting(std::size_t node);  // this node or the next one that reports; 0: none
  void link_nodes(const std::vector<std::uint64_t>& last_words, const std::vector<std::size_t>& parents);

  std::unordered_map<std::string_view, std::uint64_t> words_;
  std::unordered_map<std::uint64_t, std::size_t> children_;  // of node << 32 | word
  std::vector<Node> nodes_ = std::vector<Node>(1);           // the root first
  std::vector<std::size_t> node_of_;                         // of each phrase
};

}  // namespace etc::openkp
