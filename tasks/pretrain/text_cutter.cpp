#include "tasks/pretrain/text_cutter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "data/text/unicode.h"

namespace etc::pretrain {

void for_each_part(std::string_view text, Lines lines, const std::function<void(std::string_view)>& visit,
                   const std::function<void()>& at_empty_line) {
  std::string paragraph;  // of wrapped lines
  const auto finish_paragraph = [&] {
    if (!paragraph.empty()) visit(paragraph);
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const std::string_view line = data::strip(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (line.empty()) {
      finish_paragraph();
      at_empty_line();
    } else if (lines == Lines::wrapped) {
      if (!paragraph.empty()) paragraph += ' ';
      paragraph += line;
    } else {
      visit(line);
    }
  }
  finish_paragraph();
}

TextCutter::TextCutter(std::shared_ptr<const data::Tokenizer> tokenizer,
                       std::unique_ptr<data::SentenceSplitter> splitter, Lines lines, std::int64_t longest_sentence)
    : tokenizer_(std::move(tokenizer)),
      splitter_(std::move(splitter)),
      lines_(lines),
      longest_sentence_(longest_sentence) {}

CutText TextCutter::cut(std::string_view utf8, bool empty_lines) const {
  CutText cut;
  std::string valid;
  if (data::invalid_utf8(utf8)) {
    valid = data::to_utf8(data::to_code_points(utf8));
    cut.invalid_bytes = std::ssize(utf8) - std::ssize(valid);
    utf8 = valid;
  }
  cut.text.ids.reserve(utf8.size() / 4);
  const auto take = [&](std::string_view part) {
    if (splitter_ == nullptr) return add_sentence(part, cut);
    for (const data::ByteSpan span : splitter_->split(part)) {
      add_sentence(part.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin)),
                   cut);
    }
  };
  const auto begin_document = [&] {
    if (!empty_lines) return;
    const std::int64_t sentences = std::ssize(cut.text.sentence_ends);
    std::vector<std::int64_t>& begins = cut.text.document_begins;
    if (begins.empty() || begins.back() != sentences) begins.push_back(sentences);
  };
  for_each_part(utf8, lines_, take, begin_document);
  return cut;
}

void TextCutter::add_sentence(std::string_view sentence, CutText& cut) const {
  std::vector<std::int64_t>& ends = cut.text.sentence_ends;
  const std::int64_t begin = ends.empty() ? 0 : ends.back();
  tokenizer_->append_word_ids(sentence, cut.text.ids);
  const std::int64_t end = std::ssize(cut.text.ids);
  if (end == begin) return;
  if (longest_sentence_ > 0 && end - begin > longest_sentence_) {
    ++cut.cut_sentences;
    for (std::int64_t at = begin + longest_sentence_; at < end; at += longest_sentence_) ends.push_back(at);
  }
  ends.push_back(end);
}

}  // namespace etc::pretrain
