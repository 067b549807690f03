#include "tests/support/xml.h"

#include <cctype>
#include <stdexcept>
#include <utility>

namespace etc::test {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view document) : rest_(document) {}

  std::vector<XmlElement> read() {
    while (true) {
      const std::string words = text();
      if (!open_.empty()) {
        if (!has_child_.back()) elements_[open_.back()].text += words;
      } else if (words.find_first_not_of(" \n\t") != std::string::npos) {
        fail("text outside of the root");
      }
      if (rest_.empty()) break;
      tag();
    }
    if (!open_.empty() || elements_.empty()) fail("an end without end tag, or no element");
    return std::move(elements_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("XML: " + what + " before: " + std::string(rest_.substr(0, 60)));
  }

  bool take(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    rest_.remove_prefix(words.size());
    return true;
  }

  void blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }

  std::string name() {
    std::size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '-')) ++end;
    if (end == 0 || !std::isalpha(static_cast<unsigned char>(rest_[0]))) fail("expected a name");
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  std::string entity() {
    constexpr std::pair<std::string_view, const char*> kEntities[] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};
    for (const auto& [words, character] : kEntities) {
      if (take(words)) return character;
    }
    fail("unknown entity");
  }

  // Characters up to a tag or to `end`, entities resolved.
  std::string text(char end = '<') {
    std::string words;
    while (!rest_.empty() && rest_[0] != '<' && rest_[0] != end) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') fail("control character");
      if (byte == '&') {
        words += entity();
      } else {
        words += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    return words;
  }

  void tag() {
    if (take("</")) {
      if (open_.empty() || name() != elements_[open_.back()].name || !take(">")) fail("end tag of another element");
      open_.pop_back();
      has_child_.pop_back();
      return;
    }
    if (!take("<")) fail("expected a tag");
    if (open_.empty() && !elements_.empty()) fail("a second root");
    if (!open_.empty()) has_child_.back() = true;
    elements_.push_back({name(), "", {}});
    while (!rest_.starts_with("/>") && !rest_.starts_with(">")) {
      blanks();
      const std::string key = name();
      if (!take("=\"")) fail("expected =\" after an attribute's name");
      const std::string value = text('"');
      if (!take("\"")) fail("an attribute's value without end");
      if (!elements_.back().attributes.emplace(key, value).second) fail("attribute twice");
    }
    if (take("/>")) return;
    take(">");
    open_.push_back(elements_.size() - 1);
    has_child_.push_back(false);
  }

  std::string_view rest_;
  std::vector<XmlElement> elements_;
  std::vector<std::size_t> open_;  // the elements that have not ended
  std::vector<bool> has_child_;    // of these
};

}  // namespace

std::vector<XmlElement> xml_elements(std::string_view document) {
  return Reader(document).read();
}

}  // namespace etc::test
