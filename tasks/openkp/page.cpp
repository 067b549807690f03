#include "tasks/openkp/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "data/readers/flat_list.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/text/record_fields.h"

namespace etc::openkp {

namespace {

using text::element;
using text::FieldPath;

constexpr std::size_t kNumbersPerBox = 10;
// Coordinates are stored in single precision, and the model clips them; a font this large is none.
constexpr double kLargestCoordinate = std::numeric_limits<float>::max(), kLargestFont = 1e9;

// Indices of the numbers within a box (task-openkp 1.3).
enum BoxNumber : std::size_t { kX, kWidth, kY, kHeight, kBlock, kInline, kHeading, kLeaf, kFontSize, kBold };

bool is_flag(std::size_t position) {
  return position == kBlock || position == kInline || position == kHeading || position == kLeaf || position == kBold;
}

bool is_coordinate(std::size_t position) {
  return position == kX || position == kY || position == kWidth || position == kHeight;
}

double largest_size(std::size_t position) {
  return is_coordinate(position) ? kLargestCoordinate : kLargestFont;
}

using BoxNumbers = std::span<const double, 2 * kNumbersPerBox>;  // of an element, and of its parent

Box box_of(BoxNumbers numbers, std::size_t first) {
  const auto number = [&](BoxNumber n) { return numbers[first + n]; };
  Box box;
  box.x = static_cast<float>(number(kX));
  box.y = static_cast<float>(number(kY));
  box.width = static_cast<float>(number(kWidth));
  box.height = static_cast<float>(number(kHeight));
  box.font_size = number(kFontSize);
  box.block = number(kBlock) != 0;
  box.inlined = number(kInline) != 0;
  box.heading = number(kHeading) != 0;
  box.leaf = number(kLeaf) != 0;
  box.bold = number(kBold) != 0;
  return box;
}

// Whether every number is a valid size in pixels or flag; the slow path then reports which is not.
bool are_sound(BoxNumbers numbers) {
  bool sound = true;
  for (const std::size_t first : {std::size_t{0}, kNumbersPerBox}) {
    for (const BoxNumber n : {kX, kWidth, kY, kHeight, kFontSize}) {
      sound = sound && std::abs(numbers[first + n]) <= largest_size(n);
    }
    for (const BoxNumber n : {kBlock, kInline, kHeading, kLeaf, kBold}) {
      const double flag = numbers[first + n];
      sound = sound && (flag == 0 || flag == 1);
    }
  }
  return sound;
}

// Takes the place of numbers that JSON or a double cannot hold; no page has such a size.
constexpr double kNoSize = 1e300;

// NaN and Infinity, as Python writes them, and numbers beyond the range of a double or, for integers, of 64 bits.
bool is_no_size(const std::string& token) {
  if (token == "NaN" || token == "Infinity" || token == "-Infinity") return true;
  if (token.find_first_not_of("+-.0123456789eE") != std::string::npos) return false;
  const double value = std::strtod(token.c_str(), nullptr);
  const bool whole = token.find_first_of(".eE") == std::string::npos;
  return std::isinf(value) || (whole && (value >= 0x1p64 || value < -0x1p63));
}

// The text with kNoSize for such numbers, so that each is found where it stands.
std::string with_readable_numbers(const std::string& text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0, end = 0; i < text.size(); i = end) {
    end = i + 1;
    if (in_string) {
      if (text[i] == '\\') end = std::min(i + 2, text.size());
      in_string = text[i] != '"';
    } else if (text[i] == '"') {
      in_string = true;
    } else {
      end = std::max(end, std::min(text.find_first_of(" \t\r\n,:[]{}\"", i), text.size()));
    }
    const std::string token = text.substr(i, end - i);
    result += !in_string && is_no_size(token) ? "1e300" : token;
  }
  return result;
}

data::JsonRecord parse_list(std::string_view text) {
  data::RecordSlice slice;
  slice.text.reserve(text.size() + data::kTextPadding);
  slice.text = text;
  return data::parse_record(slice);
}

// The element list of a well-formed page.
const data::FlatMembers kElementMembers{{"text"}, {"start_idx", "end_idx", "Id"}, {{"feature", 2 * kNumbersPerBox}}};

class PageReader {
 public:
  PageReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : fields_(raw, kRecordMembers, faults), config_(config), faults_(faults) {}

  Page read() {
    if (const Json* url = fields_.required("url", Json::value_t::string)) read_url(*url);
    if (const Json* text = fields_.required("text", Json::value_t::string)) page_.text = fields_.text("text", *text);
    read_vdom();
    read_key_phrases();
    return std::move(page_);
  }

 private:
  void read_url(const Json& url) {
    page_.url = fields_.text("url", url);
    if (page_.url.empty()) faults_.reject("url", "id_empty", "the url is empty");
    const auto length = static_cast<std::int64_t>(data::to_code_points(page_.url).size());
    if (length > config_.url_max_code_points) {
      faults_.reject("url", "url_too_long",
                     fmt::format("{} characters exceed url_max_code_points={}", length, config_.url_max_code_points));
    }
  }

  void read_vdom() {
    const Json* vdom = fields_.find("VDOM");
    if (vdom == nullptr) {
      faults_.reject("VDOM", "missing_field", "the record has no VDOM");
    } else if (vdom->is_array()) {
      faults_.warn("VDOM", "wrong_type", "expected a string that holds JSON, got the array itself");
      read_elements(*vdom);
    } else if (!vdom->is_string()) {
      fields_.wrong_type("VDOM", "a string that holds JSON", *vdom);
    } else {
      parse_vdom(vdom->get_ref<const std::string&>());
    }
  }

  void parse_vdom(const std::string& text) {
    if (auto list = data::read_flat_list(text, kElementMembers)) return read_elements(std::move(*list));
    try {
      const data::JsonRecord parsed = parse_odd_vdom(text);
      if (!parsed.value.is_array()) return fields_.wrong_type("VDOM", "a string that holds a JSON array", parsed.value);
      read_elements(parsed.value);
    } catch (const data::InputFault& fault) {
      faults_.reject("VDOM", "vdom_syntax", std::string("in the string: ") + fault.what());
    }
  }

  // A list that is no JSON even with readable numbers is reported by the place in the text itself.
  static data::JsonRecord parse_odd_vdom(const std::string& text) {
    const std::string readable = with_readable_numbers(text);
    if (readable != text) {
      try {
        return parse_list(readable);
      } catch (const data::InputFault&) {
      }
    }
    return parse_list(text);
  }

  void read_elements(const Json& list) {
    read_each(list.size(), [&](const FieldPath& field, std::size_t i) {
      if (list[i].is_object()) return read_element(list[i], field);
      fields_.wrong_type(field, "an object", list[i]);
      return false;
    });
  }

  void read_elements(data::FlatList&& list) {
    const auto &starts = list.integers[0], &ends = list.integers[1], &ids = list.integers[2];
    page_.elements.reserve(list.rows);
    read_each(list.rows, [&](const FieldPath& field, std::size_t i) {
      Element& e = page_.elements.emplace_back();
      e.text = std::move(list.texts[0][i]);
      fields_.check_text(field.member("text"), e.text);
      const BoxNumbers numbers(list.floats[0].data() + i * BoxNumbers::extent, BoxNumbers::extent);
      bool whole = are_sound(numbers) || check_values(numbers, field.member("feature"));
      if (whole) put_boxes(numbers, e);
      if (!tiles(starts[i], ends[i], e.text)) whole = check_tiling(starts[i], ends[i], field, e.text) && whole;
      if (i == 0 || ids[i] != ids[0]) check_id(ids[i], field);
      return whole;
    });
  }

  // read(field, i): reads an element; false when something is missing or does not fit.
  template <typename Read>
  void read_each(std::size_t count, const Read& read) {
    if (count == 0) faults_.reject("VDOM", "vdom_empty", "there is no element");
    bool whole = count > 0;
    const FieldPath vdom = "VDOM";
    for (std::size_t i = 0; i < count; ++i) whole = read(vdom.element(i), i) && whole;
    if (whole && word_ != word_count(page_.text)) {
      faults_.reject(vdom.element(count - 1).member("end_idx").words(), "vdom_gap",
                     fmt::format("the last element ends at word {}, the text has {} words", word_, words().size()));
    }
  }

  // False when something is missing or does not fit.
  bool read_element(const Json& json, const FieldPath& field) {
    const Json* text = member(json, field, "text", Json::value_t::string);
    const Json* feature = member(json, field, "feature", Json::value_t::array);
    const Json* start = integer(json, field, "start_idx");
    const Json* end = integer(json, field, "end_idx");
    const Json* id = integer(json, field, "Id");
    Element& e = page_.elements.emplace_back();
    if (text != nullptr) e.text = fields_.text(field.member("text"), *text);
    const bool boxes = feature != nullptr && read_boxes(*feature, field.member("feature"), e);
    const bool placed = text != nullptr && start != nullptr && end != nullptr;
    const bool tiles = placed && check_tiling(*start, *end, field, e.text);
    if (id != nullptr) check_id(*id, field);
    return boxes && tiles;
  }

  void check_id(const Json& id, const FieldPath& field) {
    if (first_id_.is_null()) first_id_ = id;
    if (id == first_id_) return;
    faults_.warn(field.member("Id").words(), "vdom_id_mixed",
                 fmt::format("{} differs from the first element's", json_line(id)));
  }

  const Json* member(const Json& json, const FieldPath& field, const char* key, Json::value_t type) {
    const auto found = json.find(key);
    if (found == json.end()) {
      faults_.reject(field.member(key).words(), "missing_field", fmt::format("the element has no {}", key));
    } else if (found->type() != type) {
      fields_.wrong_type(field.member(key), type == Json::value_t::string ? "a string" : "an array", *found);
    } else {
      return &*found;
    }
    return nullptr;
  }

  const Json* integer(const Json& json, const FieldPath& field, const char* key) {
    const auto found = json.find(key);
    if (found == json.end()) {
      faults_.reject(field.member(key).words(), "missing_field", fmt::format("the element has no {}", key));
    } else if (!found->is_number_integer()) {
      fields_.wrong_type(field.member(key), "an integer", *found);
    } else {
      return &*found;
    }
    return nullptr;
  }

  bool read_boxes(const Json& numbers, const FieldPath& field, Element& e) {
    if (numbers.size() != 2 * kNumbersPerBox) {
      faults_.reject(field.words(), "feature_count", fmt::format("expected 20 numbers, got {}", numbers.size()));
      return false;
    }
    bool good = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) good = check_number(numbers[i], field, i) && good;
    if (!good) return false;
    std::array<double, BoxNumbers::extent> values;
    std::copy(numbers.begin(), numbers.end(), values.begin());
    put_boxes(values, e);
    return true;
  }

  static void put_boxes(BoxNumbers numbers, Element& e) {
    e.own = box_of(numbers, 0);
    e.parent = box_of(numbers, kNumbersPerBox);
  }

  // Number `index` of the list `field`.
  bool check_number(const Json& number, const FieldPath& list, std::size_t index) {
    if (!number.is_number()) {
      fields_.wrong_type(list.element(index), "a number", number);
      return false;
    }
    if (!check_value(number, list, index)) return false;
    if (is_coordinate(index % kNumbersPerBox) && number.is_number_integer()) {
      faults_.warn(list.element(index).words(), "feature_not_float", "the coordinate is an integer");
    }
    return true;
  }

  bool check_values(BoxNumbers numbers, const FieldPath& list) {
    bool good = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) good = check_value(numbers[i], list, i) && good;
    return good;
  }

  bool check_value(double value, const FieldPath& list, std::size_t index) {
    if (!(std::abs(value) <= largest_size(index % kNumbersPerBox))) {
      faults_.reject(list.element(index).words(), "feature_not_finite",
                     value == kNoSize ? "expected a size in pixels, got a number that is not finite"
                                      : fmt::format("expected a size in pixels, got {}", value));
      return false;
    }
    if (is_flag(index % kNumbersPerBox) && value != 0 && value != 1) {
      faults_.reject(list.element(index).words(), "feature_flag", fmt::format("expected 0 or 1, got {}", value));
      return false;
    }
    return true;
  }

  // Fast path: returns true, and skips the element, if it passes check_tiling without a fault. Most elements do, and a
  // comparison is enough to show it.
  bool tiles(std::int64_t start, std::int64_t end, std::string_view text) {
    const std::string_view page = page_.text;
    if (start != word_ || end != start + word_count(text) || byte_ > page.size()) return false;
    if (!page.substr(byte_).starts_with(text)) return false;
    const std::size_t behind = byte_ + text.size();
    if (behind < page.size() && page[behind] != ' ') return false;
    word_ = end;
    byte_ = behind + 1;
    return true;
  }

  // Elements must tile the page's words: each starts where the previous one ended and contains those words. Returns false
  // if its bounds are faulty.
  bool check_tiling(const Json& start, const Json& end, const FieldPath& field, const std::string& text) {
    if (start != word_ || end < start) {
      faults_.reject(field.member(start != word_ ? "start_idx" : "end_idx").words(), "vdom_gap",
                     fmt::format("expected the element to start at word {} and to end behind it, got {} to {}", word_,
                                 json_line(start), json_line(end)));
      if (end.is_number_unsigned() && end <= words().size()) go_to(end.get<std::int64_t>());
      return false;
    }
    if (end > words().size()) {
      faults_.reject(field.member("end_idx").words(), "vdom_gap",
                     fmt::format("the element ends at word {}, the text has {} words", json_line(end), words().size()));
      return false;
    }
    const auto last = end.get<std::int64_t>();
    const std::string_view expected = joined_words(word_, last);
    if (text != expected) {
      faults_.reject(field.member("text").words(), "vdom_text_mismatch",
                     fmt::format("expected words {} to {} of the text, {}, got {}", word_, last,
                                 prepare::quoted(expected), prepare::quoted(text)));
    } else if (word_count(text) != last - word_) {
      faults_.reject(
          field.member("text").words(), "vdom_word_count",
          fmt::format("the text has {} words, start_idx and end_idx say {}", word_count(text), last - word_));
    }
    go_to(last);
    return true;
  }

  void go_to(std::int64_t word) {
    word_ = word;
    const auto at = static_cast<std::size_t>(word);
    byte_ =
        at < words().size() ? static_cast<std::size_t>(words()[at].data() - page_.text.data()) : page_.text.size() + 1;
  }

  // The words of the text; it is only split if a fault has to be reported.
  const std::vector<std::string_view>& words() {
    if (words_.empty()) words_ = words_of(page_.text);
    return words_;
  }

  // Words [first, last) of the page's text, including the blanks between them.
  std::string_view joined_words(std::int64_t first, std::int64_t last) {
    if (first == last) return {};
    const char* begin = words()[static_cast<std::size_t>(first)].data();
    const std::string_view& end = words()[static_cast<std::size_t>(last - 1)];
    return {begin, static_cast<std::size_t>(end.data() + end.size() - begin)};
  }

  void read_key_phrases() {
    const Json* phrases = fields_.find("KeyPhrases");
    if (phrases == nullptr) {
      if (config_.labels_required) faults_.reject("KeyPhrases", "missing_field", "the record has no KeyPhrases");
      return;
    }
    if (!phrases->is_array()) return fields_.wrong_type("KeyPhrases", "an array of phrases", *phrases);
    page_.key_phrases.emplace();
    for (std::size_t i = 0; i < phrases->size(); ++i) {
      const std::string field = element("KeyPhrases", i);
      const Json& words = (*phrases)[i];
      if (!words.is_array()) {
        fields_.wrong_type(field, "an array of words", words);
        continue;
      }
      Phrase& phrase = page_.key_phrases->emplace_back();
      for (std::size_t j = 0; j < words.size(); ++j) phrase.push_back(fields_.text(element(field, j), words[j]));
    }
  }

  text::RecordFields fields_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  Page page_;
  std::vector<std::string_view> words_;  // see words()
  std::int64_t word_ = 0;                // where the next element must start,
  std::size_t byte_ = 0;                 // and the byte of that word; after the last word: text size + 1
  Json first_id_;                        // null before an element had one
};

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find(' ', begin)) != std::string_view::npos; begin = at + 1) {
    words.push_back(text.substr(begin, at - begin));
  }
  words.push_back(text.substr(begin));
  return words;
}

std::int64_t word_count(std::string_view text) {
  return 1 + std::count(text.begin(), text.end(), ' ');
}

std::int64_t font_id(double size) {
  constexpr double kSmall = 8, kSingle = 24, kWide = 50;  // 9 … 24 pixels have a class each, up to 49 five share one
  const double pixels = std::nearbyint(size);             // half to even
  if (pixels <= 0) return 0;
  if (pixels <= kSmall) return 1;
  if (pixels <= kSingle) return static_cast<std::int64_t>(pixels) - 7;
  if (pixels >= kWide) return 23;
  return 18 + (static_cast<std::int64_t>(pixels) - 25) / 5;
}

Page read_page(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return PageReader(raw, config, faults).read();
}

}  // namespace etc::openkp
