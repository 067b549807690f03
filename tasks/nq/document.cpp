#include "tasks/nq/document.h"

#include "data/text/unicode.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"

namespace etc::nq {

namespace {

using Kind = data::TextBlock::Kind;

// A document token: bytes [begin, end) of a block's text, or a tag, which is not part of the text.
struct Word {
  std::size_t block = 0, begin = 0, end = 0;
  bool tag() const { return begin == end; }
};

// Calls visit(begin, end) for every word and every punctuation mark of a text.
template <typename Visit>
void for_each_token(std::string_view text, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t c = data::next_code_point(text, at);
    const bool space = data::is_space(c);
    if (!space && !data::is_punctuation(c)) continue;
    if (begin < here) visit(begin, here);
    if (!space) visit(here, at);
    begin = at;
  }
  if (begin < text.size()) visit(begin, text.size());
}

class NqDocument final : public DocumentRecord {
 public:
  NqDocument(const OwnDocument& document, const std::string& question) : document_(document) {
    for (std::size_t b = 0; b < document.blocks.size(); ++b) add_block(b);
    end_group();
    record_ = {{"example_id", 0},
               {"question_text", question},
               {"document_tokens", std::move(tokens_)},
               {"long_answer_candidates", std::move(candidates_)}};
  }

  const Json& record() const override { return record_; }

  Json in_document(const Json& answer) const override {
    Json result = {{"question", record_.at("question_text")}, {"answer", answer.at("answer")}};
    Json places = Json::array();
    std::string text;
    for (const Json& span : answer.at("short")) {
      places.push_back(place_of(span));
      text += (text.empty() ? "" : ", ") + places.back().at("text").get<std::string>();
    }
    const Json& passage = answer.at("long");
    if (!result["answer"].is_null()) {
      result["answer_type"] = result["answer"];
    } else {
      result["answer_type"] = places.empty() ? "none" : "span";
      if (!places.empty()) result["answer"] = text;
    }
    result["score"] = !places.empty() ? places.front().at("score") : passage.is_null() ? Json() : passage.at("score");
    result["places"] = std::move(places);
    result["evidence"] = Json::array();
    if (!passage.is_null()) result["evidence"].push_back(place_of(passage));
    return result;
  }

  TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const override {
    const auto& question = feed::numbers(examples.front().features, "question_ids");
    const auto& first = examples.front().features;
    // CLS, the question's kept pieces and SEP have no candidate.
    std::int64_t kept = 0;
    for (const std::int64_t candidate : feed::numbers(first, "candidate_ids")) {
      if (candidate >= 0) break;
      ++kept;
    }
    kept = std::min<std::int64_t>(std::max<std::int64_t>(kept - 2, 0), std::ssize(question));
    TokenCount tokens{kept, std::ssize(question) - kept};
    for (std::size_t b = 0; b < document_.blocks.size(); ++b) {
      std::int64_t pieces = 0;
      std::vector<std::int32_t> ids;
      for_each_token(document_.blocks[b].text, [&](std::size_t begin, std::size_t end) {
        ids.clear();
        tokenizer.append_word_ids(document_.blocks[b].text.substr(begin, end - begin), ids);
        pieces += std::ssize(ids);
      });
      (document_.blocks[b].kind == Kind::heading ? tokens.cut : tokens.read) += pieces;
    }
    return tokens;
  }

 private:
  void add_tag(const char* tag) {
    tokens_.push_back({{"token", tag}, {"html_token", true}});
    words_.push_back({});
  }

  void add_words(std::size_t block) {
    const std::string& text = document_.blocks[block].text;
    for_each_token(text, [&](std::size_t begin, std::size_t end) {
      tokens_.push_back({{"token", text.substr(begin, end - begin)}, {"html_token", false}});
      words_.push_back({block, begin, end});
    });
  }

  void add_block(std::size_t b) {
    const Kind kind = document_.blocks[b].kind;
    const bool in_group = kind == Kind::list_item || kind == Kind::table_row;
    if (!in_group || kind != group_) end_group();
    const std::int64_t start = std::ssize(words_);
    switch (kind) {
      case Kind::heading:
        add_tag("<H2>");
        add_words(b);
        return add_tag("</H2>");
      case Kind::paragraph:
        add_tag("<P>");
        add_words(b);
        add_tag("</P>");
        return add_candidate(start);
      default:
        break;
    }
    const bool list = kind == Kind::list_item;
    if (group_ != kind) {
      group_ = kind;
      group_start_ = start;
      add_tag(list ? "<Ul>" : "<Table>");
    }
    add_tag(list ? "<Li>" : "<Tr>");
    add_words(b);
    add_tag(list ? "</Li>" : "</Tr>");
  }

  // Ends the current list or table, if there is one.
  void end_group() {
    if (group_ == Kind::paragraph) return;
    add_tag(group_ == Kind::list_item ? "</Ul>" : "</Table>");
    group_ = Kind::paragraph;
    add_candidate(group_start_);
  }

  void add_candidate(std::int64_t start) {
    candidates_.push_back({{"start_token", start}, {"end_token", std::ssize(words_)}, {"top_level", true}});
  }

  // span: tokens, with a score.
  Json place_of(const Json& span) const {
    const auto start = span.at("start_token").get<std::size_t>(), end = span.at("end_token").get<std::size_t>();
    std::vector<Word> words;
    for (std::size_t t = start; t < end; ++t) {
      if (!words_[t].tag()) words.push_back(words_[t]);
    }
    Json place = {{"start", 0}, {"end", 0}, {"text", ""}};  // kept if the span has only tags
    if (!words.empty()) {
      const Word &first = words.front(), &last = words.back();
      const std::int64_t begins = data::place_of(document_.blocks[first.block], first.begin, first.end).begin;
      const std::int64_t ends = data::place_of(document_.blocks[last.block], last.begin, last.end).end;
      place = document_.place({begins, ends});
      place["text"] = text_between(first, last);
    }
    place["score"] = span.at("score");
    return place;
  }

  std::string text_between(const Word& first, const Word& last) const {
    std::string text;
    for (std::size_t b = first.block; b <= last.block; ++b) {
      const std::string& block = document_.blocks[b].text;
      const std::size_t begin = b == first.block ? first.begin : 0;
      const std::size_t end = b == last.block ? last.end : block.size();
      text += (text.empty() ? "" : " ") + block.substr(begin, end - begin);
    }
    return text;
  }

  const OwnDocument& document_;
  Json tokens_ = Json::array(), candidates_ = Json::array();
  std::vector<Word> words_;       // [tokens]
  Kind group_ = Kind::paragraph;  // of the current list or table; paragraph: none
  std::int64_t group_start_ = 0;
  Json record_;
};

}  // namespace

const DocumentKind& document_kind() {
  static const DocumentKind kKind{true, [](const OwnDocument& document, const std::string& question) {
                                    std::unique_ptr<DocumentRecord> record =
                                        std::make_unique<NqDocument>(document, question);
                                    return record;
                                  }};
  return kKind;
}

}  // namespace etc::nq
