#include "data/readers/question_reader.h"

#include <algorithm>
#include <utility>

#include "data/readers/json_record.h"
#include "data/readers/json_scan.h"
#include "data/readers/record_slicer.h"

namespace etc::data {

namespace {

// Parts of a text that is known to be valid JSON, as views; empty if there is no such part.

std::string_view value_at(std::string_view text, std::size_t at) {
  ValueScanner scanner(text[at]);
  return text.substr(at, scanner.scan(text.data() + at, text.size() - at));
}

std::size_t behind_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Calls visit(value, value before a colon or "") for each element of an array or member of an object.
template <typename Visit>
void for_each_part(std::string_view text, Visit&& visit) {
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return;
  const bool object = text[0] == '{';
  for (std::size_t at = behind_blanks(text, 1); at + 1 < text.size(); at = behind_blanks(text, at)) {
    std::string_view key;
    if (object) {
      key = value_at(text, at);
      at = behind_blanks(text, behind_blanks(text, at + key.size()) + 1);
    }
    const std::string_view value = value_at(text, at);
    visit(key, value);
    at = behind_blanks(text, at + value.size());
    if (text[at] == ',') ++at;
  }
}

// The value of an object's member; of equal keys the last, as in all readers.
std::string_view member(std::string_view object, std::string_view quoted_key) {
  std::string_view found;
  if (object.empty() || object[0] != '{') return found;
  for_each_part(object, [&](std::string_view key, std::string_view value) {
    if (key == quoted_key) found = value;
  });
  return found;
}

constexpr std::string_view kArticles = "\"data\"";

// Whether a place within an article lies in one of its questions: "paragraphs[0].qas[2].id".
bool in_question(std::string_view field) {
  constexpr std::string_view kParagraph = "paragraphs[", kQuestion = "].qas[";
  if (!field.starts_with(kParagraph)) return false;
  field.remove_prefix(kParagraph.size());
  return field.substr(std::min(field.find(']'), field.size())).starts_with(kQuestion);
}

bool is_list(std::string_view value) {
  return !value.empty() && value[0] == '[';
}

}  // namespace

struct QuestionReader::Impl {
  explicit Impl(ByteStream& stream) : text(stream) {}

  // A pending record: views of the article's text.
  struct Part {
    std::string_view context;   // empty: none
    std::string_view question;  // or, misplaced, the record itself
    bool misplaced = false;
  };

  TextBlocks text;
  bool started = false, byte_order_mark = false, finished = false, first_article = true;
  RecordSlice article;
  std::vector<Part> parts;  // of the article
  std::size_t next_part = 0;
  std::vector<FileNote> repeated_keys;
  TextPosition place;  // of byte `placed` of the article
  std::size_t placed = 0;
  std::int64_t index = 0;

  char here() { return text.available(1) > 0 ? *text.begin() : '\0'; }

  void expect(char wanted, const char* expected) {
    skip_blanks(text);
    if (here() != wanted) fail_expected(text, expected);
    text.skip(1);
  }

  std::string taken_value(const char* expected) {
    skip_blanks(text);
    std::string value;
    if (here() == '}' || here() == ']' || here() == ',' || here() == ':') fail_expected(text, expected);
    if (!take_value(text, RecordSlicer::kMaxRecordBytes, value)) fail_expected(text, "the end of this value");
    return value;
  }

  // Moves into the list `data` of the file's object.
  void start() {
    started = true;
    byte_order_mark = text.skip_byte_order_mark();
    expect('{', "an object with the list \"data\" of articles");
    for (bool first = true;; first = false) {
      skip_blanks(text);
      if (here() == '}') {
        throw InputFault("data_missing", text.position(), "the file's object has no list \"data\" of articles");
      }
      if (!first) expect(',', "',' or '}' behind a member");
      const std::string key = taken_value("a member");
      expect(':', "':' behind a member's name");
      skip_blanks(text);
      if (key == kArticles && here() == '[') break;
      taken_value("a value");
    }
    text.skip(1);
  }

  // Reads the members after the list. A second list "data" is a fault: the first one has been read already, although
  // the last of equal keys counts everywhere else.
  void finish() {
    finished = true;
    for (skip_blanks(text); here() == ','; skip_blanks(text)) {
      text.skip(1);
      skip_blanks(text);
      const TextPosition member = text.position();
      if (taken_value("a member") == kArticles) {
        throw InputFault("duplicate_key", member, "expected one member \"data\", got another behind the articles");
      }
      expect(':', "':' behind a member's name");
      taken_value("a value");
    }
    expect('}', "',' or '}' behind the articles");
    skip_blanks(text);
    if (text.available(1) > 0 || !text.fault().empty()) fail_expected(text, "nothing behind the file's object");
  }

  // Takes the next article and checks that it is JSON; false after the last.
  bool take_article() {
    skip_blanks(text);
    if (here() == ']') {
      text.skip(1);
      finish();
      return false;
    }
    if (!first_article) {
      expect(',', "',' or ']' behind an article");
      skip_blanks(text);
    }
    if (here() == '\0' || here() == ',' || here() == ']' || here() == '}') fail_expected(text, "an article");
    first_article = false;
    article = {};
    article.begin = text.position();
    if (!take_value(text, RecordSlicer::kMaxRecordBytes, article.text)) {
      article.cut_short = text.fault().empty() ? kEndsInsideRecord : text.fault();
    }
    RecordSlice checked = article;  // parsing may change the text
    const std::vector<JsonNote> odd = parse_record(checked).notes;
    place = article.begin;
    placed = next_part = 0;
    split();
    note_repeated_keys(odd);
    return true;
  }

  // Notes duplicate keys outside the article's questions, which no record's text contains.
  void note_repeated_keys(const std::vector<JsonNote>& odd) {
    if (parts.size() == 1 && parts[0].misplaced && parts[0].question.data() == article.text.data()) return;
    for (const JsonNote& note : odd) {
      if (note.kind != JsonNote::Kind::duplicate_key || in_question(note.field)) continue;
      repeated_keys.push_back(
          {"duplicate_key", fmt::format("the article at byte {}, line {}: {}: the key occurs twice "
                                        "in its object, the last value was taken",
                                        article.begin.byte_offset, article.begin.line, note.field)});
    }
  }

  void split() {
    parts.clear();
    const std::string_view whole = article.text, paragraphs = member(whole, "\"paragraphs\"");
    if (!is_list(paragraphs)) return parts.push_back({{}, whole, true});
    for_each_part(paragraphs, [&](std::string_view, std::string_view paragraph) {
      const std::string_view questions = member(paragraph, "\"qas\"");
      if (!is_list(questions)) return parts.push_back({{}, paragraph, true});
      const std::string_view context = member(paragraph, "\"context\"");
      for_each_part(questions, [&](std::string_view, std::string_view question) {
        parts.push_back({context, question, false});
      });
    });
  }

  void give(const Part& part, RecordSlice& slice) {
    const auto begin = static_cast<std::size_t>(part.question.data() - article.text.data());
    place.advance(article.text.data() + placed, begin - placed);
    placed = begin;
    slice = {};
    slice.index = index++;
    slice.begin = place;
    slice.text.reserve(part.context.size() + part.question.size() + 32 + kTextPadding);
    if (part.misplaced) {
      slice.text += part.question;
      return;
    }
    slice.text += "{";
    if (!part.context.empty()) slice.text.append("\"context\":").append(part.context).append(",");
    slice.text.append("\"question\":").append(part.question).append("}");
  }
};

QuestionReader::QuestionReader(ByteStream& stream) : impl_(std::make_unique<Impl>(stream)) {}

QuestionReader::~QuestionReader() = default;

bool QuestionReader::next(RecordSlice& slice) {
  if (!impl_->started) impl_->start();
  while (!impl_->finished && impl_->next_part == impl_->parts.size()) {
    impl_->parts.clear();
    impl_->next_part = 0;
    if (!impl_->take_article()) return false;
  }
  if (impl_->finished) return false;
  impl_->give(impl_->parts[impl_->next_part++], slice);
  return true;
}

std::vector<FileNote> QuestionReader::notes() const {
  std::vector<FileNote> notes;
  if (impl_->byte_order_mark) notes.push_back({"json_syntax", "the file starts with a byte-order mark"});
  notes.insert(notes.end(), impl_->repeated_keys.begin(), impl_->repeated_keys.end());
  return notes;
}

}  // namespace etc::data
