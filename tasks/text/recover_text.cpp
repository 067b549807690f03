#include "tasks/text/recover_text.h"

#include "data/text/basic_tokenizer.h"
#include "data/text/byte_words.h"
#include "data/text/sentencepiece.h"
#include "data/text/unicode.h"
#include "tasks/text/special_pieces.h"

namespace etc::text {

namespace {

void erase_all(std::string& text, std::string_view what) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.erase(at, what.size());
}

// Indices of the characters other than blanks.
std::vector<std::size_t> solid_characters(const std::u32string& text) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != U' ') indices.push_back(i);
  }
  return indices;
}

// Number of blanks before the character at `index`.
std::size_t blanks_before(const std::u32string& text, std::size_t index) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < index; ++i) count += text[i] == U' ' ? 1 : 0;
  return count;
}

}  // namespace

std::string joined_sentencepieces(const std::vector<std::string>& pieces) {
  return data::detokenize(pieces).text;
}

std::string joined_wordpieces(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += (text.empty() ? "" : " ") + piece;
  erase_all(text, " ##");
  erase_all(text, "##");
  std::string result;  // single blanks, none at the beginning and end
  for (const char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string recovered_text(std::string_view tokens, std::string_view source, bool lower_case) {
  const std::string whole(source);
  if (tokens.empty() || tokens.front() == ' ' || tokens.back() == ' ') return whole;
  std::u32string words;  // the source as seen by the tokeniser
  for (const std::string& word : data::basic_tokenize(source, lower_case)) {
    if (!words.empty()) words += U' ';
    words += data::to_code_points(word);
  }
  const std::u32string wanted = data::to_code_points(tokens), text = data::to_code_points(source);
  const std::size_t first = words.find(wanted);
  if (first == std::u32string::npos) return whole;
  const std::vector<std::size_t> in_source = solid_characters(text);
  if (in_source.size() != solid_characters(words).size()) return whole;
  const std::size_t last = first + wanted.size() - 1;
  const std::size_t begin = in_source[first - blanks_before(words, first)];
  const std::size_t end = in_source[last - blanks_before(words, last)];
  return data::to_utf8(std::u32string_view(text).substr(begin, end - begin + 1));
}

std::string answer_in_words(const data::Tokenizer& tokenizer, const std::vector<std::string>& pieces,
                            std::string_view source, bool lower_case) {
  if (!is_byte_bpe(tokenizer)) return recovered_text(joined_wordpieces(pieces), source, lower_case);
  const std::string text = data::joined_byte_pieces(pieces);
  return text.empty() || source.find(text) == std::string_view::npos ? std::string(source) : text;
}

}  // namespace etc::text
