#include "tasks/openkp/page.h"

#include <cmath>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/text/record_fields.h"

namespace etc::openkp {

namespace {

using text::element;

constexpr std::size_t kNumbersPerBox = 10;
constexpr double kLargestPixels = 1e9;

// Positions of task-openkp 1.3 within a box.
enum BoxNumber : std::size_t { kX, kWidth, kY, kHeight, kBlock, kInline, kHeading, kLeaf, kFontSize, kBold };

bool is_flag(std::size_t position) {
  return position == kBlock || position == kInline || position == kHeading || position == kLeaf || position == kBold;
}

bool is_coordinate(std::size_t position) {
  return position == kX || position == kY || position == kWidth || position == kHeight;
}

Box box_of(const Json& numbers, std::size_t first) {
  const auto number = [&](BoxNumber n) { return numbers[first + n].get<double>(); };
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

class PageReader {
 public:
  PageReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : fields_(raw, {"url", "text", "VDOM", "KeyPhrases"}, faults), config_(config), faults_(faults) {}

  Page read() {
    if (const Json* url = fields_.required("url", Json::value_t::string)) read_url(*url);
    if (const Json* text = fields_.required("text", Json::value_t::string)) page_.text = fields_.text("text", *text);
    words_ = words_of(page_.text);
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
    data::RecordSlice slice;
    slice.text = text;
    try {
      const data::JsonRecord parsed = data::parse_record(slice);
      if (!parsed.value.is_array()) return fields_.wrong_type("VDOM", "a string that holds a JSON array", parsed.value);
      read_elements(parsed.value);
    } catch (const data::InputFault& fault) {
      faults_.reject("VDOM", "vdom_syntax", std::string("in the string: ") + fault.what());
    }
  }

  void read_elements(const Json& list) {
    if (list.empty()) faults_.reject("VDOM", "vdom_empty", "there is no element");
    bool whole = !list.empty();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = element("VDOM", i);
      if (!list[i].is_object()) {
        fields_.wrong_type(field, "an object", list[i]);
        whole = false;
        continue;
      }
      whole = read_element(list[i], field, i) && whole;
    }
    if (whole && word_ != std::ssize(words_)) {
      faults_.reject(element("VDOM", list.size() - 1) + ".end_idx", "vdom_gap",
                     fmt::format("the last element ends at word {}, the text has {} words", word_, words_.size()));
    }
  }

  // False when something is missing or does not fit.
  bool read_element(const Json& json, const std::string& field, std::size_t index) {
    const Json* text = member(json, field, "text", Json::value_t::string);
    const Json* feature = member(json, field, "feature", Json::value_t::array);
    const Json* start = integer(json, field, "start_idx");
    const Json* end = integer(json, field, "end_idx");
    const Json* id = integer(json, field, "Id");
    Element& e = page_.elements.emplace_back();
    if (text != nullptr) e.text = fields_.text(field + ".text", *text);
    const bool boxes = feature != nullptr && read_boxes(*feature, field + ".feature", e);
    if (text == nullptr || start == nullptr || end == nullptr) return false;
    const bool tiles = check_tiling(*start, *end, field, e.text);
    if (id != nullptr && index == 0) first_id_ = *id;
    if (id != nullptr && *id != first_id_) {
      faults_.warn(field + ".Id", "vdom_id_mixed", fmt::format("{} differs from the first element's", id->dump()));
    }
    return boxes && tiles;
  }

  const Json* member(const Json& json, const std::string& field, const char* key, Json::value_t type) {
    const auto found = json.find(key);
    if (found == json.end()) {
      faults_.reject(field + "." + key, "missing_field", fmt::format("the element has no {}", key));
    } else if (found->type() != type) {
      fields_.wrong_type(field + "." + key, type == Json::value_t::string ? "a string" : "an array", *found);
    } else {
      return &*found;
    }
    return nullptr;
  }

  const Json* integer(const Json& json, const std::string& field, const char* key) {
    const auto found = json.find(key);
    if (found == json.end()) {
      faults_.reject(field + "." + key, "missing_field", fmt::format("the element has no {}", key));
    } else if (!found->is_number_integer()) {
      fields_.wrong_type(field + "." + key, "an integer", *found);
    } else {
      return &*found;
    }
    return nullptr;
  }

  bool read_boxes(const Json& numbers, const std::string& field, Element& e) {
    if (numbers.size() != 2 * kNumbersPerBox) {
      faults_.reject(field, "feature_count", fmt::format("expected 20 numbers, got {}", numbers.size()));
      return false;
    }
    bool good = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) good = check_number(numbers[i], field, i) && good;
    if (!good) return false;
    e.own = box_of(numbers, 0);
    e.parent = box_of(numbers, kNumbersPerBox);
    return true;
  }

  // Number `index` of the list `field`. There are thousands on a page: only a fault's place is put into words.
  bool check_number(const Json& number, const std::string& list, std::size_t index) {
    const std::size_t position = index % kNumbersPerBox;
    if (!number.is_number()) {
      fields_.wrong_type(element(list, index), "a number", number);
      return false;
    }
    const double value = number;
    if (!(std::abs(value) <= kLargestPixels)) {
      faults_.reject(element(list, index), "feature_not_finite",
                     fmt::format("expected a size in pixels, got {}", value));
      return false;
    }
    if (is_flag(position) && value != 0 && value != 1) {
      faults_.reject(element(list, index), "feature_flag", fmt::format("expected 0 or 1, got {}", value));
      return false;
    }
    if (is_coordinate(position) && number.is_number_integer()) {
      faults_.warn(element(list, index), "feature_not_float", "the coordinate is an integer");
    }
    return true;
  }

  // Elements tile the page's words: each starts where the one before ended, and holds those words. False with a fault
  // of its bounds.
  bool check_tiling(const Json& start, const Json& end, const std::string& field, const std::string& text) {
    if (start != word_ || end < start) {
      faults_.reject(field + (start != word_ ? ".start_idx" : ".end_idx"), "vdom_gap",
                     fmt::format("expected the element to start at word {} and to end behind it, got {} to {}", word_,
                                 start.dump(), end.dump()));
      word_ = end.is_number_unsigned() && end <= words_.size() ? end.get<std::int64_t>() : word_;
      return false;
    }
    if (end > words_.size()) {
      faults_.reject(field + ".end_idx", "vdom_gap",
                     fmt::format("the element ends at word {}, the text has {} words", end.dump(), words_.size()));
      return false;
    }
    const auto last = end.get<std::int64_t>();
    const std::string expected = fmt::format("{}", fmt::join(words_.begin() + word_, words_.begin() + last, " "));
    if (text != expected) {
      faults_.reject(field + ".text", "vdom_text_mismatch",
                     fmt::format("expected words {} to {} of the text, {}, got {}", word_, last,
                                 prepare::quoted(expected), prepare::quoted(text)));
    } else if (std::ssize(words_of(text)) != last - word_) {
      faults_.reject(
          field + ".text", "vdom_word_count",
          fmt::format("the text has {} words, start_idx and end_idx say {}", words_of(text).size(), last - word_));
    }
    word_ = last;
    return true;
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
  std::vector<std::string_view> words_;  // of the text
  std::int64_t word_ = 0;                // where the next element must start
  Json first_id_;
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
