#include "tasks/wikihop/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/base/utf8.h"
#include "tasks/text/top_scores.h"
#include "tasks/wikihop/decode.h"

namespace etc::wikihop {

namespace {

constexpr std::size_t kShownCandidates = 5;
constexpr std::size_t kContext = 120;  // bytes of a document before and behind its first mention

char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t find_ignoring_case(const std::string& text, const std::string& word, std::size_t from) {
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), word.begin(), word.end(),
                                 [](char a, char b) { return ascii_lower(a) == ascii_lower(b); });
  return found == text.end() ? std::string::npos : static_cast<std::size_t>(found - text.begin());
}

// A position near `at` that is a UTF-8 character boundary.
std::size_t character_border(const std::string& text, std::size_t at) {
  while (at < text.size() && continues_character(text[at])) ++at;
  return std::min(at, text.size());
}

// The text around the document's first mention of the answer, with all mentions in it in brackets; empty without a mention.
std::string passage(const std::string& document, const std::string& answer) {
  const std::size_t first = find_ignoring_case(document, answer, 0);
  if (answer.empty() || first == std::string::npos) return "";
  const std::size_t begin = character_border(document, first > kContext ? first - kContext : 0);
  const std::size_t end = character_border(document, std::min(document.size(), first + answer.size() + kContext));
  std::string text = begin > 0 ? "… " : "";
  std::size_t at = begin;
  for (std::size_t mention = first; mention != std::string::npos && mention + answer.size() <= end;
       mention = find_ignoring_case(document, answer, at)) {
    text += document.substr(at, mention - at) + "[[" + document.substr(mention, answer.size()) + "]]";
    at = mention + answer.size();
  }
  return text + document.substr(at, end - at) + (end < document.size() ? " …" : "");
}

}  // namespace

std::string shown_prediction(const Json& raw_record, const data::Example& example, std::span<const float> logits) {
  const auto& candidates = std::get<std::vector<std::string>>(example.at("candidates"));
  const std::string gold = normalised_answer(std::get<std::string>(example.at("answer")));
  const std::vector<float> probabilities = text::softmax(logits);
  const std::vector<std::int64_t> order = text::largest(logits, std::ssize(logits));

  std::string text =
      fmt::format("{}: {}\n", std::get<std::string>(example.at("id")), std::get<std::string>(example.at("query")));
  for (std::size_t rank = 0; rank < std::min(order.size(), kShownCandidates); ++rank) {
    const auto c = static_cast<std::size_t>(order[rank]);
    text += fmt::format("  {:6.2f} %  {}", 100 * probabilities[c], candidates[c]);
    if (rank == 0)
      text += gold.empty() ? "  <- chosen" : candidates[c] == gold ? "  <- chosen, right" : "  <- chosen, wrong";
    if (rank > 0 && candidates[c] == gold) text += "  <- the answer";
    text += "\n";
  }
  if (order.size() > kShownCandidates) text += fmt::format("  and {} more\n", order.size() - kShownCandidates);
  const std::string& chosen = candidates[static_cast<std::size_t>(order[0])];
  std::size_t mentioned = 0;
  const Json documents = raw_record.value("supports", Json::array());
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const std::string found = passage(documents[d].get<std::string>(), chosen);
    if (found.empty()) continue;
    text += fmt::format("  document {}: {}\n", d, found);
    ++mentioned;
  }
  if (mentioned == 0) text += "  no document mentions the choice\n";
  return text;
}

}  // namespace etc::wikihop
