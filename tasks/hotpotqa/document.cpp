#include "tasks/hotpotqa/document.h"

#include "data/text/characters.h"
#include "data/text/icu_sentences.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/text/offset_text.h"

namespace etc::hotpotqa {

namespace {

using Kind = data::TextBlock::Kind;

std::size_t at(const Json& number) {
  return number.get<std::size_t>();
}

// Bytes [begin, end) of a block's text.
struct Piece {
  std::size_t block = 0, begin = 0, end = 0;
};

struct DocumentParagraph {
  Piece title;  // empty: none
  std::vector<Piece> sentences;
};

class HotpotqaDocument final : public DocumentRecord {
 public:
  HotpotqaDocument(const OwnDocument& document, const std::string& question) : document_(document) {
    find_paragraphs();
    Json context = Json::array();
    for (const DocumentParagraph& paragraph : paragraphs_) {
      Json sentences = Json::array();
      for (const Piece& sentence : paragraph.sentences) sentences.push_back(text_of(sentence));
      context.push_back({text_of(paragraph.title), std::move(sentences)});
    }
    record_ = {{"_id", "document"}, {"question", question}, {"context", std::move(context)}};
  }

  const Json& record() const override { return record_; }

  Json in_document(const Json& answer) const override {
    Json result = {{"question", record_.at("question")}};
    for (const char* key : {"answer", "answer_type", "score", "answer_type_scores"}) result[key] = answer.at(key);
    if (result["answer"] == "") {
      result["answer"] = nullptr;
      result["answer_type"] = "none";
    }
    result["places"] = Json::array();
    if (!answer.at("place").is_null()) result["places"].push_back(place_of(answer.at("place")));
    result["evidence"] = Json::array();
    for (const Json& fact : answer.at("evidence")) {
      const Piece& sentence = paragraphs_[at(fact.at("paragraph"))].sentences[at(fact.at("sentence"))];
      Json place = document_.place(sentence.block, sentence.begin, sentence.end);
      place["score"] = fact.at("score");
      result["evidence"].push_back(std::move(place));
    }
    return result;
  }

  TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const override {
    const auto count = [&](std::string_view words) { return std::ssize(text::OffsetText(words, tokenizer).ids()); };
    std::int64_t all = count(record_.at("question").get_ref<const std::string&>());
    for (const DocumentParagraph& paragraph : paragraphs_) {
      all += count(text_of(paragraph.title));
      for (const Piece& sentence : paragraph.sentences) all += count(text_of(sentence));
    }
    std::int64_t read = -1;  // without CLS
    for (const data::LoadedExample& example : examples)
      read += std::ssize(feed::numbers(example.features, "long_token_ids"));
    return {read, all - read};
  }

 private:
  void find_paragraphs() {
    const auto splitter = data::make_icu_splitter();
    Piece title;
    Kind before = Kind::heading;
    for (std::size_t b = 0; b < document_.blocks.size(); ++b) {
      const data::TextBlock& block = document_.blocks[b];
      if (block.kind == Kind::heading) {
        title = {b, 0, block.text.size()};
      } else {
        const bool goes_on = block.kind != Kind::paragraph && block.kind == before;
        if (!goes_on) paragraphs_.push_back({title, {}});
        for (const data::ByteSpan& span : splitter->split(block.text)) {
          paragraphs_.back().sentences.push_back(
              {b, static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end)});
        }
      }
      before = block.kind;
    }
  }

  std::string text_of(const Piece& piece) const {
    return piece.begin == piece.end ? ""
                                    : document_.blocks[piece.block].text.substr(piece.begin, piece.end - piece.begin);
  }

  // place: RecordAnswer's, in characters of a sentence or title.
  Json place_of(const Json& place) const {
    const DocumentParagraph& paragraph = paragraphs_[at(place.at("paragraph"))];
    const Piece& piece =
        place.at("sentence").is_null() ? paragraph.title : paragraph.sentences[at(place.at("sentence"))];
    const std::string text = text_of(piece);
    return document_.place(piece.block, piece.begin + data::byte_of_character(text, place.at("start")),
                           piece.begin + data::byte_of_character(text, place.at("end")));
  }

  const OwnDocument& document_;
  std::vector<DocumentParagraph> paragraphs_;
  Json record_;
};

}  // namespace

const DocumentKind& document_kind() {
  static const DocumentKind kKind{true, [](const OwnDocument& document, const std::string& question) {
                                    std::unique_ptr<DocumentRecord> record =
                                        std::make_unique<HotpotqaDocument>(document, question);
                                    return record;
                                  }};
  return kKind;
}

}  // namespace etc::hotpotqa
