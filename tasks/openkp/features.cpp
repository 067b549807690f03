#include "tasks/openkp/features.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "data/text/unicode.h"

namespace etc::openkp {

namespace {

std::int64_t spaces(std::string_view text) {
  return std::count(text.begin(), text.end(), ' ');
}

// Appends tokens of `word`, the next word, owned by global token `global`.
void add_word(Features& f, std::span<const std::int32_t> ids, std::int64_t word, std::int64_t global) {
  for (const std::int32_t id : ids) {
    f.long_token_ids.push_back(id);
    f.long_word_idx.push_back(word);
    f.long_vdom_idx.push_back(global);
  }
  if (ids.empty()) ++f.words_without_tokens;
}

class ElementLayout {
 public:
  ElementLayout(const std::vector<std::string>& keys, const data::Tokenizer& tokenizer, const PrepareConfig& config)
      : missing_(keys), tokenizer_(tokenizer), config_(config) {}

  Features build(const std::vector<Element>& elements) {
    for (const Element& e : elements) {
      if (!add(e.text)) break;
    }
    return std::move(f_);
  }

 private:
  // False when the element does not fit.
  bool add(const std::string& text) {
    ids_.clear();
    word_ends_.clear();
    for (const std::string_view word : words_of(text)) {
      tokenizer_.append_ids(word, ids_);
      word_ends_.push_back(ids_.size());
    }
    const std::int64_t tokens = std::ssize(f_.long_token_ids) + std::ssize(ids_);
    if (f_.num_globals >= config_.global_max_length || tokens > config_.long_max_length) return false;
    const std::string lower = data::lower_case(text);
    find_keys(" " + lower + " ");
    for (const std::string_view word : words_of(lower)) f_.lower_words.emplace_back(word);
    std::size_t begin = 0;
    for (const std::size_t end : word_ends_) {
      add_word(f_, std::span(ids_).subspan(begin, end - begin), f_.num_words++, f_.num_globals);
      begin = end;
    }
    f_.element_words.push_back(std::ssize(word_ends_));
    ++f_.num_globals;
    return true;
  }

  void find_keys(const std::string& padded_text) {
    std::erase_if(missing_, [&](const std::string& key) {
      const std::size_t at = padded_text.find(" " + key + " ");
      if (at == std::string::npos) return false;
      f_.labels.push_back({f_.num_words + spaces(std::string_view(padded_text).substr(0, at)), spaces(key) + 1});
      return true;
    });
  }

  std::vector<std::string> missing_;
  const data::Tokenizer& tokenizer_;
  const PrepareConfig& config_;
  std::vector<std::int32_t> ids_;       // of the element's words, one after the other
  std::vector<std::size_t> word_ends_;  // of each word in ids_
  Features f_;
};

Features lay_out_blocks(const Page& page, const std::vector<std::string>& keys, const data::Tokenizer& tokenizer,
                        const PrepareConfig& config) {
  Features f;
  const std::int64_t block = config.fixed_block_len;
  const auto blocks = [&](std::int64_t tokens) { return (tokens + block - 1) / block; };
  std::size_t searched = 0;  // bytes of the text up to the last word with a token
  for (const std::string_view word : words_of(page.text)) {
    const std::vector<std::int32_t> ids = tokenizer.encode_ids(word);
    const std::int64_t tokens = std::ssize(f.long_token_ids) + std::ssize(ids);
    if (tokens > config.long_max_length || blocks(tokens) > config.global_max_length) break;
    add_word(f, ids, f.num_words, 0);
    ++f.num_words;
    if (!ids.empty()) searched = static_cast<std::size_t>(word.data() + word.size() - page.text.data());
  }
  for (std::size_t i = 0; i < f.long_vdom_idx.size(); ++i) f.long_vdom_idx[i] = static_cast<std::int64_t>(i) / block;
  f.num_globals = blocks(std::ssize(f.long_token_ids));
  const std::string text = data::lower_case(std::string_view(page.text).substr(0, searched));
  for (const std::string& key : keys) {
    const std::size_t at = text.find(key);
    if (at != std::string::npos) f.labels.push_back({spaces(std::string_view(text).substr(0, at)), spaces(key) + 1});
  }
  return f;
}

}  // namespace

std::vector<std::string> key_strings(const std::vector<Phrase>& phrases) {
  std::vector<std::string> keys;
  for (const Phrase& phrase : phrases) {
    std::string key;
    for (std::size_t i = 0; i < phrase.size(); ++i) key += (i > 0 ? " " : "") + phrase[i];
    keys.push_back(data::lower_case(key));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Features lay_out(const Page& page, const std::vector<std::string>& keys, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config) {
  if (config.fixed_block_len > 0) return lay_out_blocks(page, keys, tokenizer, config);
  return ElementLayout(keys, tokenizer, config).build(page.elements);
}

std::vector<std::int64_t> first_occurrences(const Features& features, std::int64_t longest_phrase) {
  const std::int64_t w = features.num_words;
  std::unordered_map<std::string_view, std::int64_t> numbers;  // word → number
  std::vector<std::int64_t> words;                             // [w]
  for (const std::string& word : features.lower_words) {
    words.push_back(numbers.try_emplace(word, std::ssize(numbers)).first->second);
  }
  // A phrase is the number of the phrase without its last word, and that word: no text is put together.
  struct Found {
    std::int64_t number, first;
  };
  std::vector<std::int64_t> table;  // [K, w]
  for (std::int64_t k = 1; k <= longest_phrase; ++k) {
    for (std::int64_t j = 0; j < w; ++j) table.push_back(j);
  }
  std::vector<std::int64_t> shorter(static_cast<std::size_t>(w), 0);  // number of the phrase of k−1 words from j
  for (std::int64_t k = 1; k <= longest_phrase; ++k) {
    std::unordered_map<std::uint64_t, Found> phrases;
    std::int64_t begin = 0;
    for (const std::int64_t count : features.element_words) {
      for (std::int64_t j = begin; j + k <= begin + count; ++j) {
        const auto last = static_cast<std::uint64_t>(words[static_cast<std::size_t>(j + k - 1)]);
        auto& prefix = shorter[static_cast<std::size_t>(j)];
        const std::uint64_t key = (static_cast<std::uint64_t>(prefix) << 32) | last;
        const auto found = phrases.try_emplace(key, Found{std::ssize(phrases), j}).first;
        prefix = found->second.number;
        table[static_cast<std::size_t>((k - 1) * w + j)] = found->second.first;
      }
      begin += count;
    }
  }
  return table;
}

}  // namespace etc::openkp
