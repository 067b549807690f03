// Bytes of UTF-8 texts.
#pragma once

namespace etc {

// Whether a byte of a UTF-8 text is not the first one of its character.
constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace etc
