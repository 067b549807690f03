// JSON documents (nlohmann/json behind one door) with the project's error messages.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace etc {

using Json = nlohmann::json;

// Parses text; `where` names it in messages. Throws Error with byte offset on a syntax error, on nesting deeper than
// 512 and on duplicate keys (configuration is small and strict; raw datasets have their own reader).
Json parse_json(std::string_view text, const std::string& where);
Json read_json_file(const std::filesystem::path& path);

// Sorted keys, two blanks of indentation, final newline.
std::string json_text(const Json& json);

// The candidate nearest to `word` by edit distance, or empty when none is near (more than a third of
// the letters off, at least two).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// " (did you mean X?)" or "".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace etc
