#include "etc_core/checkpoint/convert/report.h"

#include <fmt/format.h>

#include <cctype>
#include <unordered_map>

#include "etc_core/base/json.h"
#include "etc_core/base/shape.h"

namespace etc::convert {

namespace {

// The name with a star for the number of its layer: "…/fused_att_layer_7/…", "encoder.layer.7.…", "layer_7/…".
std::string without_layer_number(const std::string& name) {
  for (std::size_t at = name.find("layer"); at != std::string::npos; at = name.find("layer", at + 1)) {
    const std::size_t first = at + 6;  // behind "layer_" or "layer."
    std::size_t end = first;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
    if (first <= name.size() && end > first) return name.substr(0, first) + "*" + name.substr(end);
  }
  return name;
}

// Merges lines that differ only in the layer into one line with their count, in the order of their first occurrence.
class Lines {
 public:
  void add(const std::string& name, const std::string& shape, const std::string& remark) {
    const std::string line = fmt::format("  {} {}{{}}: {}", without_layer_number(name), shape, remark);
    const auto [known, is_new] = places_.emplace(line, lines_.size());
    if (is_new) lines_.emplace_back(line, 0);
    ++lines_[known->second].second;
  }
  std::string text() const {
    std::string text;
    for (const auto& [line, count] : lines_) {
      const std::size_t at = line.find("{}");
      const std::string times = count == 1 ? "" : fmt::format(" x{}", count);
      text += line.substr(0, at) + times + line.substr(at + 2) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, int>> lines_;
  std::unordered_map<std::string, std::size_t> places_;  // of each line in lines_
};

template <typename Items>
std::string summary(const char* what, const Items& items) {
  std::int64_t numbers = 0;
  for (const auto& item : items) numbers += element_count(item.shape);
  return fmt::format("{}: {} tensor{}, {} numbers\n", what, items.size(), items.size() == 1 ? "" : "s", numbers);
}

}  // namespace

Json ConversionReport::to_json() const {
  Json json = {{"source", source}, {"kind", kind}, {"notes", notes}};
  for (const char* key : {"copied", "initialised", "left_out"}) json[key] = Json::array();
  for (const Copied& one : copied) {
    json["copied"].push_back({{"name", one.name}, {"shape", one.shape}, {"from", one.from}});
  }
  for (const Fresh& one : initialised) {
    json["initialised"].push_back({{"name", one.name}, {"shape", one.shape}, {"how", one.how}});
  }
  for (const LeftOut& one : left_out) {
    json["left_out"].push_back({{"name", one.name}, {"what", one.what}, {"why", one.why}});
  }
  return json;
}

std::string ConversionReport::text() const {
  std::string text = fmt::format("source: {} ({})\n", source, kind);
  text += summary("copied", copied);
  if (!initialised.empty()) {
    text += summary("initialised", initialised);
    Lines lines;
    for (const Fresh& one : initialised) lines.add(one.name, shape_text(one.shape), one.how);
    text += lines.text();
  }
  if (!left_out.empty()) {
    text += fmt::format("left out: {} tensor{}\n", left_out.size(), left_out.size() == 1 ? "" : "s");
    Lines lines;
    std::int64_t slots = 0;
    for (const LeftOut& one : left_out) {
      if (one.why == kOptimiserSlot) {
        ++slots;
      } else {
        lines.add(one.name, one.what, one.why);
      }
    }
    text += lines.text();
    if (slots > 0) text += fmt::format("  {} optimiser slots\n", slots);
  }
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace etc::convert
