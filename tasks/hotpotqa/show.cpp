#include "tasks/hotpotqa/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tasks/feed/features.h"
#include "tasks/hotpotqa/schema.h"
#include "tasks/text/answer_text.h"
#include "tasks/text/top_scores.h"

namespace etc::hotpotqa {

namespace {

std::string with_brackets(const std::string& text, const std::string& answer) {
  const std::size_t at = answer.empty() ? std::string::npos : text.find(answer);
  if (at == std::string::npos) return text;
  return text.substr(0, at) + "[[" + answer + "]]" + text.substr(at + answer.size());
}

std::string judgement(const data::Example& example, const std::string& answer) {
  if ((feed::number(example, "flags") & kLabelMissing) != 0) return "";
  const std::string& gold = feed::text(example, "answer");
  if (text::normalised_answer(answer) == text::normalised_answer(gold)) return "  <- right";
  return "  <- wrong, the answer is: " + gold;
}

}  // namespace

std::string shown_prediction(const data::Example& example, const Logits& logits, const data::Tokenizer& tokenizer,
                             const DecodeOptions& options) {
  const Decoded decoded = decode(logits, example, tokenizer, options);
  const std::vector<float> types = text::softmax(logits.answer_type);
  std::string out = fmt::format("{}: {}\n", feed::text(example, "id"), feed::text(example, "question"));
  out += fmt::format("  answer: {}{}\n", decoded.answer.text.empty() ? "(none)" : decoded.answer.text,
                     judgement(example, decoded.answer.text));
  out +=
      fmt::format("  type: span {:.2f} %, yes {:.2f} %, no {:.2f} %\n", 100 * types[0], 100 * types[1], 100 * types[2]);
  const auto& titles = feed::texts(example, "paragraph_titles");
  const auto& texts = feed::texts(example, "global_text");
  const auto& paragraphs = feed::numbers(example, "global_paragraph_ids");
  const auto& sentences = feed::numbers(example, "global_sentence_ids");
  const auto& gold_titles = feed::texts(example, "gold_sf_titles");
  const auto& gold_sentences = feed::numbers(example, "gold_sf_sentences");
  for (std::size_t j = 0; j < sentences.size(); ++j) {
    if (paragraphs[j] < 0 || sentences[j] < 0) continue;
    const SupportingFact fact{titles[static_cast<std::size_t>(paragraphs[j])], sentences[j]};
    bool gold = false;
    for (std::size_t k = 0; k < gold_titles.size(); ++k) {
      gold = gold || (gold_titles[k] == fact.title && gold_sentences[k] == fact.sentence);
    }
    const auto& named = decoded.supporting_facts;
    const bool chosen = std::find(named.begin(), named.end(), fact) != named.end();
    if (!chosen && !gold) continue;
    const double probability = 1 / (1 + std::exp(-static_cast<double>(logits.supporting_facts[j])));
    out += fmt::format("  {:6.2f} %  {} {}: {}{}\n", 100 * probability, fact.title, fact.sentence,
                       with_brackets(texts[j], decoded.answer.text),
                       gold_titles.empty() ? ""
                       : chosen && gold    ? "  <- right"
                       : chosen            ? "  <- no supporting fact"
                                           : "  <- missed");
  }
  return out;
}

}  // namespace etc::hotpotqa
