#include "tasks/cli/info_text.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/grouped.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "tasks/output.h"
#include "tasks/train/tensorboard.h"

namespace etc::cli {

namespace {

constexpr std::size_t kLongestValue = 120;  // of an entry that is shown as an example

}  // namespace

std::string example_text(const Json& json) {
  return shortened(json_line(json), kLongestValue);
}

void print_entry(const std::string& key, const std::string& value) {
  print("{:<34} {}\n", key, value);
}

void describe_json(const std::filesystem::path& path, const Json& json) {
  if (json.is_object()) {
    print_entry("predictions or other JSON object", path.string());
    print_entry("entries", grouped(static_cast<std::int64_t>(json.size())));
    if (!json.empty())
      print_entry("first", shortened(json.begin().key() + ": " + example_text(*json.begin()), kLongestValue));
  } else if (json.is_array()) {
    print_entry("JSON array", path.string());
    print_entry("elements", grouped(static_cast<std::int64_t>(json.size())));
    if (!json.empty()) print_entry("first", example_text(json.front()));
  } else {
    fail_usage("etc info", "{}: expected a JSON object or array, got {}", path.string(), json.type_name());
  }
}

void describe_csv(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  print_entry("table", path.string());
  print_entry("rows", grouped(std::max<std::int64_t>(0, lines - 1)));
  print_entry("columns", text.substr(0, text.find('\n')));
}

void describe_events(const std::filesystem::path& path) {
  const TensorBoardSummary summary = read_tensorboard(path);
  print_entry("TensorBoard events", path.string());
  print_entry("records", grouped(summary.records));
  if (summary.trailing_bytes > 0) {
    print_entry("damaged or half-written end", grouped(summary.trailing_bytes) + " bytes");
  }
}

}  // namespace etc::cli
