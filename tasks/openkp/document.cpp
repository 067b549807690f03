#include "tasks/openkp/document.h"

#include <algorithm>

#include "data/text/characters.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/page.h"

namespace etc::openkp {

namespace {

constexpr double kPageWidth = 800, kLine = 24, kFont = 16;  // pixels
constexpr std::int64_t kLineCharacters = 80;

class OpenkpDocument final : public DocumentRecord {
 public:
  explicit OpenkpDocument(const OwnDocument& document) : document_(document) {
    Json elements = Json::array();
    std::string text;
    double y = 0;
    std::int64_t word = 0;
    for (const data::TextBlock& block : document.blocks) {
      text += (text.empty() ? "" : " ") + block.text;
      const std::int64_t words = word_count(block.text);
      elements.push_back({{"text", block.text},
                          {"start_idx", word},
                          {"end_idx", word + words},
                          {"Id", 0},
                          {"feature", boxes(block, y)}});
      word += words;
    }
    record_ = {{"url", "document"}, {"text", std::move(text)}, {"VDOM", json_line(elements)}};
  }

  const Json& record() const override { return record_; }

  Json in_document(const Json& answer) const override {
    Json phrases = Json::array();
    for (const Json& phrase : answer.at("keyphrases")) {
      Json found = place_of_words(phrase.at("first_word"), phrase.at("words"));
      found["text"] = phrase.at("text");
      found["score"] = phrase.at("score");
      phrases.push_back(std::move(found));
    }
    return {{"keyphrases", std::move(phrases)}};
  }

  TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const override {
    std::vector<std::int32_t> ids;
    std::int64_t read = 0;
    for_each_word_of(record_.at("text").get_ref<const std::string&>(),
                     [&](std::string_view word) { tokenizer.append_word_ids(word, ids); });
    for (const data::LoadedExample& example : examples)
      read += std::ssize(feed::numbers(example.features, "long_token_ids"));
    return {read, std::ssize(ids) - read};
  }

 private:
  // The box of the element at height y and that of its parent, the page (task-openkp 1.3); advances y below the element.
  static Json boxes(const data::TextBlock& block, double& y) {
    const bool heading = block.kind == data::TextBlock::Kind::heading;
    const double size = heading ? 2 : 1;
    const std::int64_t characters = data::character_count(block.text) * (heading ? 2 : 1);
    const auto lines = static_cast<double>(std::max<std::int64_t>(1, (characters - 1) / kLineCharacters + 1));
    const double height = lines * kLine * size;
    const Json box = {0.0, kPageWidth, y, height, 1, 0, heading ? 1 : 0, 1, kFont * size, heading ? 1 : 0};
    Json both = box;
    for (const Json& number : Json{0.0, kPageWidth, 0.0, y + height, 1, 0, 0, 0, kFont, 0}) both.push_back(number);
    y += height;
    return both;
  }

  // The position of the page's words [first, first + count), which may continue from one block into the next.
  Json place_of_words(std::int64_t first, std::int64_t count) const {
    data::ByteSpan place{-1, -1};
    std::int64_t word = 0;
    for (const data::TextBlock& block : document_.blocks) {
      std::size_t begin = 0;
      for_each_word_of(block.text, [&](std::string_view text) {
        if (word >= first && word < first + count && !text.empty()) {
          const data::ByteSpan own = data::place_of(block, begin, begin + text.size());
          if (place.begin < 0) place.begin = own.begin;
          place.end = own.end;
        }
        begin += text.size() + 1;
        ++word;
      });
    }
    return document_.place(place);
  }

  const OwnDocument& document_;
  Json record_;
};

}  // namespace

const DocumentKind& document_kind() {
  static const DocumentKind kKind{false, [](const OwnDocument& document, const std::string&) {
                                    std::unique_ptr<DocumentRecord> record = std::make_unique<OpenkpDocument>(document);
                                    return record;
                                  }};
  return kKind;
}

}  // namespace etc::openkp
