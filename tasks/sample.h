// The interface of a sample generator for `etc sample`: its options, and the files it writes.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/sample/before_record.h"
#include "etc_core/base/fields.h"

namespace etc {

// The generator as stored in the task's row of tasks/registry.h.
struct SampleKind {
  std::vector<std::string> files;  // its output files: "train.json", "dev.json", "vocab.txt"
  Fields keys;                     // choices of the user, all integers; also options (long_tokens: --long-tokens)
  // values: keys whose value differs from the default. Throws UsageError for invalid values. Null: the task has no
  // generator.
  void (*write)(const Json& values, const std::filesystem::path& folder, const data::BeforeRecord& before_record);
};

// Keys that several generators have, as entries of their FieldLists. Options: a struct with these members.
template <typename Options>
FieldEntry<Options> records_entry() {
  return {"records", &Options::records, "training records; a fifth of it for dev"};
}
template <typename Options>
FieldEntry<Options> seed_entry() {
  return {"seed", &Options::seed, "equal seeds give equal files"};
}
template <typename Options>
FieldEntry<Options> hops_entry() {
  return {"hops", &Options::hops, "1: one document answers; 2: two together do"};
}
template <typename Options>
FieldEntry<Options> long_tokens_entry(const char* help = "long input of an example at most") {
  return {"long_tokens", &Options::long_tokens, help};
}
inline constexpr const char* kFittingLongTokens =
    "long input of an example at most; 0: what its facts need and a little more";

// The kind of a generator whose options are the struct of the list `fields()`; messages name a key by the option it was
// given with.
template <const auto& (*fields)(), auto write>
SampleKind sample_kind_of(std::vector<std::string> files) {
  return {std::move(files), fields(),
          [](const Json& values, const std::filesystem::path& folder, const data::BeforeRecord& before_record) {
            write(fields().read(values, "etc sample", "--"), folder, before_record);
          }};
}

// The same for a generator that writes a train and a dev file with this extension, and vocab.txt.
template <const auto& (*fields)(), auto write>
SampleKind sample_kind_of(const char* extension) {
  return sample_kind_of<fields, write>({std::string("train") + extension, std::string("dev") + extension, "vocab.txt"});
}

}  // namespace etc
