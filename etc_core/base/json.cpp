#include "etc_core/base/json.h"

#include <algorithm>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

namespace {
constexpr int kMaxDepth = 512;  // the parser recurses on destruction; a stack must not decide what is legal
// Of configurations and what else is small by nature. Data, such as predictions, are read_file and parse_json.
constexpr std::uint64_t kMaxFileBytes = 64ull << 20;
}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;  // keys seen in each open object
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) fail(where, "nesting: expected at most {} levels", kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail(where, "duplicate key {}", parsed.dump());
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    // What it has read last may end inside a character: such bytes become U+FFFD.
    const std::string what = try_parse_json(json_line(Json(error.what()))).get<std::string>();
    const auto bracket = what.find("] ");  // drop the library's own prefix
    fail(where, "not valid JSON: {}", bracket == std::string::npos ? what : what.substr(bracket + 2));
  }
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_file(path, kMaxFileBytes), path.string());
}

Json try_parse_json(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string json_line(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // Two letters exchanged count as two edits, so short words may be off by two.
  std::size_t best_distance = std::max<std::size_t>(word.size() < 4 ? 1 : 2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t substituted = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest_word(word, candidates);
  return near.empty() ? "" : " (did you mean " + near + "?)";
}

}  // namespace etc
