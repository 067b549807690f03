#include "data/readers/table_reader.h"

#include <algorithm>
#include <cstring>

namespace etc::data {

namespace {

// Finds the end of a comma-separated row: a line end outside quotes.
class CommaScanner {
 public:
  // Bytes of the row in this block; ended() says whether its line end is the next byte.
  std::size_t scan(const char* text, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const char c = text[i];
      if (c == '\n' && place_ != Place::quoted) {
        ended_ = true;
        return i;
      }
      if (place_ == Place::quoted) {
        if (c == '"') place_ = Place::behind_quote;
      } else if (c == ',') {
        place_ = Place::start;
      } else if (c == '"' && place_ != Place::plain) {
        place_ = Place::quoted;  // opens a field, or is the second of a doubled quote
      } else {
        place_ = Place::plain;
      }
    }
    return size;
  }
  bool ended() const { return ended_; }

 private:
  enum class Place { start, plain, quoted, behind_quote };
  Place place_ = Place::start;
  bool ended_ = false;
};

// The quoted field whose opening quote is at `at`; moves `at` past the closing quote.
std::optional<std::string> quoted_field(std::string_view row, std::size_t& at) {
  std::string field;
  for (++at; at < row.size(); ++at) {
    if (row[at] != '"') {
      field += row[at];
    } else if (at + 1 < row.size() && row[at + 1] == '"') {
      field += row[at++];
    } else {
      ++at;
      return field;
    }
  }
  return std::nullopt;
}

}  // namespace

TableReader::TableReader(ByteStream& stream, TableForm form, IsHeader is_header)
    : blocks_(stream), form_(form), is_header_(std::move(is_header)) {}

bool TableReader::take_row(std::string& row) {
  row.clear();
  const TextPosition begin = blocks_.position();
  bool ended = false, any = false;
  CommaScanner commas;
  while (!ended && blocks_.available(1) > 0) {
    any = true;
    std::size_t count = 0;
    if (form_ == TableForm::tabs) {
      const void* end = std::memchr(blocks_.begin(), '\n', blocks_.size());
      ended = end != nullptr;
      count = ended ? static_cast<std::size_t>(static_cast<const char*>(end) - blocks_.begin()) : blocks_.size();
    } else {
      count = commas.scan(blocks_.begin(), blocks_.size());
      ended = commas.ended();
    }
    row.append(blocks_.begin(), count);
    blocks_.skip(count + (ended ? 1 : 0));
    if (row.size() > kMaxRowBytes) {
      throw InputFault("row_too_long", begin,
                       fmt::format("the row is longer than {} bytes (is a quote missing?)", kMaxRowBytes));
    }
  }
  if (!ended && !blocks_.fault().empty()) throw InputFault("gzip_truncated", blocks_.position(), blocks_.fault());
  if (form_ == TableForm::tabs) {
    std::erase(row, '\r');
  } else if (row.ends_with('\r')) {
    row.pop_back();
  }
  return any;
}

bool TableReader::next(RecordSlice& slice) {
  if (!started_) {
    started_ = true;
    blocks_.skip_byte_order_mark();
    first_place_ = blocks_.position();
    if (!take_row(first_)) {
      is_header_(std::nullopt, first_place_);
      return false;
    }
    has_first_ = !is_header_(first_, first_place_);
    if (!has_first_) header_ = first_;
  }
  slice = {};
  slice.stands_alone = true;
  std::string row;
  if (has_first_) {
    has_first_ = false;
    slice.begin = first_place_;
    row = std::move(first_);
  } else {
    slice.begin = blocks_.position();
    if (!take_row(row)) return false;
  }
  slice.index = index_++;
  slice.text = header_ + "\n" + row;
  return true;
}

std::string_view header_of(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string_view row_of(std::string_view text) {
  return text.substr(std::min(text.size(), text.find('\n') + 1));
}

std::optional<std::vector<std::string>> fields_of(std::string_view row, TableForm form) {
  const char separator = form == TableForm::tabs ? '\t' : ',';
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= row.size(); ++at) {
    if (form == TableForm::commas && at < row.size() && row[at] == '"') {
      std::optional<std::string> field = quoted_field(row, at);
      if (!field || (at < row.size() && row[at] != separator)) return std::nullopt;
      fields.push_back(std::move(*field));
    } else {
      const std::size_t end = std::min(row.find(separator, at), row.size());
      fields.emplace_back(row.substr(at, end - at));
      at = end;
    }
  }
  return fields;
}

}  // namespace etc::data
