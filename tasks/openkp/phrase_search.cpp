#include "tasks/openkp/phrase_search.h"

#include <algorithm>
#include <numeric>

#include "tasks/openkp/page.h"

namespace etc::openkp {

PhraseSearch::PhraseSearch(const std::vector<std::string>& phrases) {
  std::vector<std::uint64_t> last_words(1);  // of each node
  std::vector<std::size_t> parents(1);
  for (std::size_t phrase = 0; phrase < phrases.size(); ++phrase) {
    std::size_t node = 0;
    for_each_word_of(phrases[phrase], [&](std::string_view text) {
      const std::uint64_t word = words_.try_emplace(text, words_.size()).first->second;
      const auto [place, fresh] = children_.try_emplace(std::uint64_t{node} << 32 | word, nodes_.size());
      if (fresh) {
        const std::size_t words = nodes_[node].words + 1;
        nodes_.emplace_back().words = words;
        last_words.push_back(word);
        parents.push_back(node);
      }
      node = place->second;
    });
    nodes_[node].phrases.push_back(phrase);
    node_of_.push_back(node);
  }
  link_nodes(last_words, parents);
}

// Links nodes in order of their depth, because a node's failure link points at a node of smaller depth.
void PhraseSearch::link_nodes(const std::vector<std::uint64_t>& last_words, const std::vector<std::size_t>& parents) {
  std::vector<std::size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return nodes_[a].words < nodes_[b].words; });
  for (const std::size_t node : order) {
    if (nodes_[node].words < 2) continue;
    nodes_[node].shorter = nodes_[node].next = behind(nodes_[parents[node]].shorter, last_words[node]);
  }
}

std::size_t PhraseSearch::child(std::size_t node, std::uint64_t word) const {
  const auto found = children_.find(std::uint64_t{node} << 32 | word);
  return found == children_.end() ? 0 : found->second;
}

// The automaton's transition from `node` with the next word.
std::size_t PhraseSearch::behind(std::size_t node, std::uint64_t word) const {
  for (;; node = nodes_[node].shorter) {
    const std::size_t next = child(node, word);
    if (next != 0 || node == 0) return next;
  }
}

std::size_t PhraseSearch::reporting(std::size_t node) {
  const auto reports = [&](std::size_t n) { return n == 0 || (!nodes_[n].phrases.empty() && !nodes_[n].found); };
  std::size_t last = node;
  while (!reports(last)) last = nodes_[last].next;
  while (node != last) {  // path compression: the next call takes one step
    const std::size_t next = nodes_[node].next;
    nodes_[node].next = last;
    node = next;
  }
  return last;
}

std::vector<PhraseSearch::Found> PhraseSearch::find_new(std::string_view text) {
  std::vector<Found> all;
  std::size_t node = 0, words = 0;
  for_each_word_of(text, [&](std::string_view word) {
    ++words;
    const auto known = words_.find(word);
    node = known == words_.end() ? 0 : behind(node, known->second);
    for (std::size_t n = reporting(node); n != 0; n = reporting(nodes_[n].next)) {
      nodes_[n].found = true;
      for (const std::size_t phrase : nodes_[n].phrases) all.push_back({phrase, words - nodes_[n].words});
    }
  });
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.phrase < b.phrase; });
  return all;
}

}  // namespace etc::openkp
