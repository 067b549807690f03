// Truncation of an example that is too long: which sentences are kept (task-wikihop 2.4).
#pragma once

#include <cstdint>
#include <vector>

namespace etc::wikihop {

struct Truncation {
  std::vector<std::int64_t> kept;           // [documents]: the first kept[d] sentences of document d stay
  std::vector<std::int64_t> removal_order;  // document of each removed sentence, in the order of removal
  std::int64_t sentences_before = 0, sentences_after = 0;
  std::int64_t tokens_before = 0, tokens_after = 0;  // document tokens
  bool too_many_tokens = false;                      // the two reasons to remove anything
  bool too_many_sentences = false;
};

// Removes one last sentence at a time, always from the document with the most sentences left (among equals, the one that
// was queued first), until at most max_num_sentences sentences and `budget` tokens remain.
//   sentence_tokens  per document, the token count of each of its sentences
//   budget           >= 0: tokens that query and candidates leave for documents
// Cost: O((documents + removed) log documents).
Truncation truncate(const std::vector<std::vector<std::int64_t>>& sentence_tokens, std::int64_t max_num_sentences,
                    std::int64_t budget);

}  // namespace etc::wikihop
