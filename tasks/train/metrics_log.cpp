#include "tasks/train/metrics_log.h"

#include <chrono>
#include <cmath>
#include <sstream>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"

namespace etc {

namespace {

// Complete lines of metrics.jsonl up to and including `step`; an incomplete last line (the process was killed) is
// dropped with the rest. last: by kind, the last step among them.
std::string lines_until(const std::string& text, std::int64_t step, std::map<std::string, std::int64_t>& last) {
  std::istringstream stream(text);
  std::string kept, line;
  while (std::getline(stream, line) && !stream.eof()) {
    const Json entry = try_parse_json(line);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer()) continue;
    const auto own = entry["step"].get<std::int64_t>();
    if (own > step) continue;
    kept += line + "\n";
    if (entry.contains("kind") && entry["kind"].is_string()) last[entry["kind"].get<std::string>()] = own;
  }
  return kept;
}

}  // namespace

// Drops lines after the step.
std::filesystem::path MetricsLog::cut_lines(std::int64_t step) {
  if (std::filesystem::exists(path_)) write_file_atomically(path_, lines_until(read_file(path_), step, last_));
  return path_;
}

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t resumed_step)
    : path_(folder / "metrics.jsonl"), events_(folder, resumed_step), lines_(cut_lines(resumed_step)) {}

void MetricsLog::add(std::int64_t step, const std::string& kind,
                     const std::vector<std::pair<std::string, double>>& values) {
  // An evaluation logged after the last checkpoint of its step is repeated on resume, with the same result.
  if (const auto last = last_.find(kind); last != last_.end() && step <= last->second) return;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  OrderedJson line = {{"step", step}, {"time", now}, {"kind", kind}};
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : values) {
    line[name] = std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
    scalars.emplace_back(kind + "/" + name, value);
  }
  const bool lines_written = lines_.append(json_line(line) + "\n");
  const bool refused = !events_.add(step, now, scalars) || !lines_written;
  if (refused == refused_) return;
  refused_ = refused;
  if (refused) {
    log::warn("{}: cannot write metrics (disk full?); they are kept in memory until there is room", path_.string());
  } else {
    log::info("{}: there is room again, all metrics are written", path_.string());
  }
}

}  // namespace etc
