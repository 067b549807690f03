// Every key of a run's configuration, as options and messages know it (run_config.h).
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/fields.h"

namespace etc {

// The first key of section model; it says which others there are.
struct ModelKindName {
  std::string kind;
};
const FieldList<ModelKindName>& model_kind_fields();

// A key of section model as one kind of encoder declares it.
struct KeyOfKind {
  std::string kind;
  Field field;
};

// One key of one section.
struct ConfigKey {
  std::string section;
  Field field;                        // where several kinds of encoders have it, the first one's
  bool decoding = false;              // of section task: kDecoding of tasks/task.h
  std::vector<KeyOfKind> kinds = {};  // section model: of those that have it; none: it belongs to the section itself

  std::string path() const { return section + "." + field.name; }
};

// All keys of all sections; section task holds those of every task there is, section model those of every kind.
const std::vector<ConfigKey>& config_keys();

}  // namespace etc
