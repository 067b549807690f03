#include "data/readers/npy_header.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/shape.h"
#include "etc_core/base/words.h"

namespace etc::data {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 1 << 20;  // bytes; that of an array of numbers has about a hundred
constexpr std::size_t kLongestShown = 60;        // bytes of the header in a message

// Reads the header's text, a dictionary as Python writes it: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderText {
 public:
  HeaderText(std::string where, std::string_view text) : where_(std::move(where)), text_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool type = false, order = false, shape = false;
    take('{');
    while (!next_is('}')) {
      const std::string key = quoted();
      take(':');
      bool& seen = key == "descr" ? type : key == "fortran_order" ? order : key == "shape" ? shape : unknown(key);
      if (seen) refuse("each key once");
      seen = true;
      if (key == "descr") header.type = next_is('[') ? bracketed() : quoted();
      if (key == "fortran_order") header.column_major = truth();
      if (key == "shape") header.shape = sizes();
      if (!next_is('}')) take(',');
    }
    take('}');
    skip_blanks();
    if (at_ != text_.size()) refuse("nothing after }");
    if (!type || !order || !shape) refuse("the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    fail(where_, "byte {} of the header: expected {}, got {}", at_, expected,
         json_line(Json(shortened(text_.substr(at_), kLongestShown))));
  }
  bool& unknown(const std::string& key) const {
    refuse(fmt::format("descr, fortran_order or shape instead of the key {}", json_line(Json(key))));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool next_is(char letter) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == letter;
  }
  void take(char letter) {
    if (!next_is(letter)) refuse(std::string(1, letter));
    ++at_;
  }
  std::string quoted() {
    const char mark = next_is('"') ? '"' : '\'';
    take(mark);
    const std::size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) refuse("a quoted text");
    const std::string found(text_.substr(at_, end - at_));
    at_ = end + 1;
    return found;
  }
  // A list with everything in it, as written: the fields of records.
  std::string bracketed() {
    const std::size_t first = at_;
    int depth = 0;
    do {
      if (next_is('\'') || next_is('"')) {
        quoted();
        continue;
      }
      if (at_ == text_.size()) refuse("]");
      depth += text_[at_] == '[' ? 1 : text_[at_] == ']' ? -1 : 0;
      ++at_;
    } while (depth > 0);
    return std::string(text_.substr(first, at_ - first));
  }
  bool truth() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    refuse("True or False");
  }
  std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> shape;
    take('(');
    while (!next_is(')')) {
      std::int64_t& size = shape.emplace_back(-1);
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) refuse("a size of the shape");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (!next_is(')')) take(',');
    }
    take(')');
    return shape;
  }

  std::string where_;
  std::string_view text_;
  std::size_t at_ = 0;
};

// The type in words, and the bytes of a value.
void take_type(const std::string& type, NpyHeader& to) {
  const std::map<char, std::string> names = {{'f', "float"},   {'i', "int"},   {'u', "uint"}, {'b', "bool"},
                                             {'c', "complex"}, {'S', "bytes"}, {'V', "raw"},  {'U', "text"}};
  const bool ordered = !type.empty() && std::string_view("<>|=").find(type[0]) != std::string_view::npos;
  const std::string_view rest = std::string_view(type).substr(ordered ? 1 : 0);
  const auto name = rest.empty() ? names.end() : names.find(rest[0]);
  std::int32_t size = 0;
  const char* const end = rest.data() + rest.size();
  if (name == names.end()) return;
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, size);
  if (error != std::errc() || stop != end || size < 1) return;
  const std::string order = type[0] == '>' && size > 1 ? ", big-endian" : "";
  const std::int64_t bytes = name->first == 'U' ? 4 * std::int64_t{size} : size;
  const bool of_bits = name->first != 'S' && name->first != 'V' && name->first != 'U';
  to.type = name->first == 'b' ? "bool" : fmt::format("{}{}{}", name->second, of_bits ? 8 * bytes : size, order);
  to.value_bytes = bytes;
}

// -1: more than 64 bits.
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(all, size, &all)) return -1;
  }
  return all;
}

// The next bytes of the file; fewer are an error.
std::string take_bytes(std::ifstream& file, std::size_t count, const std::string& where, const char* what) {
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  if (file.gcount() == static_cast<std::streamsize>(count)) return bytes;
  fail(where, "expected {} of {} bytes, got {}: the file is cut off", what, count, file.gcount());
}

// The header's text; the file is then at its numbers.
std::string header_text(std::ifstream& file, const std::string& where) {
  const std::string start = take_bytes(file, kMagic.size() + 2, where, "the beginning of a NumPy array");
  if (!start.starts_with(kMagic)) fail(where, "not a NumPy array: expected \\x93NUMPY at its beginning");
  const int version = static_cast<unsigned char>(start[kMagic.size()]);
  if (version < 1 || version > 3) fail(where, "expected format 1, 2 or 3 of NumPy arrays, got {}", version);
  const std::string length = take_bytes(file, version == 1 ? 2 : 4, where, "the length of its header");
  std::size_t size = 0;
  for (std::size_t i = length.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > kLongestHeader) fail(where, "expected a header of at most {} bytes, got {}", kLongestHeader, size);
  return take_bytes(file, size, where, "a header");
}

}  // namespace

NpyHeader read_npy_header(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(where, "cannot open");
  const std::string text = header_text(file, where);
  const auto first = static_cast<std::int64_t>(file.tellg());
  NpyHeader header = HeaderText(where, text).read();
  take_type(std::string(header.type), header);
  header.values = product(header.shape);
  const std::int64_t bytes = product({header.values, header.value_bytes});
  header.bytes = static_cast<std::int64_t>(std::filesystem::file_size(path)) - first;
  if (header.values < 0 || bytes < 0)
    fail(where, "shape {}: more values than any file holds", shape_text(header.shape));
  if (header.value_bytes > 0 && bytes != header.bytes) {
    fail(where, "expected {} bytes for shape {} of {}, got {}: the file is cut off or damaged", bytes,
         shape_text(header.shape), header.type, header.bytes);
  }
  return header;
}

}  // namespace etc::data
