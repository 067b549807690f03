#include "tasks/openkp/features.h"

#include <algorithm>
#include <unordered_map>

#include "data/text/unicode.h"
#include "etc_core/base/integers.h"
#include "tasks/openkp/phrase_search.h"

namespace etc::openkp {

namespace {

std::int64_t spaces(std::string_view text) {
  return std::count(text.begin(), text.end(), ' ');
}

class ElementLayout {
 public:
  ElementLayout(const std::vector<std::string>& keys, const data::Tokenizer& tokenizer, const PrepareConfig& config)
      : tokenizer_(tokenizer), config_(config), keys_(keys), search_(keys), missing_(keys.size()) {}

  Features build(const std::vector<Element>& elements) {
    for (const Element& e : elements) {
      if (!add(e.text)) break;
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!search_.found(i)) f_.missing_keys.push_back(keys_[i]);
    }
    return std::move(f_);
  }

 private:
  // False when the element does not fit.
  bool add(const std::string& text) {
    ids_.clear();
    word_ends_.clear();
    for_each_word_of(text, [&](std::string_view word) {
      tokenizer_.append_word_ids(word, ids_);
      word_ends_.push_back(ids_.size());
    });
    const std::int64_t tokens = std::ssize(f_.long_token_ids) + std::ssize(ids_);
    if (f_.num_globals >= config_.global_max_length || tokens > config_.long_max_length) return false;
    if (missing_ > 0 || config_.first_occurrence) look_at_words(data::lower_case(text));
    f_.long_token_ids.insert(f_.long_token_ids.end(), ids_.begin(), ids_.end());
    f_.long_vdom_idx.insert(f_.long_vdom_idx.end(), ids_.size(), f_.num_globals);
    std::size_t begin = 0;
    for (const std::size_t end : word_ends_) {
      if (begin == end) ++f_.words_without_tokens;
      for (; begin < end; ++begin) f_.long_word_idx.push_back(f_.num_words);
      ++f_.num_words;
    }
    f_.element_words.push_back(std::ssize(word_ends_));
    ++f_.num_globals;
    return true;
  }

  // Searches the element that begins at word num_words for key strings.
  void look_at_words(std::string_view lower_text) {
    for (const auto& [key, word] : search_.find_new(lower_text)) {
      f_.labels.push_back({f_.num_words + static_cast<std::int64_t>(word), spaces(keys_[key]) + 1});
      --missing_;
    }
    if (!config_.first_occurrence) return;
    for_each_word_of(lower_text, [&](std::string_view word) { f_.lower_words.emplace_back(word); });
  }

  const data::Tokenizer& tokenizer_;
  const PrepareConfig& config_;
  const std::vector<std::string>& keys_;
  PhraseSearch search_;
  std::size_t missing_;                 // number of keys not found yet
  std::vector<std::int32_t> ids_;       // of the element's words, one after the other
  std::vector<std::size_t> word_ends_;  // of each word in ids_
  Features f_;
};

Features lay_out_blocks(const Page& page, const std::vector<std::string>& keys, const data::Tokenizer& tokenizer,
                        const PrepareConfig& config) {
  Features f;
  const std::int64_t block = config.fixed_block_len;
  const auto blocks = [&](std::int64_t tokens) { return ceil_div(tokens, block); };
  std::size_t searched = 0;  // bytes of the text up to the last word with a token
  for (const std::string_view word : words_of(page.text)) {
    std::vector<std::int32_t> ids;
    tokenizer.append_word_ids(word, ids);
    const std::int64_t tokens = std::ssize(f.long_token_ids) + std::ssize(ids);
    if (tokens > config.long_max_length || blocks(tokens) > config.global_max_length) break;
    f.long_token_ids.insert(f.long_token_ids.end(), ids.begin(), ids.end());
    f.long_word_idx.insert(f.long_word_idx.end(), ids.size(), f.num_words);
    ++f.num_words;
    if (ids.empty()) {
      ++f.words_without_tokens;
    } else {
      searched = static_cast<std::size_t>(word.data() + word.size() - page.text.data());
    }
  }
  for (std::int64_t i = 0; i < std::ssize(f.long_token_ids); ++i) f.long_vdom_idx.push_back(i / block);
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
  // Labels are in the order of the key strings with a space on both sides (task-openkp 2.4), which differs from that of
  // the bare ones where a character below the space follows: "a\tb" comes before "a".
  std::vector<std::string> ordered = keys;
  std::sort(ordered.begin(), ordered.end(),
            [](const std::string& a, const std::string& b) { return a + ' ' < b + ' '; });
  return ElementLayout(ordered, tokenizer, config).build(page.elements);
}

std::vector<std::int64_t> first_occurrences(const Features& features, std::int64_t longest_phrase) {
  const std::int64_t w = features.num_words;
  std::unordered_map<std::string_view, std::int64_t> numbers;  // word → number
  std::vector<std::int64_t> words;                             // [w]
  for (const std::string& word : features.lower_words) {
    words.push_back(numbers.try_emplace(word, std::ssize(numbers)).first->second);
  }
  // A phrase is represented by the number of the phrase without its last word, and that word, so no text is concatenated.
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
