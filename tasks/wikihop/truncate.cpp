#include "tasks/wikihop/truncate.h"

#include <queue>

#include "etc_core/base/error.h"

namespace etc::wikihop {

namespace {

struct Entry {
  std::int64_t sentences;  // left
  std::int64_t pushed;     // sequence number of the push
  std::int64_t document;

  // The queue's top is the largest: most sentences, then pushed earliest.
  bool operator<(const Entry& other) const {
    return sentences != other.sentences ? sentences < other.sentences : pushed > other.pushed;
  }
};

}  // namespace

Truncation truncate(const std::vector<std::vector<std::int64_t>>& sentence_tokens, std::int64_t max_num_sentences,
                    std::int64_t budget) {
  if (budget < 0) fail("truncate", "budget must not be negative, got {}", budget);
  Truncation result;
  std::priority_queue<Entry> queue;
  for (const std::vector<std::int64_t>& document : sentence_tokens) {
    const auto sentences = static_cast<std::int64_t>(document.size());
    const auto d = static_cast<std::int64_t>(result.kept.size());
    queue.push({sentences, d, d});
    result.kept.push_back(sentences);
    result.sentences_before += sentences;
    for (const std::int64_t tokens : document) result.tokens_before += tokens;
  }
  std::int64_t surplus_sentences = result.sentences_before - max_num_sentences;
  std::int64_t surplus_tokens = result.tokens_before - budget;
  result.too_many_sentences = surplus_sentences > 0;
  result.too_many_tokens = surplus_tokens > 0;
  std::int64_t pushes = static_cast<std::int64_t>(result.kept.size());
  result.sentences_after = result.sentences_before;
  result.tokens_after = result.tokens_before;
  while (surplus_sentences > 0 || surplus_tokens > 0) {
    // A sentence to drop always exists: with none left both surpluses are <= 0, since neither limit is negative.
    const std::int64_t d = queue.top().document;
    queue.pop();
    const std::int64_t tokens = sentence_tokens[d][--result.kept[d]];
    result.removal_order.push_back(d);
    --surplus_sentences, --result.sentences_after;
    surplus_tokens -= tokens, result.tokens_after -= tokens;
    queue.push({result.kept[d], pushes++, d});
  }
  return result;
}

}  // namespace etc::wikihop
