// etc info on JSON lines.
#include <algorithm>
#include <map>
#include <sstream>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/grouped.h"
#include "etc_core/base/json.h"
#include "tasks/cli/info_text.h"

namespace etc::cli {

namespace {

// "accuracy 0.5, loss 1.2": the numbers of a line of metrics, without time and speed.
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
    print_entry(kind, fmt::format("{} lines, steps {} to {}", grouped(lines.count), json_line(lines.first["step"]),
                                  json_line(lines.last["step"])));
    print_entry("  first", values_text(lines.first));
    print_entry("  last", values_text(lines.last));
  }
}

// Lines that are lists: how many, their lengths, and the first one.
struct ListLines {
  std::int64_t count = 0;
  std::size_t shortest = 0, longest = 0;
  Json first;

  void add(const Json& line, const Json& list) {
    if (count++ == 0) {
      first = line;
      shortest = longest = list.size();
    }
    shortest = std::min(shortest, list.size());
    longest = std::max(longest, list.size());
  }
  void print(const std::string& what, const std::string& path, const std::string& lines,
             const std::string& entries) const {
    if (count == 0) return;
    print_entry(what, path);
    print_entry(lines, grouped(count));
    print_entry(entries + " of each",
                shortest == longest ? fmt::format("{}", longest) : fmt::format("{} to {}", shortest, longest));
    print_entry("first", example_text(first));
  }
};

// Classifies the lines of a file.
class LineKinds {
 public:
  void add(const std::string& text) {
    ++all_;
    const Json line = try_parse_json(text);
    const auto is_text = [&](const char* key) { return line.contains(key) && line[key].is_string(); };
    const auto is_list = [&](const char* key) { return line.contains(key) && line[key].is_array(); };
    if (!line.is_object()) {
      if (unreadable_++ == 0) first_unreadable_ = all_;
    } else if (is_text("kind") && line.contains("step")) {
      MetricLines& lines = metrics_[line["kind"].get<std::string>()];
      if (lines.count++ == 0) lines.first = line;
      lines.last = line;
    } else if (is_text("severity") && is_text("code")) {
      ++faults_[line["severity"].get<std::string>() + " " + line["code"].get<std::string>()];
      ++fault_lines_;
    } else if (line.contains("id") && is_list("answers")) {
      n_best_.add(line, line["answers"]);
    } else if (line.size() == 2 && is_text("url") && is_list("KeyPhrases")) {
      phrases_.add(line, line["KeyPhrases"]);
    } else if (others_++ == 0) {
      first_other_ = line;
    }
  }

  void print(const std::string& path) const {
    if (all_ > 0 && unreadable_ == all_) {
      fail(path,
           "line 1: expected a line of metrics (step, kind), of a report (severity, code) or another JSON object");
    }
    if (!metrics_.empty()) {
      print_entry("metrics of a run", path);
      print_metrics(metrics_);
    }
    if (fault_lines_ > 0 || all_ == 0) {  // the report of a preparation without faults is empty
      print_entry("report of a preparation", path);
      print_entry("faults", grouped(fault_lines_));
      for (const auto& [code, count] : faults_) print_entry("  " + code, grouped(count));
    }
    n_best_.print("n-best answers", path, "examples", "answers");
    phrases_.print("predictions of OpenKP", path, "pages", "key phrases");
    if (others_ > 0) {
      print_entry("JSON lines", path);
      print_entry("objects", grouped(others_));
      print_entry("first", example_text(first_other_));
    }
    if (unreadable_ > 0) {
      print_entry("other lines", fmt::format("{}, the first is line {}", grouped(unreadable_), first_unreadable_));
    }
  }

 private:
  std::map<std::string, MetricLines> metrics_;
  std::map<std::string, std::int64_t> faults_;  // by "severity code"
  ListLines n_best_, phrases_;
  Json first_other_;
  std::int64_t all_ = 0, unreadable_ = 0, first_unreadable_ = 0, fault_lines_ = 0, others_ = 0;
};

}  // namespace

void describe_json_lines(const std::filesystem::path& path) {
  std::istringstream stream(read_file(path));
  LineKinds kinds;
  for (std::string text; std::getline(stream, text);) kinds.add(text);
  kinds.print(path.string());
}

}  // namespace etc::cli
