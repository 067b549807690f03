#include "tasks/text/settings.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"

namespace etc::text {

namespace {

constexpr const char* kWhere = "etc prepare";

}  // namespace

Json special_ids(const Json& overrides, const Json& defaults, std::int32_t vocab_size) {
  if (!overrides.is_object()) fail_usage(kWhere, "special_ids: expected an object, got {}", json_line(overrides));
  std::vector<std::string> names;
  for (const auto& [name, id] : defaults.items()) names.push_back(name);
  Json merged = defaults;
  for (const auto& [name, id] : overrides.items()) {
    if (!merged.contains(name)) fail_usage(kWhere, "special_ids: unknown key {}{}", name, suggestion(name, names));
    merged[name] = id;
  }
  for (const auto& [name, id] : merged.items()) {
    if (id.is_number_integer() && id >= 0 && id < vocab_size) continue;
    fail_usage(kWhere,
               "special_ids: {}: expected an id below the vocabulary's {}, got {} (use a vocabulary with reserved "
               "entries at the front, or set special_ids)",
               name, vocab_size, json_line(id));
  }
  return merged;
}

}  // namespace etc::text
