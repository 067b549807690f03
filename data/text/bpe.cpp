#include "data/text/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "data/text/pair_merger.h"
#include "data/text/unicode.h"

namespace etc::data {

namespace {

constexpr std::int32_t kNoSymbol = -1, kNowhere = -1;

std::string joined(const std::string& first, const std::string& second) {
  return first + second;
}

std::uint64_t key_of(std::int32_t first, std::int32_t second) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32) | static_cast<std::uint32_t>(second);
}

}  // namespace

std::vector<Merge> learn_bpe(const WordCounts& words, std::int64_t merges) {
  // Sorted, because the map's order depends on hash values.
  std::vector<std::pair<std::string, std::int64_t>> sorted(words.begin(), words.end());
  std::sort(sorted.begin(), sorted.end());
  PieceTable pieces;
  std::vector<PairMerger::Word> cut;
  for (const auto& [spelling, count] : sorted) {
    std::vector<std::string> characters = characters_of(spelling);
    if (characters.size() < 2 || characters.size() > kLongestWord) continue;
    characters.back() += kWordEnd;
    PairMerger::Word word;
    word.count = count;
    for (const std::string& character : characters) word.pieces.push_back(pieces.add(character));
    cut.push_back(std::move(word));
  }
  PairMerger merger(std::move(cut), pieces, {.last_spelling_first = true, .join = joined});
  std::vector<Merge> learned;
  while (std::ssize(learned) < merges) {
    const auto pair = merger.merge_next();
    if (!pair) break;
    learned.emplace_back(pieces.spelling(pair->first), pieces.spelling(pair->second));
  }
  return learned;
}

std::optional<Merge> merge_of_line(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const bool two = blank != std::string_view::npos && blank > 0 && blank + 1 < line.size() &&
                   line.find(' ', blank + 1) == std::string_view::npos;
  if (!two) return std::nullopt;
  return Merge(line.substr(0, blank), line.substr(blank + 1));
}

Bpe::Bpe(const std::vector<Merge>& merges, std::string_view word_end) : word_end_(word_end) {
  const auto add = [&](const std::string& spelling) {
    return symbols_.emplace(spelling, static_cast<std::int32_t>(symbols_.size())).first->second;
  };
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [first, second] = merges[rank];
    const std::uint64_t key = key_of(add(first), add(second));
    rules_.try_emplace(key, Rule{static_cast<std::int32_t>(rank), add(first + second)});
  }
}

std::int32_t Bpe::symbol_of(const std::string& spelling) const {
  const auto found = symbols_.find(spelling);
  return found == symbols_.end() ? kNoSymbol : found->second;
}

const Bpe::Rule* Bpe::rule_of(std::int32_t first, std::int32_t second) const {
  if (first == kNoSymbol || second == kNoSymbol) return nullptr;
  const auto found = rules_.find(key_of(first, second));
  return found == rules_.end() ? nullptr : &found->second;
}

// A word being cut: a linked list of its pieces.
class Bpe::Word {
 public:
  Word(const Bpe& bpe, std::string_view word) : bpe_(bpe) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      next_code_point(word, at);
      std::string spelling(word.substr(begin, at - begin));
      if (at == word.size()) spelling += bpe.word_end_;
      const auto here = static_cast<std::int32_t>(symbols_.size());
      symbols_.push_back({at, bpe.symbol_of(spelling), here - 1, at == word.size() ? kNowhere : here + 1});
    }
    for (std::int32_t i = 0; i < std::ssize(symbols_); ++i) offer(i);
  }

  void merge_all() {
    std::vector<std::int32_t> places;
    while (!queue_.empty()) {
      // Merge all places of the lowest rank before offering the pairs that result.
      const std::int32_t rank = queue_.top().first;
      places.clear();
      for (; !queue_.empty() && queue_.top().first == rank; queue_.pop()) {
        if (merge(queue_.top().second, rank)) places.push_back(queue_.top().second);
      }
      for (const std::int32_t place : places) {
        offer(symbols_[static_cast<std::size_t>(place)].before);
        offer(place);
      }
    }
  }

  void append_ends(std::vector<std::size_t>& ends) const {
    for (std::int32_t i = symbols_.empty() ? kNowhere : 0; i != kNowhere;) {
      ends.push_back(symbols_[static_cast<std::size_t>(i)].end);
      i = symbols_[static_cast<std::size_t>(i)].after;
    }
  }

 private:
  struct Symbol {
    std::size_t end;  // in the word
    std::int32_t id, before, after;
    bool merged_away = false;
  };
  using Offer = std::pair<std::int32_t, std::int32_t>;  // rank and place: lowest rank first, then leftmost

  const Rule* rule_at(std::int32_t place) const {
    if (place == kNowhere) return nullptr;
    const Symbol& first = symbols_[static_cast<std::size_t>(place)];
    if (first.merged_away || first.after == kNowhere) return nullptr;
    return bpe_.rule_of(first.id, symbols_[static_cast<std::size_t>(first.after)].id);
  }

  void offer(std::int32_t place) {
    if (const Rule* rule = rule_at(place)) queue_.push({rule->rank, place});
  }

  // False if the pair offered no longer exists.
  bool merge(std::int32_t place, std::int32_t rank) {
    const Rule* rule = rule_at(place);
    if (rule == nullptr || rule->rank != rank) return false;
    Symbol& first = symbols_[static_cast<std::size_t>(place)];
    Symbol& second = symbols_[static_cast<std::size_t>(first.after)];
    second.merged_away = true;
    first.end = second.end;
    first.id = rule->merged;
    first.after = second.after;
    if (first.after != kNowhere) symbols_[static_cast<std::size_t>(first.after)].before = place;
    return true;
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> queue_;
};

void Bpe::cut(std::string_view word, std::vector<std::size_t>& ends) const {
  Word cutting(*this, word);
  cutting.merge_all();
  cutting.append_ends(ends);
}

}  // namespace etc::data
