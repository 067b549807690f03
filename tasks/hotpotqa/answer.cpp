#include "tasks/hotpotqa/answer.h"

#include <cmath>

#include "data/text/characters.h"
#include "data/text/sentence_splitter.h"
#include "data/text/unicode.h"
#include "tasks/feed/features.h"
#include "tasks/host_logits.h"
#include "tasks/hotpotqa/decode.h"
#include "tasks/hotpotqa/features.h"
#include "tasks/hotpotqa/predictions.h"
#include "tasks/text/recover_text.h"
#include "tasks/text/top_scores.h"

namespace etc::hotpotqa {

namespace {

constexpr const char* kTypeNames[] = {"span", "yes", "no"};  // by AnswerType

// Number of characters of a text other than white space.
std::int64_t solid_count(std::string_view utf8) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < utf8.size();) count += data::is_space(data::next_code_point(utf8, i)) ? 0 : 1;
  return count;
}

// The first byte after `solid` non-white-space characters and the white space that follows them.
std::size_t behind_solid(std::string_view utf8, std::int64_t solid) {
  std::size_t i = 0;
  while (i < utf8.size()) {
    std::size_t next = i;
    if (!data::is_space(data::next_code_point(utf8, next)) && solid-- == 0) break;
    i = next;
  }
  return i;
}

// The position of the answer's tokens in the text of their sentence. WordPiece: the answer's unigrams, narrowed to the
// answer if they contain its spelling. SentencePiece tokens have no positions: the answer's spelling is searched from the
// character reached by the pieces before it; {0, 0} where the normalised text differs from the sentence's.
data::ByteSpan span_in_sentence(const Answer& answer, const data::Example& example, std::int64_t owner,
                                const data::Tokenizer& tokenizer) {
  const std::string_view sentence = feed::texts(example, "global_text")[at(owner)];
  std::size_t begin = 0, end = sentence.size();
  const std::int64_t first_word = unigram_of(example, answer.tokens->first);
  if (first_word >= 0) {
    const auto words = text::unigrams(sentence);
    const std::int64_t last_word = unigram_of(example, answer.tokens->last);
    if (last_word < first_word || last_word >= std::ssize(words)) return {0, 0};  // another text's (quirk H1)
    const std::string_view first = words[at(first_word)], last = words[at(last_word)];
    begin = static_cast<std::size_t>(first.data() - sentence.data());
    end = static_cast<std::size_t>(last.data() + last.size() - sentence.data());
  } else {
    const auto& owners = feed::numbers(example, "long_sentence_ids");
    const auto& ids = feed::numbers(example, "long_token_ids");
    std::vector<std::string> before;
    std::int64_t i = answer.tokens->first;
    while (i > 0 && owners[at(i - 1)] == owner) --i;
    for (; i < answer.tokens->first; ++i) before.push_back(tokenizer.piece(static_cast<std::int32_t>(ids[at(i)])));
    begin = behind_solid(sentence, solid_count(text::joined_sentencepieces(before)));
    if (sentence.find(answer.text, begin) == std::string_view::npos) return {0, 0};
  }
  const std::size_t found = sentence.substr(0, end).find(answer.text, begin);
  if (found == std::string_view::npos || answer.text.empty())
    return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
  return {static_cast<std::int64_t>(found), static_cast<std::int64_t>(found + answer.text.size())};
}

Json place_of(const Answer& answer, const data::Example& example, const data::Tokenizer& tokenizer) {
  if (!answer.tokens) return nullptr;
  const std::int64_t owner = feed::numbers(example, "long_sentence_ids")[at(answer.tokens->first)];
  if (owner < 0) return nullptr;  // CLS stands for no text
  const data::ByteSpan span = span_in_sentence(answer, example, owner, tokenizer);
  if (span.begin == span.end) return nullptr;
  const std::string_view sentence = feed::texts(example, "global_text")[at(owner)];
  const std::int64_t number = feed::numbers(example, "global_sentence_ids")[at(owner)];  // of that text
  const std::int64_t start = data::character_count(sentence.substr(0, at(span.begin)));
  return {{"paragraph", feed::numbers(example, "global_paragraph_ids")[at(owner)]},
          {"sentence", number < 0 ? Json() : Json(number)},
          {"start", start},
          {"end", start + data::character_count(sentence.substr(at(span.begin), at(span.end - span.begin)))}};
}

// The sentences that are predicted supporting facts.
Json evidence_of(const data::Example& example, const Logits& logits, double threshold) {
  const auto& paragraphs = feed::numbers(example, "global_paragraph_ids");
  const auto& sentences = feed::numbers(example, "global_sentence_ids");  // as written to prediction files
  Json evidence = Json::array();
  for (std::size_t j = 0; j < sentences.size(); ++j) {
    const double probability = 1 / (1 + std::exp(-static_cast<double>(logits.supporting_facts[j])));
    if (sentences[j] < 0 || probability < threshold) continue;
    evidence.push_back({{"paragraph", paragraphs[j]},
                        {"sentence", sentences[j]},
                        {"title", feed::texts(example, "paragraph_titles")[at(paragraphs[j])]},
                        {"text", feed::texts(example, "global_text")[j]},
                        {"score", probability}});
  }
  return evidence;
}

}  // namespace

void HotpotqaAnswer::add(Examples examples, const EncoderInput& input, const HeadOutput& computed, ExampleRange own) {
  const HeadOutput logits = on_host(computed);
  for (std::size_t b = own.first; b < own.end; ++b) {
    const ExampleLogits one = logits_of(logits, input, b, options_.encoding);
    for (const auto values :
         {one.views.begin, one.views.end, one.views.bio, one.views.supporting_facts, one.views.answer_type}) {
      text::require_finite(values, feed::text(examples[b].features, "id"));
    }
    answer_ = json_of(examples[b].features, one.views);
  }
}

Json HotpotqaAnswer::json_of(const data::Example& example, const Logits& logits) const {
  const Decoded decoded = decode(logits, example, *tokenizer_, options_);
  const auto type = at(text::first_largest(logits.answer_type));
  const std::vector<float> types = text::softmax(logits.answer_type);
  Json type_scores;
  for (std::size_t t = 0; t < types.size(); ++t) type_scores[kTypeNames[t]] = types[t];
  const bool span = type == static_cast<std::size_t>(AnswerType::span);
  return {{"id", feed::text(example, "id")},
          {"answer", decoded.answer.text},
          {"answer_type", kTypeNames[type]},
          {"answer_type_scores", std::move(type_scores)},
          {"score", span ? decoded.answer.score : types[type]},
          {"place", place_of(decoded.answer, example, *tokenizer_)},
          {"evidence", evidence_of(example, logits, options_.sf_threshold)}};
}

}  // namespace etc::hotpotqa
