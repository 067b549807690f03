#include "data/text/unicode.h"

#include "tests/support/catch.h"

using namespace etc::data;

TEST_CASE("well-formed UTF-8 is told from the rest by byte offset", "[data][text]") {
  REQUIRE_FALSE(invalid_utf8(""));
  REQUIRE_FALSE(invalid_utf8("a\u00e9\u4e2d\U0001F600"));
  REQUIRE(invalid_utf8("ab\xff") == 2);
  REQUIRE(invalid_utf8("ab\xc3") == 2);            // cut short
  REQUIRE(invalid_utf8("a\xc0\xaf") == 1);         // overlong encoding
  REQUIRE(invalid_utf8("\xed\xa0\x80") == 0);      // a surrogate
  REQUIRE(invalid_utf8("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  REQUIRE(invalid_utf8(std::string_view("\0a", 2)) == std::nullopt);
}

TEST_CASE("code points and UTF-8 convert both ways; what is invalid is dropped", "[data][text]") {
  REQUIRE(to_code_points("a\u00e9\U0001F600") == U"a\u00e9\U0001F600");
  REQUIRE(to_code_points("a\xff\xc3z") == U"az");
  REQUIRE(to_utf8(U"a\u00e9\U0001F600") == "a\u00e9\U0001F600");
  REQUIRE(to_utf8(std::u32string{'a', 0xD800, 0x110000, 'b'}) == "ab");
}

TEST_CASE("lower-casing is Python's: full mappings and final sigma", "[data][text]") {
  REQUIRE(lower_case("ABCxyz 1.") == "abcxyz 1.");
  REQUIRE(lower_case("CAF\u00c9") == "caf\u00e9");
  REQUIRE(lower_case("\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3") == "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2");
  REQUIRE(lower_case("\u0391\u03a3. \u03a3") == "\u03b1\u03c2. \u03c3");  // at the end, and alone
  REQUIRE(lower_case("\u0391\u03a3.\u0391") == "\u03b1\u03c3.\u03b1");    // the period does not end the word
  REQUIRE(lower_case("\u0130") == "i\u0307");                             // one character becomes two
  REQUIRE(lower_case("\u1e9e") == "\u00df");
  REQUIRE(lower_case("\u00c9\xff\u00c9") == "\u00e9\u00e9");  // invalid bytes are dropped
}

TEST_CASE("white space is what Python's isspace accepts, and strip removes it at both ends", "[data][text]") {
  int count = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) count += is_space(c) ? 1 : 0;
  REQUIRE(count == 29);
  REQUIRE(is_space(0x1C));
  REQUIRE(is_space(0x85));
  REQUIRE_FALSE(is_space(0x200B));  // zero width space is not white space
  REQUIRE_FALSE(is_space(0xFEFF));
  REQUIRE(strip("") == "");
  REQUIRE(strip(" \u3000\t\u00a0") == "");
  REQUIRE(strip("\u2009a b\u00e9\x1c\u2028\n") == "a b\u00e9");
  REQUIRE(strip("a\xa0") == "a\xa0");  // an invalid byte is not white space
  REQUIRE(strip("\u00e9") == "\u00e9");
  REQUIRE(strip("\xff \xe2\x80 ") == "\xff \xe2\x80");
}

TEST_CASE("digits, decimals and word characters follow Python's definitions", "[data][text]") {
  REQUIRE(is_digit(U'7'));
  REQUIRE(is_digit(U'\u00b2'));        // superscript two
  REQUIRE_FALSE(is_digit(U'\u00bd'));  // one half
  REQUIRE(is_digit(U'\u0663'));        // Arabic-Indic three
  REQUIRE_FALSE(is_decimal(U'\u00b2'));
  REQUIRE(is_decimal(U'\u0663'));
  REQUIRE(is_word(U'_'));
  REQUIRE(is_word(U'\u00bd'));
  REQUIRE(is_word(U'\u4e2d'));
  REQUIRE_FALSE(is_word(U'-'));
  REQUIRE_FALSE(is_word(kNoCharacter));
}

TEST_CASE("upper and lower are properties of one character: a title-case letter is neither", "[data][text]") {
  REQUIRE(is_upper(U'A'));
  REQUIRE(is_lower(U'\u00df'));
  REQUIRE_FALSE(is_upper(U'\u01c5'));
  REQUIRE_FALSE(is_lower(U'\u01c5'));
  REQUIRE(is_upper(U'\u2160'));  // Roman numeral one: not a letter, but upper case
}

TEST_CASE("accents are stripped after canonical decomposition only", "[data][text]") {
  REQUIRE(strip_accents("plain") == "plain");
  REQUIRE(strip_accents("na\u00efve r\u00e9sum\u00e9 q\u0323\u0307") == "naive resume q");
  REQUIRE(strip_accents("\ufb01 \u00f8 \u00b2") == "\ufb01 \u00f8 \u00b2");  // compatibility forms stay
  REQUIRE(strip_accents("\ud55c") == "\u1112\u1161\u11ab");                  // Hangul decomposes into jamo
}

TEST_CASE("the version of the Unicode tables has the form major.minor", "[data][text]") {
  const std::string version = unicode_version();
  REQUIRE(version.find('.') != std::string::npos);
  REQUIRE(std::stoi(version) >= 15);
}
