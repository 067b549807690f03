// What a generator of records is to `etc sample`: its options, and the files it writes.
#pragma once

#include <filesystem>

#include "etc_core/base/fields.h"

namespace etc {

// The generator as the task's row of tasks/registry.h holds it.
struct SampleKind {
  const char* extension;  // of its train and dev files; vocab.txt lies beside them
  Fields keys;            // choices it leaves to its user, all integers; also options (long_tokens: --long-tokens)
  // values: keys that have another value than their default. Throws UsageError when values cannot be meant. Null: the
  // task has no generator.
  void (*write)(const Json& values, const std::filesystem::path& folder);
};

// Keys that every generator has, as entries of its FieldList. Options: a struct with these members.
template <typename Options>
FieldEntry<Options> records_entry() {
  return {"records", &Options::records, "training records; a fifth of it for dev"};
}
template <typename Options>
FieldEntry<Options> seed_entry() {
  return {"seed", &Options::seed, "equal seeds give equal files"};
}

// The options of `values`; messages name a key as the option it was given by.
template <typename Options>
Options read_sample_options(const FieldList<Options>& keys, const Json& values) {
  return keys.read(values, "etc sample", "--");
}

}  // namespace etc
