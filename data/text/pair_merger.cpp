#include "data/text/pair_merger.h"

#include <algorithm>

namespace etc::data {

namespace {

constexpr Piece kAnyPiece = -1;

void replace(std::vector<Piece>& pieces, const PiecePair& pair, Piece merged) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool here = i + 1 < pieces.size() && pieces[i] == pair.first && pieces[i + 1] == pair.second;
    pieces[to++] = here ? merged : pieces[i];
    if (here) ++i;
  }
  pieces.resize(to);
}

}  // namespace

Piece PieceTable::add(const std::string& spelling) {
  const auto [at, fresh] = numbers_.emplace(spelling, static_cast<Piece>(spellings_.size()));
  if (fresh) spellings_.push_back(spelling);
  return at->second;
}

std::optional<Piece> PieceTable::find(const std::string& spelling) const {
  const auto found = numbers_.find(spelling);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

PairMerger::PairMerger(std::vector<Word> words, PieceTable& pieces, const MergeRules& rules)
    : words_(std::move(words)), pieces_(pieces), rules_(rules), queue_(Later{rules.last_spelling_first}) {
  for (std::uint32_t w = 0; w < words_.size(); ++w) count_pairs(w, 1, kAnyPiece);
  for (const auto& [pair, occurrence] : pairs_) push(pair, occurrence.count);
  touched_.clear();
}

std::optional<PiecePair> PairMerger::merge_next() {
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const auto found = pairs_.find(best.pair);
    if (found == pairs_.end() || found->second.count != best.count) continue;  // outdated entry
    merge(best.pair);
    return best.pair;
  }
  return std::nullopt;
}

// Adds or, with sign -1, subtracts a word's count for each of its pairs. fresh: pairs with this piece do not list the
// word yet.
void PairMerger::count_pairs(std::uint32_t word, std::int64_t sign, Piece fresh) {
  const Word& w = words_[word];
  for (std::size_t i = 0; i + 1 < w.pieces.size(); ++i) {
    const PiecePair pair{w.pieces[i], w.pieces[i + 1]};
    Occurrence& occurrence = pairs_[pair];
    occurrence.count += sign * w.count;
    const bool unknown = fresh == kAnyPiece || pair.first == fresh || pair.second == fresh;
    if (sign > 0 && unknown) occurrence.words.push_back(word);
    touched_.insert(pair);
  }
}

void PairMerger::push(const PiecePair& pair, std::int64_t count) {
  if (count < rules_.least_count) return;
  queue_.push({count, pair, pieces_.spelling(pair.first), pieces_.spelling(pair.second)});
}

void PairMerger::merge(const PiecePair& pair) {
  const Piece merged = pieces_.add(rules_.join(pieces_.spelling(pair.first), pieces_.spelling(pair.second)));
  std::vector<std::uint32_t> words = std::move(pairs_[pair].words);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  touched_.clear();
  for (const std::uint32_t word : words) {
    count_pairs(word, -1, merged);
    replace(words_[word].pieces, pair, merged);
    count_pairs(word, 1, merged);
  }
  pairs_.erase(pair);
  for (const PiecePair& changed : touched_) {
    const auto found = pairs_.find(changed);
    if (found == pairs_.end()) continue;
    if (found->second.count <= 0) {
      pairs_.erase(found);
    } else {
      push(changed, found->second.count);
    }
  }
}

}  // namespace etc::data
