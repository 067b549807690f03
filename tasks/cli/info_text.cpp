#include "tasks/cli/info_text.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/output.h"
#include "tasks/train/tensorboard.h"

namespace etc::cli {

namespace {

constexpr std::size_t kLongestValue = 120;  // of an entry that is shown as an example

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestValue) return text;
  std::size_t end = kLongestValue;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not within a letter
  return text.substr(0, end) + " …";
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "accuracy 0.5, loss 1.2": the numbers of a line of metrics, without when and how fast.
std::string values_text(const Json& line) {
  std::string text;
  for (const auto& [key, value] : line.items()) {
    if (key == "step" || key == "time" || key == "kind" || !value.is_number()) continue;
    text += fmt::format("{}{} {:.6g}", text.empty() ? "" : ", ", key, value.get<double>());
  }
  return text;
}

// Lines of metrics.jsonl, of one kind ("train" or "eval").
struct MetricLines {
  std::int64_t count = 0;
  Json first, last;
};

void print_metrics(const std::map<std::string, MetricLines>& kinds) {
  for (const auto& [kind, lines] : kinds) {
    print_entry(kind, fmt::format("{} lines, steps {} to {}", grouped(lines.count), lines.first["step"].dump(),
                                  lines.last["step"].dump()));
    print_entry("  first", values_text(lines.first));
    print_entry("  last", values_text(lines.last));
  }
}

}  // namespace

void print_entry(const std::string& key, const std::string& value) {
  print("{:<34} {}\n", key, value);
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

void describe_json_lines(const std::filesystem::path& path) {
  std::istringstream stream(read_file(path));
  std::map<std::string, MetricLines> kinds;
  std::map<std::string, std::int64_t> faults;  // by "severity code"
  std::int64_t all = 0, unreadable = 0, first_unreadable = 0, fault_lines = 0;
  for (std::string text; std::getline(stream, text);) {
    ++all;
    const Json line = Json::parse(text, nullptr, false);
    const auto is_text = [&](const char* key) { return line.contains(key) && line[key].is_string(); };
    if (line.is_object() && is_text("kind") && line.contains("step")) {
      MetricLines& lines = kinds[line["kind"].get<std::string>()];
      if (lines.count++ == 0) lines.first = line;
      lines.last = line;
    } else if (line.is_object() && is_text("severity") && is_text("code")) {
      ++faults[line["severity"].get<std::string>() + " " + line["code"].get<std::string>()];
      ++fault_lines;
    } else if (unreadable++ == 0) {
      first_unreadable = all;
    }
  }
  if (all > 0 && unreadable == all) {
    fail(path.string(), "line 1: expected a line of metrics (step, kind) or of a report (severity, code)");
  }
  if (!kinds.empty()) {
    print_entry("metrics of a run", path.string());
    print_metrics(kinds);
  }
  if (kinds.empty()) {
    print_entry("report of a preparation", path.string());
    print_entry("faults", grouped(fault_lines));
    for (const auto& [code, count] : faults) print_entry("  " + code, grouped(count));
  }
  if (unreadable > 0) {
    print_entry("other lines", fmt::format("{}, the first is line {}", grouped(unreadable), first_unreadable));
  }
}

void describe_json(const std::filesystem::path& path) {
  const Json json = read_json_file(path);
  if (json.is_object()) {
    print_entry("predictions or other JSON object", path.string());
    print_entry("entries", grouped(static_cast<std::int64_t>(json.size())));
    if (!json.empty()) print_entry("first", shortened(json.begin().key() + ": " + dump(*json.begin())));
  } else if (json.is_array()) {
    print_entry("JSON array", path.string());
    print_entry("elements", grouped(static_cast<std::int64_t>(json.size())));
    if (!json.empty()) print_entry("first", shortened(dump(json.front())));
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
