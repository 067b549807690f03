#include "data/text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>
#include <unicode/uversion.h>

#include <algorithm>
#include <climits>
#include <new>

#include "etc_core/base/error.h"

namespace etc::data {

namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void check(UErrorCode code, const char* what) {
  if (code == U_MEMORY_ALLOCATION_ERROR) throw std::bad_alloc();
  if (U_FAILURE(code)) fail("unicode", "ICU cannot {}: {}", what, u_errorName(code));
}

// The text itself or, if it has invalid sequences, a copy in `storage` without them: ICU would replace them by U+FFFD.
std::string_view well_formed(std::string_view utf8, std::string& storage) {
  if (!invalid_utf8(utf8)) return utf8;
  storage = to_utf8(to_code_points(utf8));
  return storage;
}

icu::StringPiece icu_text(std::string_view text) {
  if (text.size() > INT_MAX) fail("unicode", "expected a text below 2 GiB, got {} bytes", text.size());
  return {text.data(), static_cast<std::int32_t>(text.size())};
}

UChar32 icu_character(char32_t c) {
  return c <= 0x10FFFF ? static_cast<UChar32>(c) : 0xFFFF;  // U+FFFF: a noncharacter, has none of the properties
}

}  // namespace

std::string unicode_version() {
  UVersionInfo version;
  u_getUnicodeVersion(version);
  return fmt::format("{}.{}", version[0], version[1]);
}

char32_t next_code_point(std::string_view utf8, std::size_t& at) {
  UChar32 c = 0;
  U8_NEXT(utf8.data(), at, utf8.size(), c);
  return c < 0 ? kNoCharacter : static_cast<char32_t>(c);
}

std::optional<std::size_t> invalid_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t begin = at;
    if (next_code_point(bytes, at) == kNoCharacter) return begin;
  }
  return std::nullopt;
}

std::u32string to_code_points(std::string_view utf8) {
  std::u32string code_points;
  code_points.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    const char32_t c = next_code_point(utf8, at);
    if (c != kNoCharacter) code_points += c;
  }
  return code_points;
}

void append_utf8(std::string& utf8, char32_t c) {
  std::uint8_t bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  UBool failed = false;
  if (c > 0x10FFFF) return;
  U8_APPEND(bytes, size, sizeof bytes, static_cast<UChar32>(c), failed);
  if (!failed) utf8.append(reinterpret_cast<const char*>(bytes), size);
}

std::string to_utf8(std::u32string_view code_points) {
  std::string utf8;
  utf8.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(utf8, c);
  return utf8;
}

std::string lower_case(std::string_view utf8) {
  std::string lower;
  if (is_ascii(utf8)) {
    lower.assign(utf8);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    return lower;
  }
  std::string storage;
  const std::string_view text = well_formed(utf8, storage);
  icu::StringByteSink<std::string> sink(&lower);
  UErrorCode code = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, icu_text(text), sink, nullptr, code);
  check(code, "lower-case");
  return lower;
}

std::string strip_accents(std::string_view utf8) {
  if (is_ascii(utf8)) return std::string(utf8);
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(code);
  check(code, "load its normalisation data");
  std::string storage, decomposed;
  const std::string_view text = well_formed(utf8, storage);
  icu::StringByteSink<std::string> sink(&decomposed);
  nfd->normalizeUTF8(0, icu_text(text), sink, nullptr, code);
  check(code, "decompose");
  std::string kept;
  kept.reserve(decomposed.size());
  for (std::size_t at = 0; at < decomposed.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(decomposed, at);
    if (u_charType(icu_character(c)) != U_NON_SPACING_MARK) kept.append(decomposed, begin, at - begin);
  }
  return kept;
}

bool is_space(char32_t c) {
  // Python treats the four information separators as white space, Unicode's White_Space property does not.
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view strip(std::string_view utf8) {
  std::size_t begin = utf8.size();
  std::size_t end = utf8.size();
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t start = at;
    if (is_space(next_code_point(utf8, at))) continue;
    begin = start;
    break;
  }
  while (end > begin) {
    std::size_t start = end - 1;  // first byte of the last character
    while (start > begin && U8_IS_TRAIL(static_cast<std::uint8_t>(utf8[start]))) --start;
    std::size_t at = start;
    if (!is_space(next_code_point(utf8, at)) || at != end) break;
    end = start;
  }
  return utf8.substr(begin, end - begin);
}

bool is_digit(char32_t c) {
  const int type = u_getIntPropertyValue(icu_character(c), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool is_letter(char32_t c) {
  return (U_GET_GC_MASK(icu_character(c)) & U_GC_L_MASK) != 0;
}

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(icu_character(c));
}

bool is_decimal(char32_t c) {
  return u_charType(icu_character(c)) == U_DECIMAL_DIGIT_NUMBER;
}

bool is_word(char32_t c) {
  return c == '_' || (U_GET_GC_MASK(icu_character(c)) & U_GC_L_MASK) != 0 ||
         u_getIntPropertyValue(icu_character(c), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_upper(char32_t c) {
  return u_hasBinaryProperty(icu_character(c), UCHAR_UPPERCASE);
}

bool is_lower(char32_t c) {
  return u_hasBinaryProperty(icu_character(c), UCHAR_LOWERCASE);
}

bool is_control(char32_t c) {
  return (U_GET_GC_MASK(icu_character(c)) & (U_GC_CC_MASK | U_GC_CF_MASK)) != 0;
}

bool is_separator(char32_t c) {
  return u_charType(icu_character(c)) == U_SPACE_SEPARATOR;
}

bool is_punctuation(char32_t c) {
  return (U_GET_GC_MASK(icu_character(c)) & U_GC_P_MASK) != 0;
}

bool is_number(char32_t c) {
  return (U_GET_GC_MASK(icu_character(c)) & U_GC_N_MASK) != 0;
}

bool is_symbol(char32_t c) {
  return (U_GET_GC_MASK(icu_character(c)) & U_GC_S_MASK) != 0;
}

}  // namespace etc::data
