// Varints and fixed words, in the encoding that LevelDB's tables and protocol buffers share.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/base/varint.h"

namespace etc::convert {

// Reads values from the front of untrusted bytes. Every failure throws Error "<where>: …".
class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

  std::uint64_t varint() {
    if (const auto value = take_varint(bytes_)) return *value;
    if (bytes_.size() < kLongestVarint) take(bytes_.size() + 1);  // throws: the bytes end within the number
    fail(where_, "a number of more than 64 bits (the file is damaged)");
  }
  std::uint32_t fixed32() {
    std::uint32_t value;
    std::memcpy(&value, take(4).data(), 4);
    return value;
  }
  std::uint64_t fixed64() {
    std::uint64_t value;
    std::memcpy(&value, take(8).data(), 8);
    return value;
  }
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) fail(where_, "expected {} more bytes, got {} (the file is damaged)", size, bytes_.size());
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
};

inline void append_fixed32(std::string& out, std::uint32_t value) {
  char bytes[4];
  std::memcpy(bytes, &value, 4);
  out.append(bytes, 4);
}

inline void append_fixed64(std::string& out, std::uint64_t value) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  out.append(bytes, 8);
}

}  // namespace etc::convert
