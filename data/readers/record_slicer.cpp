#include "data/readers/record_slicer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "data/readers/json_scan.h"
#include "data/readers/text_blocks.h"

namespace etc::data {

namespace {

constexpr std::size_t kLongestFirstLine = 512 * 1024;  // limit of the search for the layout

std::size_t scan_line(const char* text, std::size_t size, bool& done) {
  const void* end = std::memchr(text, '\n', size);
  done = end != nullptr;
  return done ? static_cast<std::size_t>(static_cast<const char*>(end) - text) : size;
}

// How the file's records are separated: the layout requested, unless the first bytes show another.
enum class Form {
  array,
  lines,   // one a line
  values,  // objects one after the other, each over any number of lines
};

// The window's first line without blanks at its end; false if no line end is found.
bool first_line(TextBlocks& text, std::string_view& line) {
  for (std::size_t seen = 0; seen < text.size() || text.available(text.size() + 1) > seen;) {
    if (const void* end = std::memchr(text.begin() + seen, '\n', text.size() - seen)) {
      line = {text.begin(), static_cast<std::size_t>(static_cast<const char*>(end) - text.begin())};
      while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
      return true;
    }
    seen = text.size();
    if (seen > kLongestFirstLine) break;
  }
  return false;
}

// Offset in the window of the first byte from `at` on that is not a blank; nullopt if the text ends before it or it is
// too far away.
std::optional<std::size_t> behind_blanks_from(TextBlocks& text, std::size_t at) {
  while (at < kLongestFirstLine && (at < text.size() || text.available(at + 1) > at)) {
    if (!is_blank(text.begin()[at])) return at;
    ++at;
  }
  return std::nullopt;
}

// Whether the object that begins on a first line of `length` bytes continues after it, with a member's name or its own
// end. If another record follows instead, the first record is damaged.
bool goes_on(TextBlocks& text, std::size_t length) {
  const auto at = behind_blanks_from(text, length);
  return at && (text.begin()[*at] == '"' || text.begin()[*at] == '}');
}

bool is_whole(std::string_view value) {
  ValueScanner scanner(value.front());
  return scanner.scan(value.data(), value.size()) == value.size() && scanner.whole();
}

// Whether the text after this first line cannot continue its object, so that the records are lines and the first one is
// damaged: the line ends inside a string, or an object follows where none may stand.
bool is_damaged_line(TextBlocks& text, std::string_view line) {
  ValueScanner scanner(line.front());
  scanner.scan(line.data(), line.size());
  if (scanner.whole()) return false;  // a whole value and another one after it
  if (scanner.in_string()) return true;
  const char last = line.back();
  const std::size_t length = line.size();
  const auto next = behind_blanks_from(text, length);  // may move the window, which invalidates `line`
  if (!next || text.begin()[*next] != '{') return false;
  if (last != '[' && last != ':' && last != ',') return true;
  const void* const end = std::memchr(text.begin() + *next, '\n', text.size() - *next);
  if (end == nullptr) return false;
  std::string_view second(text.begin() + *next,
                          static_cast<std::size_t>(static_cast<const char*>(end) - text.begin()) - *next);
  while (is_blank(second.back())) second.remove_suffix(1);
  if (!is_whole(second)) return false;
  const auto third = behind_blanks_from(text, *next + second.size());
  return third && text.begin()[*third] == '{';
}

}  // namespace

struct RecordSlicer::Impl {
  Impl(ByteStream& stream_in, RecordLayout layout_in, std::size_t max_record_bytes_in)
      : text(stream_in),
        layout(layout_in == RecordLayout::lines ? Form::lines : Form::array),
        max_record_bytes(max_record_bytes_in) {}

  TextBlocks text;
  Form layout;
  std::size_t max_record_bytes;
  std::int64_t next_index = 0, empty_lines = 0;
  bool started = false, finished = false, byte_order_mark = false;

  void start() {
    started = true;
    byte_order_mark = text.skip_byte_order_mark();
    if (layout == Form::lines) return start_lines();
    skip_blanks(text);
    if (text.available(1) == 0) fail_expected(text, "a JSON array, the input is empty");
    const char c = *text.begin();
    if (c == '{') {
      std::string_view line;
      const bool lines = first_line(text, line) && (is_whole(line) || is_damaged_line(text, line));
      layout = lines ? Form::lines : Form::values;
      return;
    }
    if (c != '[') {
      if (c != '\0' && std::strchr("\"-0123456789tfn", c) != nullptr) {
        throw InputFault("top_level_not_array", text.position(),
                         "expected records, an array of them or one after the other, got another JSON value");
      }
      fail_expected(text, "a JSON array");
    }
    text.skip(1);
  }

  // A file expected to hold one record per line may be an array, or objects over several lines. If the first line is
  // not a whole object and the next line does not continue it, the first record is damaged and only that record is at
  // fault.
  void start_lines() {
    const std::int64_t line_before = text.position().line;
    skip_blanks(text);
    empty_lines += text.position().line - line_before;
    if (text.available(1) == 0) return;
    std::string_view line;
    if (*text.begin() == '[') {
      layout = Form::array;
      text.skip(1);
    } else if (*text.begin() == '{' && first_line(text, line) && !is_whole(line) && goes_on(text, line.size())) {
      layout = Form::values;
    }
  }

  // Moves to the first byte of the next record; false when there is none.
  bool seek_record() {
    if (layout == Form::lines) return seek_line();
    if (layout == Form::values) return seek_value();
    skip_blanks(text);
    if (next_index == 0) {
      if (text.available(1) > 0 && *text.begin() == ']') return close_array();
    } else {
      if (text.available(1) > 0 && *text.begin() == ']') return close_array();
      if (text.available(1) == 0 || *text.begin() != ',') fail_expected(text, "',' or ']' after a record");
      text.skip(1);
      skip_blanks(text);
    }
    if (text.available(1) == 0 || *text.begin() == ',' || *text.begin() == ']' || *text.begin() == '}')
      fail_expected(text, "a record");
    return true;
  }

  bool seek_value() {
    skip_blanks(text);
    if (text.available(1) == 0) {
      if (!text.fault().empty()) fail_truncated(text.position());
      return false;
    }
    if (*text.begin() != '{') fail_expected(text, "a record");
    return true;
  }

  bool seek_line() {
    const std::int64_t line_before = text.position().line;
    skip_blanks(text);
    // The first line end after a record belongs to the record.
    empty_lines += std::max<std::int64_t>(text.position().line - line_before - (next_index > 0 ? 1 : 0), 0);
    if (text.available(1) > 0) return true;
    if (!text.fault().empty()) fail_truncated(text.position());
    return false;
  }

  [[noreturn]] void fail_truncated(const TextPosition& where) {
    finished = true;
    throw InputFault("gzip_truncated", where, text.fault());
  }

  bool close_array() {
    text.skip(1);
    skip_blanks(text);
    if (text.available(1) > 0 || !text.fault().empty()) fail_expected(text, "nothing behind the array");
    return false;
  }

  void take_record(RecordSlice& slice) {
    slice.index = next_index++;
    slice.begin = text.position();
    slice.text.clear();
    slice.cut_short.clear();
    slice.open_line = false;
    slice.stands_alone = layout == Form::lines;
    const bool whole = layout == Form::lines ? take_line(slice) : take_value(text, max_record_bytes, slice.text);
    if (whole) return;
    finished = true;
    if (slice.text.size() >= max_record_bytes) {
      slice.cut_short =
          fmt::format("the record is longer than {} bytes (is a quote or a bracket missing?)", max_record_bytes);
    } else {
      slice.cut_short = text.fault().empty() ? kEndsInsideRecord : text.fault();
    }
  }

  // False if the size limit cut the line.
  bool take_line(RecordSlice& slice) {
    bool done = false;
    while (!done && text.available(1) > 0 && slice.text.size() < max_record_bytes) {
      const std::size_t count = scan_line(text.begin(), text.size(), done);
      if (slice.text.empty()) slice.text.reserve(count + kTextPadding);
      slice.text.append(text.begin(), count);
      text.skip_within_line(count);
    }
    finish_line(slice);
    if (done || text.available(1) > 0) return done;
    if (!text.fault().empty()) fail_truncated(slice.begin);
    slice.open_line = true;
    return true;
  }

  static void finish_line(RecordSlice& slice) {
    while (!slice.text.empty() && is_blank(slice.text.back())) slice.text.pop_back();
  }
};

RecordSlicer::RecordSlicer(ByteStream& stream, RecordLayout layout, std::size_t max_record_bytes)
    : impl_(std::make_unique<Impl>(stream, layout, max_record_bytes)) {}

RecordSlicer::~RecordSlicer() = default;

bool RecordSlicer::byte_order_mark() const {
  return impl_->byte_order_mark;
}

std::int64_t RecordSlicer::empty_lines() const {
  return impl_->empty_lines;
}

std::vector<FileNote> RecordSlicer::notes() const {
  std::vector<FileNote> notes;
  // JSON text begins with a value (RFC 8259, section 8.1).
  if (byte_order_mark()) notes.push_back({"json_syntax", "the file starts with a byte-order mark"});
  if (empty_lines() > 0) notes.push_back({"empty_line", fmt::format("the file holds {} empty lines", empty_lines())});
  return notes;
}

bool RecordSlicer::next(RecordSlice& slice) {
  if (impl_->finished) return false;
  if (!impl_->started) impl_->start();
  if (!impl_->seek_record()) {
    impl_->finished = true;
    return false;
  }
  impl_->take_record(slice);
  return true;
}

}  // namespace etc::data
