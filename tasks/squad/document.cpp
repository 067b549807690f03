#include "tasks/squad/document.h"

#include <algorithm>

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/text/offset_text.h"
#include "tasks/text/special_pieces.h"

namespace etc::squad {

namespace {

class SquadDocument final : public DocumentRecord {
 public:
  SquadDocument(const OwnDocument& document, const std::string& question) : document_(document) {
    for (const data::TextBlock& block : document.blocks) {
      if (!context_.empty()) context_ += '\n';
      block_begins_.push_back(context_.size());
      context_ += block.text;
    }
    record_ = {{"context", context_}, {"question", {{"id", "0"}, {"question", question}, {"answers", Json::array()}}}};
  }

  const Json& record() const override { return record_; }

  Json in_document(const Json& answer) const override {
    Json result = {{"question", record_.at("question").at("question")},
                   {"answer", answer.at("answer")},
                   {"answer_type", answer.at("answer").is_null() ? "none" : "span"},
                   {"answer_type_scores", answer.at("answer_type_scores")},
                   {"score", answer.at("score")},
                   {"places", Json::array()},
                   {"evidence", Json::array()}};
    if (!answer.at("place").is_null()) {
      result["places"].push_back(place_of(answer.at("place"), answer.at("answer").get<std::string>()));
    }
    return result;
  }

  TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const override {
    const auto& question = record_.at("question").at("question").get_ref<const std::string&>();
    const auto asked = static_cast<std::int64_t>(tokenizer.encode_ids(question).size());
    // The text is preceded by CLS, the question's kept pieces and the separators.
    std::int64_t kept = -1 - text::pair_form(tokenizer).separators;
    for (const std::int64_t word : feed::numbers(examples.front().features, "token_words")) {
      if (word >= 0) break;
      ++kept;
    }
    return {kept + std::ssize(text::OffsetText(context_, tokenizer).ids()), asked - kept};
  }

 private:
  // Narrows the words to the answer's characters, if they occur in the words unchanged.
  Json place_of(const Json& place, const std::string& answer) const {
    const auto words = text::unigrams(context_);
    const auto first = place.at("first_word").get<std::size_t>();
    const std::string_view last = words.at(first + place.at("words").get<std::size_t>() - 1);
    auto begin = static_cast<std::size_t>(words.at(first).data() - context_.data());
    auto end = static_cast<std::size_t>(last.data() + last.size() - context_.data());
    const std::size_t found = std::string_view(context_).substr(0, end).find(answer, begin);
    if (found != std::string::npos) {
      begin = found;
      end = found + answer.size();
    }
    const std::size_t first_block = block_of(begin), last_block = block_of(end - 1);
    const std::size_t in_first = begin - block_begins_[first_block], in_last = end - block_begins_[last_block];
    if (first_block == last_block) return document_.place(first_block, in_first, in_last);
    const auto& blocks = document_.blocks;
    const std::int64_t from = data::place_of(blocks[first_block], in_first, blocks[first_block].text.size()).begin;
    Json result = document_.place({from, data::place_of(blocks[last_block], 0, in_last).end});
    result["text"] = context_.substr(begin, end - begin);
    return result;
  }

  std::size_t block_of(std::size_t byte) const {
    return static_cast<std::size_t>(std::upper_bound(block_begins_.begin(), block_begins_.end(), byte) -
                                    block_begins_.begin()) -
           1;
  }

  const OwnDocument& document_;
  std::string context_;
  std::vector<std::size_t> block_begins_;  // [blocks], bytes of the context
  Json record_;
};

}  // namespace

const DocumentKind& document_kind() {
  static const DocumentKind kKind{true, [](const OwnDocument& document, const std::string& question) {
                                    std::unique_ptr<DocumentRecord> record =
                                        std::make_unique<SquadDocument>(document, question);
                                    return record;
                                  }};
  return kKind;
}

}  // namespace etc::squad
