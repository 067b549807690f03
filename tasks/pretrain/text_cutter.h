// A piece of raw text → sentences of word pieces (pretraining 1.1, 2.2 step 1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "tasks/pretrain/prepare_config.h"
#include "tasks/pretrain/token_store.h"

namespace etc::pretrain {

// Calls visit for every part of the text that is a sentence or has to be cut by a sentence splitter, without surrounding
// white space, and at_empty_line for every line of white space only. Lines of a wrapped paragraph are joined by blanks.
void for_each_part(std::string_view text, Lines lines, const std::function<void(std::string_view)>& visit,
                   const std::function<void()>& at_empty_line);

struct CutText {
  TokenizedText text;
  std::int64_t invalid_bytes = 0;  // left out: not UTF-8
  std::int64_t cut_sentences = 0;  // those longer than longest_sentence
};

class TextCutter {
 public:
  // splitter: null if lines are sentences. longest_sentence: in pieces; 0: no limit.
  TextCutter(std::shared_ptr<const data::Tokenizer> tokenizer, std::unique_ptr<data::SentenceSplitter> splitter,
             Lines lines, std::int64_t longest_sentence);

  // Thread-safe. Sentences without pieces are left out. empty_lines: whether an empty line begins a document.
  CutText cut(std::string_view utf8, bool empty_lines) const;

  const data::SentenceSplitter* splitter() const { return splitter_.get(); }

 private:
  void add_sentence(std::string_view sentence, CutText& cut) const;

  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::unique_ptr<data::SentenceSplitter> splitter_;
  Lines lines_;
  std::int64_t longest_sentence_;
};

}  // namespace etc::pretrain
