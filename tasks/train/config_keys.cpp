#include "tasks/train/config_keys.h"

#include <algorithm>
#include <map>

#include "etc_core/nn/encoder_config.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"

namespace etc {

namespace {

// In the order of --help: by name.
void append_section(std::vector<ConfigKey>& keys, const std::string& section, const Fields& fields) {
  std::vector<std::string> names = fields.names();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) keys.push_back({section, *fields.find(name)});
}

void append_model_section(std::vector<ConfigKey>& keys) {
  append_section(keys, "model", model_kind_fields());
  std::map<std::string, ConfigKey> by_name;
  for (const ModelKind& kind : model_kinds()) {
    for (const Field& field : kind.defaults->fields()) {
      ConfigKey& key = by_name.try_emplace(field.name, ConfigKey{"model", field}).first->second;
      key.kinds.push_back({kind.name, field});
    }
  }
  for (auto& [name, key] : by_name) keys.push_back(std::move(key));
}

std::vector<ConfigKey> make_config_keys() {
  std::vector<ConfigKey> keys;
  append_model_section(keys);
  append_section(keys, "task", task_name_fields());
  for (const TaskEntry& entry : task_entries()) {
    for (const Field& field : entry.task.keys) {
      const bool known = std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
        return key.section == "task" && key.field.name == field.name;
      });
      if (!known) keys.push_back({"task", field, field.mark == kDecoding});
    }
  }
  append_section(keys, "data", data_fields());
  append_section(keys, "training", training_fields());
  return keys;
}

}  // namespace

const FieldList<ModelKindName>& model_kind_fields() {
  static const FieldList<ModelKindName> kFields{FieldEntry<ModelKindName>{
      "kind",
      &ModelKindName::kind,
      "the kind of encoder; none: that of --init-from, else etc",
      {.words = model_kind_names()}}.as_option("--model-kind")};
  return kFields;
}

std::vector<std::string> ConfigKey::kind_names() const {
  std::vector<std::string> names;
  for (const KeyOfKind& of : kinds) names.push_back(of.kind);
  return names;
}

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> kKeys = make_config_keys();
  return kKeys;
}

}  // namespace etc
