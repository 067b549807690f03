#include "data/readers/record_slicer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/text/unicode.h"

namespace etc::data {

namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Follows strings and brackets through the blocks of one record.
struct BracketScanner {
  bool in_string = false;
  bool escaped = false;  // the next character of the string stands for itself
  std::int64_t open = 0;

  // Returns how many bytes of the block belong to the value; less than size, or done, means that its end was found.
  std::size_t scan(const char* text, std::size_t size, bool& done) {
    std::size_t i = 0;
    while (i < size) {
      if (in_string) {
        for (; i < size; ++i) {
          if (escaped) {
            escaped = false;
          } else if (text[i] == '\\') {
            escaped = true;
          } else if (text[i] == '"') {
            in_string = false;
            ++i;
            break;
          }
        }
        if (!in_string && open == 0) return done = true, i;
        continue;
      }
      switch (text[i++]) {
        case '"':
          in_string = true;
          break;
        case '{':
        case '[':
          ++open;
          break;
        case '}':
        case ']':
          if (--open == 0) return done = true, i;
          break;
        default:
          break;
      }
    }
    return i;
  }
};

// A number, a literal, or whatever else stands where a record should: up to the next separator.
std::size_t scan_scalar(const char* text, std::size_t size, bool& done) {
  const char* end = std::find_if(text, text + size, [](char c) { return c == ',' || c == ']' || is_blank(c); });
  done = end < text + size;
  return static_cast<std::size_t>(end - text);
}

std::size_t scan_line(const char* text, std::size_t size, bool& done) {
  const void* end = std::memchr(text, '\n', size);
  done = end != nullptr;
  return done ? static_cast<std::size_t>(static_cast<const char*>(end) - text) : size;
}

}  // namespace

void TextPosition::advance(const char* text, std::size_t size) {
  byte_offset += static_cast<std::int64_t>(size);
  const char* const end = text + size;
  while (const void* line_end = std::memchr(text, '\n', static_cast<std::size_t>(end - text))) {
    text = static_cast<const char*>(line_end) + 1;
    column = 1;
    ++line;
  }
  column += end - text;
}

InputFault::InputFault(std::string code, TextPosition where, const std::string& message)
    : Error(fmt::format("byte {}, line {}, column {}: {}", where.byte_offset, where.line, where.column, message)),
      code_(std::move(code)),
      where_(where) {}

struct RecordSlicer::Impl {
  Impl(ByteStream& stream_in, RecordLayout layout_in, std::size_t max_record_bytes_in)
      : stream(stream_in), layout(layout_in), max_record_bytes(max_record_bytes_in) {}

  ByteStream& stream;
  RecordLayout layout;
  std::size_t max_record_bytes;
  std::vector<char> block = std::vector<char>(kBlockBytes);
  std::size_t begin = 0, end = 0;  // what of the block is not used yet
  TextPosition position;           // of block[begin]
  std::int64_t next_index = 0, empty_lines = 0;
  bool started = false, finished = false, byte_order_mark = false;

  // Makes at least `count` bytes available if the stream still has them; returns how many there are.
  std::size_t available(std::size_t count) {
    if (end - begin >= count) return end - begin;
    std::memmove(block.data(), block.data() + begin, end - begin);
    end -= begin;
    begin = 0;
    while (end < count) {
      const std::size_t got = stream.read(block.data() + end, block.size() - end);
      if (got == 0) break;
      end += got;
    }
    return end;
  }

  void skip(std::size_t count) {
    position.advance(block.data() + begin, count);
    begin += count;
  }

  // The same of bytes without a line end.
  void skip_within_line(std::size_t count) {
    position.byte_offset += static_cast<std::int64_t>(count);
    position.column += static_cast<std::int64_t>(count);
    begin += count;
  }

  void skip_blanks() {
    while (available(1) > 0) {
      const char* text = block.data() + begin;
      const char* stop = std::find_if_not(text, static_cast<const char*>(block.data()) + end, is_blank);
      skip(static_cast<std::size_t>(stop - text));
      if (begin < end) return;
    }
  }

  // At the end of the file where something is missing, or at a character that must not stand there.
  [[noreturn]] void fail_here(const std::string& expected) {
    if (available(1) == 0) {
      const std::string why = stream.fault().empty() ? "the file ends" : stream.fault();
      throw InputFault("json_syntax", position, fmt::format("{}: expected {}", why, expected));
    }
    const std::string_view text(block.data() + begin, std::min<std::size_t>(available(4), 4));
    if (invalid_utf8(text) == std::size_t{0}) throw InputFault("utf8_invalid", position, "not well-formed UTF-8");
    const auto c = static_cast<unsigned char>(text[0]);
    const std::string got = c > 0x20 && c < 0x7F ? fmt::format("'{}'", text[0]) : fmt::format("byte 0x{:02X}", c);
    throw InputFault("json_syntax", position, fmt::format("expected {}, got {}", expected, got));
  }

  void start() {
    started = true;
    if (available(3) >= 3 && std::memcmp(block.data() + begin, "\xEF\xBB\xBF", 3) == 0) {
      byte_order_mark = true;
      skip(3);
      position.column = 1;
    }
    if (layout == RecordLayout::lines) return;
    skip_blanks();
    if (available(1) == 0) fail_here("a JSON array, the input is empty");
    const char c = block[begin];
    if (c != '[') {
      if (c != '\0' && std::strchr("{\"-0123456789tfn", c) != nullptr) {
        throw InputFault("top_level_not_array", position, "expected one JSON array of records, got another JSON value");
      }
      fail_here("a JSON array");
    }
    skip(1);
  }

  // Moves to the first byte of the next record; false when there is none.
  bool seek_record() {
    if (layout == RecordLayout::lines) return seek_line();
    skip_blanks();
    if (next_index == 0) {
      if (available(1) > 0 && block[begin] == ']') return close_array();
    } else {
      if (available(1) > 0 && block[begin] == ']') return close_array();
      if (available(1) == 0 || block[begin] != ',') fail_here("',' or ']' after a record");
      skip(1);
      skip_blanks();
    }
    if (available(1) == 0 || block[begin] == ',' || block[begin] == ']' || block[begin] == '}') fail_here("a record");
    return true;
  }

  bool seek_line() {
    const std::int64_t line_before = position.line;
    skip_blanks();
    // The first line end behind a record is the record's own.
    empty_lines += std::max<std::int64_t>(position.line - line_before - (next_index > 0 ? 1 : 0), 0);
    if (available(1) > 0) return true;
    if (!stream.fault().empty()) fail_truncated(position);
    return false;
  }

  [[noreturn]] void fail_truncated(const TextPosition& where) {
    finished = true;
    throw InputFault("gzip_truncated", where, stream.fault());
  }

  bool close_array() {
    skip(1);
    skip_blanks();
    if (available(1) > 0 || !stream.fault().empty()) fail_here("nothing behind the array");
    return false;
  }

  void take_record(RecordSlice& slice) {
    slice.index = next_index++;
    slice.begin = position;
    slice.text.clear();
    slice.cut_short.clear();
    slice.open_line = false;
    BracketScanner brackets;
    const char first = block[begin];
    const bool bracketed = first == '{' || first == '[' || first == '"';
    bool done = false;
    while (!done && available(1) > 0 && slice.text.size() < max_record_bytes) {
      const char* text = block.data() + begin;
      const std::size_t size = end - begin;
      const std::size_t count = layout == RecordLayout::lines ? scan_line(text, size, done)
                                : bracketed                   ? brackets.scan(text, size, done)
                                                              : scan_scalar(text, size, done);
      if (slice.text.empty()) slice.text.reserve(count + kTextPadding);
      slice.text.append(text, count);
      if (layout == RecordLayout::lines) {
        skip_within_line(count);
      } else {
        skip(count);
      }
    }
    if (layout == RecordLayout::lines) {
      finish_line(slice);
      if (!done && available(1) == 0) {
        if (!stream.fault().empty()) fail_truncated(slice.begin);
        slice.open_line = true;
        return;
      }
    }
    if (done) return;
    finished = true;
    if (slice.text.size() >= max_record_bytes) {
      slice.cut_short =
          fmt::format("the record is longer than {} bytes (is a quote or a bracket missing?)", max_record_bytes);
    } else {
      slice.cut_short = stream.fault().empty() ? kEndsInsideRecord : stream.fault();
    }
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
