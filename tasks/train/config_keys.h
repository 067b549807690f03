// Every key of a run's configuration, for options and messages (run_config.h).
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/fields.h"

namespace etc {

// The first key of section model; it determines which other keys the section has.
struct ModelKindName {
  std::string kind;
};
const FieldList<ModelKindName>& model_kind_fields();

// A key of section model as declared by one kind of encoder.
struct KeyOfKind {
  std::string kind;
  Field field;
};

// One key of one section.
struct ConfigKey {
  std::string section;
  Field field;                        // if several kinds of encoders have it, the first one's
  bool decoding = false;              // of section task: kDecoding of tasks/task_kind.h
  std::vector<KeyOfKind> kinds = {};  // section model: the kinds that have it; none: the section itself has it

  std::string path() const { return section + "." + field.name; }
  std::vector<std::string> kind_names() const;
};

// All keys of all sections; section task holds the keys of all tasks, section model those of all kinds.
const std::vector<ConfigKey>& config_keys();

}  // namespace etc
