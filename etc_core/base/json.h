// JSON documents: a wrapper of nlohmann/json with the project's error messages.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "etc_core/base/json_fwd.h"

namespace etc {

// Reading and writing text are declared here and compiled once: the library's templates for them cost every file that
// instantiates them about three seconds.

// Parses text; `where` names it in messages. Throws Error with byte offset on a syntax error, on nesting deeper than
// 512 and on duplicate keys (configuration is small and strict; raw datasets have their own reader). Cost: one pass.
Json parse_json(std::string_view text, const std::string& where);
Json read_json_file(const std::filesystem::path& path);
// Parses without error messages, for lines that may be truncated or not JSON at all: invalid JSON gives a discarded
// value (only is_discarded() is true for it).
Json try_parse_json(std::string_view text);

// Sorted keys, two blanks of indentation, final newline.
std::string json_text(const Json& json);
// Without blanks or newlines. Bytes that are not UTF-8 become U+FFFD here and in json_text.
std::string json_line(const Json& json);
std::string json_line(const OrderedJson& json);

}  // namespace etc
