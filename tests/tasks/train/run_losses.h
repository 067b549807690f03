// The losses in a run's metrics.
#pragma once

#include <filesystem>
#include <vector>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc::test {

inline std::vector<double> losses(const std::filesystem::path& run) {
  std::vector<double> values;
  const std::string lines = read_file(run / "metrics.jsonl");
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    const Json line = parse_json(lines.substr(begin, end - begin), "metrics.jsonl");
    if (line.contains("loss")) values.push_back(line["loss"]);
    begin = end + 1;
  }
  return values;
}

}  // namespace etc::test
